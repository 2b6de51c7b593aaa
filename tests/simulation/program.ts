/**
 * A random program of verbs over several brokers, on one disk that loses power and under processes that die, at every
 * single step in turn.
 *
 * @module
 */

import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { openFile } from "../../src/brokers/file/new_file.ts";
import { type QueueSizes, queueSizes } from "../../src/brokers/file/queue_directory.ts";
import { type Policy, resolvePolicy } from "../../src/core/policy.ts";
import type { Delivery } from "../../src/core/values.ts";
import { queueRoot, readContents } from "./contents.ts";
import { Disk } from "./disk.ts";
import { Ledger } from "./ledger.ts";
import { type Random, randomFor, type SeededPlatform, seedPlatform } from "./random.ts";
import { checkCrash, type Crash } from "./reopening.ts";
import { checkContents } from "./rules.ts";
import type { Sabotage } from "./sabotage.ts";
import { Scheduler } from "./scheduler.ts";
import { type OpenBroker, Verbs } from "./verbs.ts";

/** How a program is run. */
export interface ProgramOptions {
  /** Decides everything: the verbs, in which order their steps come, and what each crash leaves. */
  readonly seed: number;
  /** How many verbs, or groups of them that run at once. */
  readonly verbs: number;
  /** The chance that a step is one before which the processes die, and the power goes; the program itself goes on. */
  readonly crashes: number;
  /** Whether calls never run at once. */
  readonly oneByOne?: boolean;
  /** Breaks the broker on purpose. */
  readonly sabotage?: Sabotage;
}

/** What a run has seen. */
export interface ProgramReport {
  /** Steps of the disk. */
  readonly steps: number;
  /** Crashes that were looked at. */
  readonly crashes: number;
}

/** Small ones, which a few messages fill. */
const smallSizes: QueueSizes = { waitingBucket: 3, leaseBucket: 2, deadFolder: 2, segment: 4 };

/** How often a moment is looked at that sabotage points at. */
const looks = 4;

/** How many such moments of a program are looked at. */
const mostCloseLooks = 20;

/** By how much time passes between verbs, in ms. */
const passes = [500, 500, 1_000, 1_000, 5_000, 5_000, 30_000, 30_000, 60_000, 700_000] as const;

/** Longer than what dead processes left lies, in ms. */
const leftoverAge = 700_000;

const start = Date.UTC(2026, 0, 1);

/** Runs one program; throws, naming the seed, when something was lost, torn or mixed up. */
export async function runProgram(options: ProgramOptions): Promise<ProgramReport> {
  const platform = seedPlatform(randomFor(options.seed, 1));
  try {
    return await new Program(options, platform).run();
  } catch (error) {
    throw new Error(`Seed ${options.seed} broke the queue: ${(error as Error).message}`, { cause: error });
  } finally {
    platform.restore();
  }
}

function drawPolicy(random: Random): Policy {
  return {
    visibilityTimeout: random.pick([2_000, 10_000, 30_000]),
    maxDeliveries: 1 + random.below(4),
    retryDelay: random.pick([0, 1_000]),
    maxAge: random.pick([0, 0, 100_000]),
    deadLetterRetention: random.pick([0, 5_000, 60_000]),
  };
}

class Program {
  readonly #options: ProgramOptions;
  readonly #platform: SeededPlatform;
  readonly #random: Random;
  readonly #scheduler: Scheduler;
  readonly #policy: Policy;
  readonly #sizes: QueueSizes;
  readonly #clock = { time: start, now: () => this.#clock.time };
  #ledger: Ledger;
  #disk = new Disk();
  #brokers: OpenBroker[] = [];
  /** Calls that began between two steps of another process. */
  #between: Promise<void>[] = [];
  #held: Delivery[] = [];
  #verbs!: Verbs;
  #messages = 0;
  #steps = 0;
  #crashes: Crash[] = [];
  #crashCount = 0;
  /** Disks that a broker was opened on after a crash. */
  readonly #seen = new Set<string>();
  #closeLooks = 0;
  /** The processes die in so many steps. */
  #stepsToLive = Infinity;
  #crashed = false;
  #isBetween = false;

  constructor(options: ProgramOptions, platform: SeededPlatform) {
    this.#options = options;
    this.#platform = platform;
    this.#random = randomFor(options.seed, 2);
    this.#scheduler = new Scheduler(randomFor(options.seed, 3));
    this.#policy = drawPolicy(this.#random);
    this.#sizes = this.#random.chance(0.5) ? smallSizes : queueSizes;
    this.#ledger = new Ledger(resolvePolicy(this.#policy));
  }

  async run(): Promise<ProgramReport> {
    this.#boot(this.#disk);
    for (let verb = 0; verb < this.#options.verbs; verb++) {
      if (this.#random.chance(0.08)) this.#stepsToLive = 1 + this.#random.below(25);
      const openers = this.#brokers.length > 0 ? 0 : this.#options.oneByOne ? 1 : 1 + this.#random.below(3);
      if (openers > 0) await this.#run(() => Array.from({ length: openers }, () => this.#open()));
      const width = !this.#options.oneByOne && this.#random.chance(0.3) ? 2 + this.#random.below(3) : 1;
      if (!this.#crashed) await this.#run(() => this.#verbs.start(width));
      if (this.#crashed || this.#random.chance(0.03)) this.#reboot();
      this.#stepsToLive = Infinity;
      if (this.#random.chance(0.25)) this.#pass(this.#random.pick(passes));
      // The file system's own clock, which tells leftovers, and the brokers' need not agree.
      if (this.#random.chance(0.02)) this.#disk.now += leftoverAge;
      const open = this.#brokers.filter(({ closing }) => !closing);
      this.#brokers.splice(0, Infinity, ...open);
    }
    this.#lookAtCrash();
    await this.#checkCrashes();
    return { steps: this.#steps, crashes: this.#crashCount };
  }

  #pass(time: number): void {
    this.#clock.time += time;
    this.#disk.now += time;
  }

  #boot(disk: Disk): void {
    this.#disk = disk;
    this.#brokers = [];
    this.#crashed = false;
    this.#between = [];
    this.#scheduler.start();
    disk.park = () => this.#scheduler.park();
    disk.beforeStep = (process) => this.#step(process);
    this.#verbs = new Verbs({
      random: this.#random,
      ledger: this.#ledger,
      disk,
      now: () => this.#clock.time,
      brokers: this.#brokers,
      held: this.#held,
      open: () => this.#open(),
      number: () => this.#messages++,
    });
  }

  /** Opens one more broker, in a process of its own or beside another. */
  async #open(): Promise<void> {
    const brokers = this.#brokers;
    if (brokers.length >= 4) return;
    const beside = brokers.length > 0 && this.#random.chance(0.2) ? this.#random.pick(brokers).operations : undefined;
    const operations = beside ?? this.#makeOperations();
    const config = { dir: queueRoot, policy: this.#policy, clock: this.#clock };
    const jobs = await openFile(config, operations, this.#sizes);
    brokers.push({ jobs: this.#options.sabotage?.broker(jobs) ?? jobs, operations, running: 0, closing: false });
  }

  #makeOperations(): FileOperations {
    const operations = this.#disk.process();
    return this.#options.sabotage?.operations(operations, {
      crashHere: () => this.#lookClosely(),
      flushNow: (path) => this.#disk.flushNow(path),
    }) ?? operations;
  }

  /** Runs calls until all have ended or their processes have died, and checks what lies there. */
  async #run(begin: () => Promise<void>[]): Promise<void> {
    const failures: unknown[] = [];
    const calls = begin();
    while (calls.length > 0) {
      const watched = calls.map((call) =>
        call.catch((error) => {
          // What a dead process thinks of its death is nobody's business.
          if (!this.#crashed) failures.push(error);
        })
      );
      await this.#scheduler.settle(watched);
      calls.splice(0, Infinity, ...this.#crashed ? [] : this.#between.splice(0));
    }
    if (failures.length > 0) throw failures[0];
    if (this.#options.sabotage?.hasStruck() && !this.#crashed) this.#lookClosely();
    await this.#checkCrashes();
    if (this.#crashed) return;
    const contents = readContents(this.#disk);
    checkContents(this.#ledger, contents, this.#clock.time, true);
    this.#ledger.settle(contents, "finished");
  }

  /** Before every step of the disk. */
  #step(process: FileOperations): void {
    this.#steps++;
    if (randomFor(this.#options.seed, 1_000 + this.#steps).chance(this.#options.crashes)) this.#lookAtCrash();
    if (--this.#stepsToLive > 0) return this.#beginBetween(process);
    // From here on calls that are under way change nothing that counts.
    this.#crashed = true;
    this.#ledger = this.#ledger.copy();
    this.#held = [...this.#held];
    this.#disk.kill();
    this.#scheduler.abandon();
  }

  /** Now and then another process goes ahead between two steps of one. */
  #beginBetween(process: FileOperations): void {
    if (this.#options.oneByOne || this.#isBetween || !this.#random.chance(0.04)) return;
    this.#isBetween = true;
    const call = this.#verbs.startBetween(process);
    this.#isBetween = false;
    if (call === undefined) return;
    // Should its process die with the others, nobody asks what became of it.
    call.catch(() => {});
    this.#between.push(call);
  }

  /** What would be if the processes died now, and if the power went: looked at later, when all is quiet. */
  #lookAtCrash(): void {
    const random = randomFor(this.#options.seed, 1_000_000 + this.#steps * looks + this.#crashes.length % looks);
    const common = { now: this.#clock.time, sizes: this.#sizes, random, ledger: this.#ledger.copy() };
    const cut = this.#disk.cutPower(random, random.pick([0, 0.3, 0.7, 0.9]));
    this.#crashes.push({ ...common, lossless: true, disk: this.#disk.copy() });
    this.#crashes.push({ ...common, lossless: false, disk: cut });
  }

  #lookClosely(): void {
    // Of broken brokers a few moments say enough.
    if (++this.#closeLooks > mostCloseLooks) return;
    for (let look = 0; look < looks; look++) this.#lookAtCrash();
  }

  async #checkCrashes(): Promise<void> {
    for (const crash of this.#crashes.splice(0)) {
      this.#crashCount++;
      const before = this.#platform.use(crash.random);
      try {
        await checkCrash(crash, this.#seen);
      } catch (error) {
        const what = crash.lossless ? "the processes died" : "the power went";
        throw new Error(`${(error as Error).message} (${what} before step ${this.#steps})`, { cause: error });
      } finally {
        this.#platform.use(before);
      }
    }
  }

  /** The processes die, or the power goes; the program goes on with what is left. */
  #reboot(): void {
    this.#disk.kill();
    this.#scheduler.abandon();
    const killed = this.#random.chance(0.4);
    const kept = this.#random.pick([0, 0.5, 0.9]);
    const next = killed ? this.#disk : this.#disk.cutPower(randomFor(this.#options.seed, this.#steps), kept, true);
    const contents = readContents(next);
    checkContents(this.#ledger, contents, this.#clock.time, killed);
    this.#ledger.settle(contents, killed ? "killed" : "cut");
    this.#boot(next);
  }
}
