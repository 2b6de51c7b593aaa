/**
 * The memory broker: what depth costs, whether a million round trips leave anything behind, and its rate through
 * `consume` beside fastq, which has no leases, receipts or retries.
 *
 * Run alone: `deno run -A bench/memory.ts` or `bun bench/memory.ts`.
 *
 * @module
 */

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type MemoryBroker, newMemory } from "../src/brokers/memory/mod.ts";
import { consume } from "../src/consume/mod.ts";
import type { Policy } from "../src/core/policy.ts";
import { type Figure, median, ratio } from "./figures.ts";

const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 5 };
const payload = new Uint8Array(64).fill(120);
const rounds = 7;
/** How many messages are drained beside fastq: a long run, and a short one that mostly passes while the runtime compiles. */
const drained = [1_000_000, 100_000] as const;

/** Elapsed ms of a run. */
async function timed(run: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await run();
  return performance.now() - started;
}

async function withDepth(depth: number): Promise<MemoryBroker> {
  const jobs = newMemory({ policy });
  for (let message = 0; message < depth; message++) await jobs.publish(payload);
  return jobs;
}

async function roundTrips(jobs: MemoryBroker, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    await jobs.publish(payload);
    const [delivery] = await jobs.receive(1);
    await jobs.ack(delivery!.lease.receipt);
  }
}

/** Publish, receive and acknowledge one message at a time with few and with many waiting; ns a round trip. */
async function measureDepth(): Promise<{ shallow: number[]; deep: number[] }> {
  const count = 50_000;
  const [shallowJobs, deepJobs] = [await withDepth(10), await withDepth(100_000)];
  const shallow: number[] = [];
  const deep: number[] = [];
  for (let round = -2; round < rounds; round++) {
    const first = await timed(() => roundTrips(shallowJobs, count)) * 1e6 / count;
    const second = await timed(() => roundTrips(deepJobs, count)) * 1e6 / count;
    // The first two rounds let the engine compile what it runs.
    if (round < 0) continue;
    shallow.push(first);
    deep.push(second);
  }
  await Promise.all([shallowJobs.close(), deepJobs.close()]);
  return { shallow, deep };
}

/** Publishing, and receiving and acknowledging 64 at a time; ns a message. */
async function measureRates(): Promise<{ publish: number[]; settle: number[] }> {
  const count = 100_000;
  const publish: number[] = [];
  const settle: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const jobs = newMemory({ policy });
    publish.push(
      await timed(async () => {
        for (let message = 1; message < count; message++) jobs.publish(payload);
        await jobs.publish(payload);
      }) * 1e6 / count,
    );
    settle.push(
      await timed(async () => {
        let deliveries = await jobs.receive(64);
        while (deliveries.length > 0) {
          await jobs.ackMany(deliveries.map(({ lease }) => lease.receipt));
          deliveries = await jobs.receive(64);
        }
      }) * 1e6 / count,
    );
    await jobs.close();
  }
  return { publish, settle };
}

/** Bytes on the heap after a collection. A full one is had by name on Bun, and by a flag on Deno and Node. */
function heapUsed(): number {
  const { Bun, gc } = globalThis as { Bun?: { gc(full: boolean): void }; gc?: () => void };
  if (Bun !== undefined) Bun.gc(true);
  else gc?.();
  return process.memoryUsage().heapUsed;
}

/** KiB by which the heap grew from 100,000 to 1,100,000 round trips, the least of what some collections show. */
async function measureGrowth(): Promise<number> {
  const settled = async () => {
    const samples: number[] = [];
    for (let sample = 0; sample < 5; sample++) {
      samples.push(heapUsed());
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return Math.min(...samples);
  };
  const jobs = await withDepth(10);
  await roundTrips(jobs, 100_000);
  const before = await settled();
  await roundTrips(jobs, 1_000_000);
  const after = await settled();
  await jobs.close();
  return (after - before) / 1024;
}

/** One side of the comparison with fastq: pushes, and waits until all were handled; messages a second. */
const sides = {
  ours: async (count: number): Promise<number> => {
    return count / await timed(async () => {
      const jobs = newMemory({ policy });
      for (let message = 0; message < count; message++) jobs.publish(payload);
      const stop = new AbortController();
      let handled = 0;
      await consume(jobs, {
        // deno-lint-ignore require-await -- both sides run an async handler
        handler: async () => {
          if (++handled === count) stop.abort();
        },
        handlerIsIdempotent: true,
        parallelism: 64,
        signal: stop.signal,
      });
      // The stop has drained: every message was acknowledged.
      const { queued, leased } = await jobs.stats();
      if (queued + leased > 0) throw new Error(`${queued + leased} messages were not acknowledged`);
    }) * 1e3;
  },
  fastq: async (count: number): Promise<number> => {
    const fastq = createRequire(import.meta.url)("fastq") as {
      promise(worker: (task: Uint8Array) => Promise<void>, concurrency: number): {
        push(task: Uint8Array): Promise<void>;
      };
    };
    return count / await timed(async () => {
      let handled = 0;
      // deno-lint-ignore require-await -- both sides run an async handler
      const queue = fastq.promise(async () => void handled++, 64);
      const pushed: Promise<void>[] = [];
      for (let message = 0; message < count; message++) pushed.push(queue.push(payload));
      await Promise.all(pushed);
      if (handled !== count) throw new Error(`${handled} of ${count} were handled`);
    }) * 1e3;
  },
};

/** Runs this file in a process of its own and returns the number that it prints. */
function inFreshProcess(...args: string[]): Promise<number> {
  const script = fileURLToPath(import.meta.url);
  const runtime = "Deno" in globalThis ? ["run", "-A", "--v8-flags=--expose-gc"] : [];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...runtime, script, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.on("data", (chunk) => output += chunk);
    child.on("error", reject);
    child.on("close", (code) => code === 0 ? resolve(Number(output)) : reject(new Error(`A side ended with ${code}`)));
  });
}

async function measureBesideFastq(count: number): Promise<Figure> {
  const ours: number[] = [];
  const fastq: number[] = [];
  for (let round = 0; round < rounds; round++) {
    ours.push(await inFreshProcess("--side", "ours", String(count)));
    fastq.push(await inFreshProcess("--side", "fastq", String(count)));
  }
  const share = ratio(ours, fastq);
  return {
    name: `memory: publish and drain ${count.toLocaleString("en")} at parallelism 64`,
    ours: perSecond(median(ours)),
    raw: `fastq ${perSecond(median(fastq))}`,
    ratio: `${share.toFixed(2)}x its rate`,
    target: "half its rate",
    met: share >= 0.5,
  };
}

const perSecond = (rate: number) => `${Math.round(rate).toLocaleString("en")}/s`;
const nanoseconds = (times: readonly number[]) => `${Math.round(median(times))} ns`;

/** The memory broker's rows of the table. */
export async function benchMemory(): Promise<Figure[]> {
  const { shallow, deep } = await measureDepth();
  const { publish, settle } = await measureRates();
  const growth = await inFreshProcess("--growth");
  const beside: Figure[] = [];
  for (const count of drained) beside.push(await measureBesideFastq(count));
  const depth = ratio(deep, shallow);
  const rate = (name: string, times: readonly number[]): Figure => {
    return { name, ours: perSecond(1e9 / median(times)), raw: "-", ratio: "-", target: "-", met: true };
  };
  return [
    {
      name: "memory: publish, receive, ack, 100,000 waiting",
      ours: nanoseconds(deep),
      raw: `10 waiting ${nanoseconds(shallow)}`,
      ratio: `${depth.toFixed(2)}x its time`,
      target: "within 1.5x",
      met: depth <= 1.5,
    },
    {
      name: "memory: heap after a million round trips",
      ours: `${Math.round(growth)} KiB more`,
      raw: "-",
      ratio: "-",
      target: "no growth (within 1 MiB)",
      met: growth <= 1_024,
    },
    rate("memory: publish", publish),
    rate("memory: receive and ackMany in batches of 64", settle),
    ...beside,
  ];
}

if (import.meta.main) {
  const [, , mode, side, count] = process.argv;
  if (mode === "--side") console.log(await sides[side as keyof typeof sides](Number(count)));
  else if (mode === "--growth") console.log(await measureGrowth());
  else console.table(await benchMemory());
}
