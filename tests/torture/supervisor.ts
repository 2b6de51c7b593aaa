/**
 * Starts processes on one directory, kills them at random, starts them again, and looks at what is left in the end.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { openFile } from "../../src/brokers/file/new_file.ts";
import { sharedLeaseBucket } from "../../src/brokers/file/lease_index.ts";
import type { DeadLetter } from "../../src/core/values.ts";
import { Random } from "../simulation/random.ts";
import { agedOperations } from "../support/file_faults.ts";
import { findRuntimes, type Runtime } from "../support/runtimes.ts";
import { check, type Verdict } from "./check.ts";
import { Ledger, type LedgerEvent, readLedger } from "./ledger.ts";
import { rest } from "./part.ts";
import { recordConsumer } from "./recording.ts";
import { policy, type Task } from "./settings.ts";

const program = fileURLToPath(new URL("./child.ts", import.meta.url));

const roles: readonly Task["role"][] = ["producer", "producer", "consumer", "consumer", "consumer", "operator"];

/** How long a process that was asked to end has for it, in ms. */
const stopTimeout = 30_000;

/** What a run is to be. */
export interface TortureOptions {
  /** Where queue and ledgers are put; it must be there and empty. */
  readonly dir: string;
  /** How long processes are killed, in ms. */
  readonly duration: number;
  readonly seed: number;
}

/** What came of a run. */
export interface TortureResult {
  readonly verdicts: readonly Verdict[];
  readonly runtimes: readonly string[];
  /** How often what was done. */
  readonly counts: Readonly<Record<string, number>>;
}

/** A process that is started anew whenever it was killed. */
class Slot {
  readonly ledger: string;
  readonly problems: string[] = [];
  kills = 0;
  readonly #number: number;
  readonly #options: TortureOptions;
  readonly #random: Random;
  readonly #runtimes: readonly Runtime[];
  #started = 0;
  #child: ChildProcess | undefined;
  #closed: Promise<void> = Promise.resolve();
  #complaints = "";

  constructor(number: number, options: TortureOptions, random: Random, runtimes: readonly Runtime[]) {
    this.#number = number;
    this.#options = options;
    this.#random = random;
    this.#runtimes = runtimes;
    this.ledger = `${options.dir}/ledger-${number}-${roles[number]}.jsonl`;
  }

  start(): void {
    const { dir, seed } = this.#options;
    const runtime = this.#runtimes[(this.#number + this.#started) % this.#runtimes.length]!;
    const name = `${this.#number}.${this.#started++}`;
    const task: Task = {
      role: roles[this.#number]!,
      dir: `${dir}/queue`,
      ledger: this.ledger,
      name,
      seed: seed + this.#random.below(1e9),
    };
    const child = spawn(runtime.command, [...runtime.args, program, JSON.stringify(task)], {
      stdio: ["pipe", "ignore", "pipe"],
    });
    this.#child = child;
    this.#complaints = "";
    child.stdin.on("error", () => {});
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#complaints = (this.#complaints + text).slice(-4_000);
    });
    child.on("error", (error) => this.problems.push(`${task.role} on ${runtime.name}: ${error.message}`));
    this.#closed = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        this.#child = undefined;
        if (code !== 0 && signal !== "SIGKILL") {
          this.problems.push(`${task.role} on ${runtime.name} ended with ${code ?? signal}: ${this.#complaints}`);
        }
        resolve();
      });
    });
  }

  /** Kills it and starts it again after a moment. */
  async strike(): Promise<void> {
    if (this.#child === undefined) {
      if (this.problems.length < 10) this.start();
      return;
    }
    await this.kill();
    await rest(this.#random.below(100));
    this.start();
  }

  async kill(): Promise<void> {
    this.kills++;
    this.#child?.kill("SIGKILL");
    await this.#closed;
  }

  /** Asks it to end and waits until it has. */
  async stop(): Promise<void> {
    this.#child?.stdin?.end();
    let timer: ReturnType<typeof setTimeout>;
    const late = new Promise<boolean>((resolve) => timer = setTimeout(() => resolve(true), stopTimeout));
    if (await Promise.race([this.#closed.then(() => false), late])) {
      this.problems.push(`the ${roles[this.#number]} did not end when it was asked to: ${this.#complaints}`);
      await this.kill();
    }
    clearTimeout(timer!);
  }
}

/** What was found on the disk when everything had been taken out. */
interface Rest {
  readonly dead: DeadLetter[];
  readonly events: readonly LedgerEvent[];
  readonly problems: readonly string[];
}

/**
 * Empties the queue, an hour later by every clock: leases have ended, delays too, and what dead processes left half done is
 * old enough to be finished or removed by whoever receives.
 */
async function drain(dir: string): Promise<Rest> {
  const path = `${dir}/ledger-drain.jsonl`;
  const ledger = new Ledger(path);
  const problems: string[] = [];
  let later = 0;
  const operations = {
    ...agedOperations((file) => !file.endsWith("/tmp/clock")),
    uptime: () => performance.now() + later,
  };
  const clock = { now: () => Date.now() + 3_600_000 };
  const onEvent = (event: unknown) => problems.push(JSON.stringify(event));
  const jobs = await openFile({ dir: `${dir}/queue`, policy, clock, onEvent }, operations);
  const recorded = recordConsumer(jobs, ledger, policy.visibilityTimeout);
  // An emptied folder goes when it has been so for a while.
  for (let idle = 0; idle < 5; idle++) {
    later += 120_000;
    for (let found = await recorded.receive(64); found.length > 0; found = await recorded.receive(64)) {
      idle = 0;
      ledger.note(...found.map(({ message: { id } }) => ({ kind: "handled" as const, id })));
      await recorded.ackMany(found.map(({ lease }) => lease.receipt));
    }
  }
  const dead = await jobs.deadLetters({ max: 1_000_000 });
  const stats = await jobs.stats();
  if (stats.queued !== 0 || stats.leased !== 0) problems.push(`${stats.queued} queued and ${stats.leased} leased`);
  if (stats.dead !== dead.length) problems.push(`${stats.dead} dead letters are counted and ${dead.length} listed`);
  await jobs.close();
  ledger.close();
  return { dead, events: readLedger(path), problems: [...problems, ...findLeftovers(`${dir}/queue`)] };
}

/** What no queue holds that was emptied. */
function findLeftovers(dir: string): string[] {
  const left: string[] = [];
  const allowed = [sharedLeaseBucket, "clock"];
  for (const state of ["ready", "delayed", "leased", "pending", "damaged", "tmp"]) {
    for (const name of fs.readdirSync(`${dir}/${state}`)) if (!allowed.includes(name)) left.push(`${state}/${name}`);
  }
  for (const name of fs.readdirSync(`${dir}/leased/${sharedLeaseBucket}`)) left.push(`leased/shared/${name}`);
  return left.map((path) => `${path} is left`);
}

function countEvents(events: readonly LedgerEvent[]): Record<string, number> {
  const counts: Record<string, number> = {};
  const add = (name: string, by = 1) => counts[name] = (counts[name] ?? 0) + by;
  for (const event of events) {
    if (event.kind === "settled") add(`${event.verb} ${event.outcome}`);
    else if (event.kind === "operated") add("operated", event.count);
    else add(event.kind);
  }
  return counts;
}

/** Runs the torture and checks what is left. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const random = new Random(options.seed);
  const runtimes = findRuntimes();
  const slots = roles.map((_, number) => new Slot(number, options, random, runtimes));
  for (const slot of slots) slot.start();
  const end = performance.now() + options.duration;
  while (performance.now() < end) {
    await rest(20 + random.below(random.chance(0.3) ? 50 : 500));
    await random.pick(slots).strike();
  }
  // Some are never asked.
  await Promise.all(slots.map((slot) => random.chance(0.3) ? slot.kill() : slot.stop()));
  const { dead, events: drained, problems } = await drain(options.dir);
  const events = [...slots.flatMap(({ ledger }) => readLedger(ledger)), ...drained];
  const counts: Record<string, number> = {
    ...countEvents(events),
    kills: slots.reduce((sum, { kills }) => sum + kills, 0),
    dead: dead.length,
  };
  const idle = ["publishing", "received", "ack done", "kills"].filter((name) => !(counts[name]! > 0));
  return {
    runtimes: runtimes.map(({ name }) => name),
    counts,
    verdicts: [
      { name: "every process that was asked to end did", problems: slots.flatMap((slot) => slot.problems) },
      { name: "all of it was at work", problems: idle.map((name) => `nothing was ${name}`) },
      ...check({ events, dead, maxDeliveries: policy.maxDeliveries }),
      { name: "the emptied directory is clean", problems },
    ],
  };
}
