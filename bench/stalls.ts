/**
 * For how long the file broker keeps the event loop from turning, at the batch sizes that its documentation speaks of,
 * beside the same loop with nothing to do; and what a publish costs while a consumer drains.
 *
 * Run alone: `deno run -A bench/stalls.ts` or `bun bench/stalls.ts`.
 *
 * @module
 */

import process from "node:process";
import { consume } from "../src/consume/mod.ts";
import { type FileBroker, newFile } from "../src/brokers/file/mod.ts";
import { openFile } from "../src/brokers/file/new_file.ts";
import { currentPlatform, nodeOperations } from "../src/brokers/file/node_operations.ts";
import type { Policy } from "../src/core/policy.ts";
import { inDirectory } from "./directories.ts";
import { type Figure, median, percentile } from "./figures.ts";
import { hearParent, pause, startChild } from "./processes.ts";

const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 2 };
const payload = new Uint8Array(64).fill(120);
const rounds = 5;
/** The longest stall that is asked for, in ms. */
const bound = 20;
/** The longest p99 of a publish beside a drain, in ms. */
const latencyBound = 50;
/** How many messages are drained beside a publisher. */
const drained = 50_000;
const year = 365 * 86_400_000;

/** Watches the event loop while something runs: the longest time between two turns of it, in ms. */
async function longestStall(run: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = performance.now();
  const beat = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last - 1);
    last = now;
  };
  const timer = setInterval(beat, 1);
  // What stood before is not counted.
  await pause(5);
  longest = 0;
  last = performance.now();
  await run();
  beat();
  clearInterval(timer);
  return longest;
}

/** A queue under measurement, with a clock that can be set ahead. */
interface Stage {
  readonly dir: string;
  readonly jobs: FileBroker;
  /** Sets the clock ahead, so that leases lapse. */
  passTime(ms: number): void;
}

async function onStage<T>(run: (stage: Stage) => Promise<T>): Promise<T> {
  return await inDirectory(async (dir) => {
    let ahead = 0;
    const jobs = await newFile({ dir, policy, clock: { now: () => Date.now() + ahead } });
    try {
      return await run({ dir, jobs, passTime: (ms) => void (ahead += ms) });
    } finally {
      await jobs.close();
    }
  });
}

const batch = (count: number) => new Array<Uint8Array>(count).fill(payload);

/** Leases so many messages, which are published first. */
async function lease(jobs: FileBroker, count: number): Promise<readonly string[]> {
  await jobs.publishMany(batch(count));
  const deliveries = await jobs.receive(count);
  if (deliveries.length !== count) throw new Error(`${deliveries.length} of ${count} were leased`);
  return deliveries.map(({ lease }) => lease.receipt);
}

type Receipts = Parameters<FileBroker["ackMany"]>[0];

async function leaseReceipts(jobs: FileBroker, count: number): Promise<Receipts> {
  return await lease(jobs, count) as Receipts;
}

async function buryMany(jobs: FileBroker, count: number): Promise<void> {
  const receipts = await leaseReceipts(jobs, count);
  await Promise.all(receipts.map((receipt) => jobs.reject(receipt)));
}

/** Drains a backlog; resolves with the last acknowledgement. */
async function drain(jobs: FileBroker, count: number, options: { batchSize?: number; parallelism?: number }) {
  const stop = new AbortController();
  let acknowledged = 0;
  await consume(jobs, {
    handler: () => {},
    handlerIsIdempotent: true,
    ...options,
    signal: stop.signal,
    onEvent: ({ kind }) => {
      if (kind === "acknowledged" && ++acknowledged === count) stop.abort();
    },
  });
}

/** A measured step: its name, and what it does. What `prepare` gives it is not measured. */
interface Step<T> {
  readonly name: string;
  prepare(stage: Stage): Promise<T>;
  run(stage: Stage, prepared: T): Promise<unknown>;
}

function step<T>(name: string, prepare: Step<T>["prepare"], run: Step<T>["run"]): Step<unknown> {
  return { name, prepare, run } as Step<unknown>;
}

const nothing = () => Promise.resolve();

const delayedItems = () =>
  Array.from({ length: 2_000 }, (_, index) => ({ payload, at: new Date(Date.now() + (index + 1) * year / 500) }));

/** Steps that each have a queue of their own. */
const alone: readonly Step<unknown>[] = [
  step("publishMany of 1,000", nothing, ({ jobs }) => jobs.publishMany(batch(1_000))),
  step("publishMany of 20,000", nothing, ({ jobs }) => jobs.publishMany(batch(20_000))),
  step("publishMany of 2,000, due over 4 years", nothing, ({ jobs }) => jobs.publishMany(delayedItems())),
  step("64 publishes at once", nothing, ({ jobs }) => Promise.all(batch(64).map((item) => jobs.publish(item)))),
  step("1,000 publishes at once", nothing, ({ jobs }) => Promise.all(batch(1_000).map((item) => jobs.publish(item)))),
  step(
    "receive of 1,000",
    ({ jobs }) => jobs.publishMany(batch(1_000)),
    ({ jobs }) => jobs.receive(1_000),
  ),
  step("ackMany of 1,000", ({ jobs }) => leaseReceipts(jobs, 1_000), ({ jobs }, all) => jobs.ackMany(all)),
  step(
    "1,000 acks at once",
    ({ jobs }) => leaseReceipts(jobs, 1_000),
    ({ jobs }, all) => Promise.all(all.map((receipt) => jobs.ack(receipt))),
  ),
  step(
    "1,000 releases at once",
    ({ jobs }) => leaseReceipts(jobs, 1_000),
    ({ jobs }, all) => Promise.all(all.map((receipt) => jobs.release(receipt))),
  ),
  step(
    "1,000 nacks at once",
    ({ jobs }) => leaseReceipts(jobs, 1_000),
    ({ jobs }, all) => Promise.all(all.map((receipt) => jobs.nack(receipt))),
  ),
  step(
    "1,000 extends at once",
    ({ jobs }) => leaseReceipts(jobs, 1_000),
    ({ jobs }, all) => Promise.all(all.map((receipt) => jobs.extend(receipt, 60_000))),
  ),
  step(
    "100 rejects at once",
    ({ jobs }) => leaseReceipts(jobs, 100),
    ({ jobs }, all) => Promise.all(all.map((receipt) => jobs.reject(receipt))),
  ),
  step(
    "reclaiming 1,000 lapsed leases",
    async (stage) => {
      await lease(stage.jobs, 1_000);
      stage.passTime(policy.visibilityTimeout + 1);
    },
    async ({ jobs }) => {
      for (let found = -1, left = 1_000; left > 0 && found !== 0; left -= found) {
        found = (await jobs.receive(1_000)).length;
      }
    },
  ),
  step(
    "burying 1,000 by receives",
    async (stage) => {
      for (let delivery = 0; delivery < policy.maxDeliveries; delivery++) {
        if (delivery === 0) await lease(stage.jobs, 1_000);
        else for (let left = 1_000; left > 0;) left -= (await stage.jobs.receive(1_000)).length;
        stage.passTime(policy.visibilityTimeout + 1);
      }
    },
    async ({ jobs }) => {
      for (let turn = 0; turn < 12; turn++) await jobs.receive(1_000);
      if ((await jobs.stats()).dead !== 1_000) throw new Error("Not all were buried");
    },
  ),
  step("replayDeadLetters of 1,000", ({ jobs }) => buryMany(jobs, 1_000), ({ jobs }) => {
    return jobs.replayDeadLetters({ max: 1_000 });
  }),
  step("deadLetters of 1,000", ({ jobs }) => buryMany(jobs, 1_000), ({ jobs }) => jobs.deadLetters({ max: 1_000 })),
  step("purgeDeadLetters of 1,000", ({ jobs }) => buryMany(jobs, 1_000), ({ jobs }) => {
    return jobs.purgeDeadLetters({ before: new Date(Date.now() + year), max: 1_000 });
  }),
  step(
    "looks at 2,000 folders",
    ({ jobs }) => jobs.publishMany(delayedItems()),
    async ({ jobs }) => {
      for (let look = 0; look < 20; look++) await jobs.receive(1);
    },
  ),
  step(
    "looks at 2,000 folders that have come due",
    async (stage) => {
      await stage.jobs.publishMany(delayedItems());
      stage.passTime(10 * year);
    },
    async ({ jobs }) => {
      for (let look = 0; look < 10; look++) await jobs.receive(1);
    },
  ),
  step(
    "drain of 10,000, nothing set",
    ({ jobs }) => jobs.publishMany(batch(10_000)),
    ({ jobs }) => drain(jobs, 10_000, {}),
  ),
  step(
    "drain of 10,000, batchSize 64, parallelism 16",
    ({ jobs }) => jobs.publishMany(batch(10_000)),
    ({ jobs }) => drain(jobs, 10_000, { batchSize: 64, parallelism: 16 }),
  ),
];

/** Steps over one queue of 100,000, one after another. */
const deep: readonly Step<unknown>[] = [
  step("opening with 100,000 waiting", nothing, async ({ dir }) => {
    // As another process would.
    await (await openFile({ dir, policy }, nodeOperations(currentPlatform()))).close();
  }),
  step("stats of 100,000", nothing, ({ jobs }) => jobs.stats()),
  step("messages, 1,000 of 100,000", nothing, ({ jobs }) => jobs.messages({ max: 1_000 })),
  step("allMessages of 100,000", nothing, async ({ jobs }) => {
    for await (const _ of jobs.allMessages());
  }),
  step("receive of 1,000 of 100,000", nothing, ({ jobs }) => jobs.receive(1_000)),
  step("purge of 100,000", nothing, ({ jobs }) => jobs.purge()),
];

interface Stalls {
  /** The longest stall of each step, a number a round. */
  readonly ours: Map<string, number[]>;
  /** The longest stall of the same loop with nothing to do, after each step. */
  readonly idle: number[];
}

async function measureStalls(): Promise<Stalls> {
  const ours = new Map<string, number[]>();
  const idle: number[] = [];
  const measure = async (stage: Stage, { name, prepare, run }: Step<unknown>, round: number) => {
    const prepared = await prepare(stage);
    const stall = await longestStall(() => run(stage, prepared));
    idle.push(await longestStall(() => pause(50)));
    // The first round lets the engine compile what it runs.
    if (round >= 0) ours.set(name, [...ours.get(name) ?? [], stall]);
  };
  for (let round = -1; round < rounds; round++) {
    for (const each of alone) await onStage((stage) => measure(stage, each, round));
    await onStage(async (stage) => {
      await stage.jobs.publishMany(batch(100_000));
      for (const each of deep) await measure(stage, each, round);
    });
  }
  return { ours, idle };
}

/** How long each of many publishes took, one after another, until the signal; in ms. */
async function timePublishes(jobs: FileBroker, until: Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let over = false;
  void until.then(() => over = true);
  while (!over) {
    const started = performance.now();
    await jobs.publish(payload);
    times.push(performance.now() - started);
    await pause(1);
  }
  return times;
}

/** In a child: drains what is there, then says so. */
async function measureDrain(dir: string): Promise<number> {
  await using jobs = await newFile({ dir, policy });
  await hearParent()();
  return await longestStall(() => drain(jobs, drained, { batchSize: 64 }));
}

interface Latencies {
  readonly quiet: number[];
  readonly sameProcess: number[];
  readonly otherProcess: number[];
  /** The longest stall of the process that drains beside the publisher. */
  readonly drainStall: number;
}

/** What a publish costs while nothing else goes on, and while a backlog is drained here or there. */
async function measureLatencies(): Promise<Latencies> {
  const fill = async (jobs: FileBroker) => await jobs.publishMany(batch(drained));
  const quiet = await onStage(({ jobs }) => timePublishes(jobs, pause(1_500)));
  const sameProcess = await onStage(async ({ jobs }) => {
    await fill(jobs);
    return await timePublishes(jobs, drain(jobs, drained, { batchSize: 64 }));
  });
  const beside = await onStage(async ({ dir, jobs }) => {
    await fill(jobs);
    const child = startChild<number>(import.meta.url, ["--drain", dir]);
    await child.ready;
    child.say("begin");
    return { times: await timePublishes(jobs, child.result), drainStall: await child.result };
  });
  return { quiet, sameProcess, otherProcess: beside.times, drainStall: beside.drainStall };
}

const ms = (value: number) => `${value.toFixed(1)} ms`;

/** The rows of the table; takes about two minutes. */
export async function benchStalls(): Promise<Figure[]> {
  const { ours, idle } = await measureStalls();
  const { quiet, sameProcess, otherProcess, drainStall } = await measureLatencies();
  const raw = `idle loop ${ms(median(idle))}, at worst ${ms(percentile(idle, 1))}`;
  const stall = (name: string, stalls: readonly number[]): Figure => ({
    name: `stalls: ${name}`,
    ours: ms(median(stalls)),
    raw,
    ratio: `at worst ${ms(percentile(stalls, 1))}`,
    target: `within ${bound} ms`,
    met: median(stalls) <= bound,
  });
  const latency = (name: string, times: readonly number[]): Figure => ({
    name: `stalls: publish while a backlog of 50,000 is drained ${name}, p99`,
    ours: ms(percentile(times, 0.99)),
    raw: `nothing drained ${ms(percentile(quiet, 0.99))}`,
    ratio: `median ${ms(median(times))}, else ${ms(median(quiet))}`,
    target: `within ${latencyBound} ms`,
    met: percentile(times, 0.99) <= latencyBound,
  });
  const worst = [...ours].reduce((worst, each) => median(each[1]) > median(worst[1]) ? each : worst);
  return [
    ...[...ours].map(([name, stalls]) => stall(name, stalls)),
    stall("drain of 50,000 beside a publisher", [drainStall]),
    stall(`the longest of these, ${worst[0]}`, worst[1]),
    latency("in the same process", sameProcess),
    latency("in another process", otherProcess),
  ];
}

if (import.meta.main) {
  if (process.argv[2] === "--drain") console.log(JSON.stringify(await measureDrain(process.argv[3]!)));
  else console.table(await benchStalls());
  process.exit(0);
}
