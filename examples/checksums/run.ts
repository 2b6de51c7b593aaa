/**
 * One run of the demo: a producer, three workers of which one is killed half way and replaced, and the gathering.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import type { DeadLetter, FileBroker } from "@x/queue";
import { type Child, type Exit, start } from "./crew.ts";
import type { Progress } from "./progress.ts";
import { collect, look, openQueue, readDeadLetters, type Result } from "./queue.ts";

/** What a run is made of. */
export interface RunOptions {
  /** An absolute path: the folder whose files are summed. */
  readonly folder: string;
  /** A directory for the queues, empty. */
  readonly root: string;
  /** Names relative to the folder that are left out. */
  readonly leftOut: readonly string[];
  /** Shows what happens. */
  readonly progress: Progress;
  /** Ends the run early: it then rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

/** What a run led to. */
export interface RunResult {
  /** One result a file, by the bytes of its name. */
  readonly sums: ReadonlyMap<string, Result>;
  /** What could not be done. */
  readonly deadLetters: readonly DeadLetter[];
  /** The name that was planted, which no file has. */
  readonly planted: string;
  /** Names with neither a sum nor a dead letter; a run that lost nothing has none. */
  readonly missing: readonly Uint8Array[];
  /** Hand-outs beyond the first of each job. */
  readonly redeliveries: number;
  /** Durable publishes a second of the producer. */
  readonly publishRate: number;
}

/** Bytes as a key of a map: one character a byte. */
export function keyOf(name: Uint8Array): string {
  return Buffer.from(name).toString("latin1");
}

/** Every name that is in neither. */
export function findMissing(
  names: readonly Uint8Array[],
  sums: ReadonlyMap<string, unknown>,
  deadLetters: readonly DeadLetter[],
): Uint8Array[] {
  const dead = new Set(deadLetters.map(({ message }) => keyOf(message.payload)));
  return names.filter((name) => !sums.has(keyOf(name)) && !dead.has(keyOf(name)));
}

const workers = 3;
/** Replacements beyond the planned one before the run gives up: something kills every worker then. */
const mostReplacements = 20;
/** How many looks in a row find nothing to do before it is believed; one look is a snapshot that races the queue. */
const idleLooks = 2;

interface Found {
  readonly jobs: number;
  readonly planted: string;
}

/** Runs it all; when it resolves or rejects, no child process is left. */
export async function run(options: RunOptions): Promise<RunResult> {
  const children = new Set<Child>();
  try {
    return await new Run(options, children).run();
  } finally {
    for (const child of children) child.kill();
    await Promise.allSettled([...children].map((child) => child.ended));
  }
}

class Run {
  readonly #options: RunOptions;
  readonly #children: Set<Child>;
  readonly #sums = new Map<string, Result>();
  /** Ends waits when the run fails anywhere, or is told to end. */
  readonly #failed = new AbortController();
  #started = 0;
  #finishing = false;
  #replacements = 0;
  #victim: Child | undefined;
  #total = Infinity;

  constructor(options: RunOptions, children: Set<Child>) {
    this.#options = options;
    this.#children = children;
    const { signal } = options;
    signal.addEventListener("abort", () => this.#failed.abort(signal.reason), { once: true });
    if (signal.aborted) this.#failed.abort(signal.reason);
  }

  async run(): Promise<RunResult> {
    const { root } = this.#options;
    await using jobs = await openQueue(root, "jobs");
    await using results = await openQueue(root, "results");
    const collecting = new AbortController();
    const collected = collect(root, (result) => this.#keep(result), collecting.signal);
    collected.catch((error) => this.#failed.abort(error));

    const { found, published } = this.#startProducer();
    const { jobs: total, planted } = await this.#unlessFailed(found);
    this.#total = total;
    await this.#startWorkers();
    const rate = await this.#unlessFailed(published);
    await this.#watch(jobs, results);
    await this.#dismissWorkers();
    collecting.abort();
    await collected;
    const deadLetters = await readDeadLetters(jobs);
    return {
      sums: this.#sums,
      deadLetters,
      planted,
      missing: findMissing(this.#readNames(), this.#sums, deadLetters),
      redeliveries: [...this.#sums.values(), ...deadLetters].reduce((sum, { deliveries }) => sum + deliveries - 1, 0),
      publishRate: rate,
    };
  }

  /** A job that was done twice has two results: the later hand-out stands for both. */
  #keep(result: Result): void {
    const key = keyOf(result.name);
    const before = this.#sums.get(key);
    if (before === undefined || before.deliveries < result.deliveries) this.#sums.set(key, result);
    if (this.#sums.size >= Math.floor(this.#total / 2)) this.#killVictim();
  }

  #startProducer(): { found: Promise<Found>; published: Promise<number> } {
    const { root, folder, leftOut, progress } = this.#options;
    const found = Promise.withResolvers<Found>();
    const published = Promise.withResolvers<number>();
    const producer = this.#start("./producer.ts", [root, folder, ...leftOut], (line) => {
      const heard = line as { kind: string; jobs: number; planted: string; seconds: number };
      if (heard.kind === "found") found.resolve(heard);
      else published.resolve(heard.jobs / heard.seconds);
    });
    progress.note(
      `Producer (pid ${producer.pid}) publishes a job for every file, and one for a file that does not exist`,
    );
    producer.ended.then(({ code, signal }) => {
      if (code !== 0) this.#fail(`The producer ended with ${signal ?? `exit code ${code}`}`);
    });
    return { found: found.promise, published: published.promise };
  }

  /** The doomed worker starts alone, so that there is surely a job for it to sit on; then the others. */
  async #startWorkers(): Promise<void> {
    const holding = Promise.withResolvers<void>();
    const victim = this.#startWorker(["doomed"], () => holding.resolve());
    await this.#unlessFailed(holding.promise);
    for (let other = 1; other < workers; other++) this.#startWorker();
    this.#victim = victim;
    if (this.#sums.size >= Math.floor(this.#total / 2)) this.#killVictim();
  }

  #startWorker(role: readonly string[] = [], hear: (line: unknown) => void = () => {}): Child {
    const { root, folder, progress } = this.#options;
    const number = ++this.#started;
    const worker = this.#start("./worker.ts", [root, folder, ...role], hear);
    progress.note(`Worker ${number} (pid ${worker.pid}) starts`);
    worker.ended.then((exit) => this.#replace(number, worker, exit));
    return worker;
  }

  #killVictim(): void {
    const victim = this.#victim;
    this.#victim = undefined;
    victim?.kill();
  }

  #replace(number: number, worker: Child, { code, signal }: Exit): void {
    if (this.#finishing || this.#failed.signal.aborted) return;
    if (worker === this.#victim) this.#victim = undefined;
    this.#options.progress.note(
      `Worker ${number} (pid ${worker.pid}) is dead: ${
        signal ?? `exit code ${code}`
      }. What it held comes back by itself`,
    );
    if (++this.#replacements > 1 + mostReplacements) return this.#fail("Every worker dies");
    this.#startWorker();
  }

  /** Shows how it goes until nothing is left to do. */
  async #watch(jobs: FileBroker, results: FileBroker): Promise<void> {
    for (let idle = 0; idle < idleLooks;) {
      const { waiting, leased, dead, idle: nothing } = await look(jobs, results);
      idle = nothing ? idle + 1 : 0;
      const total = this.#total;
      // With few files dead letters alone may make half of them.
      const done = Math.min(total, this.#sums.size + dead);
      if (done >= Math.floor(total / 2)) this.#killVictim();
      this.#options.progress.update({ done, total, waiting, leased });
      const tick = Promise.withResolvers<void>();
      const timer = setTimeout(tick.resolve, 100);
      await this.#unlessFailed(tick.promise).finally(() => clearTimeout(timer));
    }
  }

  async #dismissWorkers(): Promise<void> {
    this.#finishing = true;
    const all = [...this.#children];
    for (const child of all) child.dismiss();
    await this.#unlessFailed(Promise.all(all.map((child) => child.ended)));
  }

  #readNames(): Uint8Array[] {
    const names: Uint8Array[] = [];
    const list = readFileSync(`${this.#options.root}/names`);
    for (let from = 0; from < list.length;) {
      const end = list.indexOf(0, from);
      names.push(list.subarray(from, end));
      from = end + 1;
    }
    return names;
  }

  #start(script: string, args: readonly string[], hear: (line: unknown) => void): Child {
    const child = start(script, args, hear);
    this.#children.add(child);
    child.ended.then(() => this.#children.delete(child), (error) => this.#failed.abort(error));
    return child;
  }

  #fail(why: string): void {
    this.#failed.abort(new Error(why));
  }

  /** Waits, but no longer than the run goes on. */
  async #unlessFailed<T>(promise: Promise<T>): Promise<T> {
    const { signal } = this.#failed;
    const failure = Promise.withResolvers<never>();
    const fail = () => failure.reject(signal.reason);
    if (signal.aborted) fail();
    signal.addEventListener("abort", fail, { once: true });
    try {
      return await Promise.race([promise, failure.promise]);
    } finally {
      signal.removeEventListener("abort", fail);
    }
  }
}
