/**
 * The file broker beside a bare loop of system calls: create, write, flush, rename, flush the directory, one message
 * after another. Both sides take turns in one run, so that a noisy machine disturbs both alike.
 *
 * Run alone: `deno run -A bench/file.ts` or `bun bench/file.ts`.
 *
 * @module
 */

import fs from "node:fs";
import process from "node:process";
import { promisify } from "node:util";
import { consume } from "../src/consume/mod.ts";
import { type FileBroker, newFile } from "../src/brokers/file/mod.ts";
import type { Policy } from "../src/core/policy.ts";
import { inDirectory } from "./directories.ts";
import { type Figure, median, ratio } from "./figures.ts";
import { startChild } from "./processes.ts";

const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 5 };
const payload = new Uint8Array(64).fill(120);
const rounds = 7;
const flush = promisify(fs.fsync);

async function withBroker<T>(dir: string, run: (jobs: FileBroker) => Promise<T>): Promise<T> {
  const jobs = await newFile({ dir, policy });
  try {
    return await run(jobs);
  } finally {
    await jobs.close();
  }
}

/** The raw limit: one message after another, metadata calls synchronous, both flushes asynchronous; us a message. */
async function bareLoop(dir: string, count: number): Promise<number> {
  fs.mkdirSync(`${dir}/tmp`);
  fs.mkdirSync(`${dir}/queue`);
  const directory = fs.openSync(`${dir}/queue`, "r");
  const started = performance.now();
  for (let index = 0; index < count; index++) {
    const temporary = `${dir}/tmp/${index}`;
    const file = fs.openSync(temporary, "wx", 0o600);
    fs.writeSync(file, payload);
    await flush(file);
    fs.closeSync(file);
    fs.renameSync(temporary, `${dir}/queue/${String(index).padStart(20, "0")}`);
    await flush(directory);
  }
  const elapsed = performance.now() - started;
  fs.closeSync(directory);
  return elapsed * 1000 / count;
}

async function timed(count: number, run: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await run();
  return (performance.now() - started) * 1000 / count;
}

function publishOneByOne(jobs: FileBroker, count: number): Promise<number> {
  return timed(count, async () => {
    for (let index = 0; index < count; index++) await jobs.publish(payload);
  });
}

function publishFrom(jobs: FileBroker, callers: number, count: number): Promise<number> {
  return timed(count, () =>
    Promise.all(Array.from({ length: callers }, async () => {
      for (let index = 0; index < count / callers; index++) await jobs.publish(payload);
    })));
}

function publishMany(jobs: FileBroker, batch: number, count: number): Promise<number> {
  const items = new Array<Uint8Array>(batch).fill(payload);
  return timed(count, async () => {
    for (let index = 0; index < count / batch; index++) await jobs.publishMany(items);
  });
}

/** Drains a backlog with a no-op handler, measured to the last acknowledgement. */
async function drain(jobs: FileBroker, count: number, options: { batchSize?: number }): Promise<number> {
  await publishMany(jobs, 1000, count);
  const stop = new AbortController();
  let acknowledged = 0;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  return await timed(count, async () => {
    const running = consume(jobs, {
      handler: () => {},
      handlerIsIdempotent: true,
      ...options,
      signal: stop.signal,
      onEvent: ({ kind }) => {
        if (kind === "acknowledged" && ++acknowledged === count) resolve();
      },
    });
    await done;
    stop.abort();
    await running;
  });
}

interface Measured {
  bare: number[];
  one: number[];
  callers: number[];
  many: number[];
  drainPlain: number[];
  drainBatch: number[];
}

async function measureRates(): Promise<Measured> {
  const measured: Measured = { bare: [], one: [], callers: [], many: [], drainPlain: [], drainBatch: [] };
  for (let round = 0; round < rounds; round++) {
    measured.bare.push(await inDirectory((dir) => bareLoop(dir, 400)));
    const ours = (run: (jobs: FileBroker) => Promise<number>) => inDirectory((dir) => withBroker(dir, run));
    measured.one.push(await ours((jobs) => publishOneByOne(jobs, 400)));
    measured.callers.push(await ours((jobs) => publishFrom(jobs, 64, 6_400)));
    measured.many.push(await ours((jobs) => publishMany(jobs, 1_000, 10_000)));
    measured.drainPlain.push(await ours((jobs) => drain(jobs, 5_000, {})));
    measured.drainBatch.push(await ours((jobs) => drain(jobs, 10_000, { batchSize: 64 })));
  }
  return measured;
}

interface ColdStart {
  /** From the call of `receive` in a process that has just opened the queue to its answer, in ms. */
  readonly first: number;
  /** Lease and acknowledge one by one, us a message. */
  readonly next: number;
}

/** Runs in a process of its own: opens a backlog, takes one message, then some more. */
async function measureColdStart(dir: string): Promise<ColdStart> {
  return await withBroker(dir, async (jobs) => {
    const started = performance.now();
    const [delivery] = await jobs.receive(1);
    const first = performance.now() - started;
    await jobs.ack(delivery!.lease.receipt);
    const next = await timed(500, async () => {
      for (let index = 0; index < 500; index++) {
        const [delivery] = await jobs.receive(1);
        await jobs.ack(delivery!.lease.receipt);
      }
    });
    return { first, next };
  });
}

function spawnColdStart(dir: string): Promise<ColdStart> {
  return startChild<ColdStart>(import.meta.url, ["--cold-start", dir]).result;
}

async function measureColdStarts(): Promise<{ deep: ColdStart[]; shallow: ColdStart[] }> {
  return await inDirectory(async (root) => {
    const [deepDir, shallowDir] = [`${root}/deep`, `${root}/shallow`];
    await withBroker(deepDir, (jobs) => publishMany(jobs, 1_000, 100_000));
    const deep: ColdStart[] = [];
    const shallow: ColdStart[] = [];
    for (let round = 0; round < rounds; round++) {
      await withBroker(shallowDir, async (jobs) => {
        await jobs.purge();
        await publishMany(jobs, 1_000, 1_000);
      });
      deep.push(await spawnColdStart(deepDir));
      shallow.push(await spawnColdStart(shallowDir));
    }
    return { deep, shallow };
  });
}

/** Measures everything; takes about a minute. */
export async function benchFile(): Promise<Figure[]> {
  const { bare, one, callers, many, drainPlain, drainBatch } = await measureRates();
  const { deep, shallow } = await measureColdStarts();
  const raw = (label: string, ours: number[], target: string, met: (ratio: number) => boolean): Figure => {
    const times = ratio(bare, ours);
    return {
      name: label,
      ours: `${Math.round(1e6 / median(ours)).toLocaleString("en")}/s`,
      raw: `bare loop ${Math.round(1e6 / median(bare)).toLocaleString("en")}/s`,
      ratio: `${times.toFixed(2)}x its rate`,
      target,
      met: met(times),
    };
  };
  const first = median(deep.map(({ first }) => first));
  const depth = ratio(deep.map(({ next }) => next), shallow.map(({ next }) => next));
  return [
    {
      ...raw("file: publish one by one", one, "time within 1.35x", (times) => 1 / times <= 1.35),
      ratio: `${ratio(one, bare).toFixed(2)}x its time`,
    },
    raw("file: publish from 64 callers", callers, "12x the rate", (times) => times >= 12),
    raw("file: publishMany of 1,000", many, "25x the rate", (times) => times >= 25),
    {
      name: "file: first message of 100,000, cold",
      ours: `${first.toFixed(2)} ms`,
      raw: "-",
      ratio: "-",
      target: "within 5 ms",
      met: first <= 5,
    },
    {
      name: "file: lease and ack, 100,000 waiting",
      ours: `${median(deep.map(({ next }) => next)).toFixed(1)} us`,
      raw: `1,000 waiting ${median(shallow.map(({ next }) => next)).toFixed(1)} us`,
      ratio: `${depth.toFixed(2)}x its time`,
      target: "within 1.5x",
      met: depth <= 1.5,
    },
    raw("file: consume, nothing set", drainPlain, "5x the rate", (times) => times >= 5),
    raw("file: consume, batchSize 64", drainBatch, "10x the rate", (times) => times >= 10),
  ];
}

if (import.meta.main) {
  if (process.argv[2] === "--cold-start") console.log(JSON.stringify(await measureColdStart(process.argv[3]!)));
  else console.table(await benchFile());
}
