/**
 * What an idle consumer waits for and what it costs: from a publish in one process to the start of the handler in another,
 * with a poll that is far too slow to matter, beside a bare loop of the same system calls with a bare watch.
 *
 * Run alone: `deno run -A bench/wake.ts` or `bun bench/wake.ts`.
 *
 * @module
 */

import fs from "node:fs";
import process from "node:process";
import { promisify } from "node:util";
import { newFile } from "../src/brokers/file/mod.ts";
import { consume } from "../src/consume/mod.ts";
import type { Policy } from "../src/core/policy.ts";
import { inDirectory } from "./directories.ts";
import { type Figure, percentile } from "./figures.ts";
import { hearParent, instant, pause, startChild } from "./processes.ts";

const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 5 };
/** Much longer than what is asked for: a wake that was missed shows. */
const pollInterval = 10_000;
const samples = 500;
/** For how long an idle process is watched, in ms. */
const idleTime = 12_000;
const flush = promisify(fs.fsync);

/** When each sample was published, when that had resolved, and when the other process began with it. */
interface Sample {
  readonly called: number;
  readonly resolved: number;
}

/** Numbers its messages, so that the child's instants find their samples. */
function encode(index: number): Uint8Array {
  return new TextEncoder().encode(String(index).padStart(64));
}

/** In a child: when the handler of each message began. */
async function measureConsumer(dir: string): Promise<number[]> {
  await using jobs = await newFile({ dir, policy });
  const started: number[] = [];
  const stop = new AbortController();
  const consuming = consume(jobs, {
    handler: ({ message }) => {
      started[Number(new TextDecoder().decode(message.payload))] = instant();
    },
    handlerIsIdempotent: true,
    pollInterval,
    signal: stop.signal,
  });
  await hearParent()();
  stop.abort();
  await consuming;
  return started;
}

/** In a child: when each change in the directory was heard of. */
async function measureWatcher(dir: string): Promise<number[]> {
  const heard: number[] = [];
  const watcher = fs.watch(`${dir}/wake`, () => void heard.push(instant()));
  await hearParent()();
  watcher.close();
  return heard;
}

/** One message by bare system calls: create, write, flush, rename, flush the directory, touch what is watched. */
async function publishBare(dir: string, index: number): Promise<Sample> {
  const called = instant();
  const file = fs.openSync(`${dir}/tmp/${index}`, "wx", 0o600);
  fs.writeSync(file, encode(index));
  await flush(file);
  fs.closeSync(file);
  fs.renameSync(`${dir}/tmp/${index}`, `${dir}/queue/${index}`);
  const directory = fs.openSync(`${dir}/queue`, "r");
  await flush(directory);
  fs.closeSync(directory);
  fs.utimesSync(`${dir}/wake/signal`, new Date(), new Date());
  return { called, resolved: instant() };
}

interface Latency {
  /** From the call of publish, in ms. */
  readonly fromCall: number[];
  /** From when it had resolved; less than nothing where the other process was quicker. */
  readonly fromResolution: number[];
}

function latencies(published: readonly Sample[], seen: readonly (number | null | undefined)[]): Latency {
  const missing = published.findIndex((_, index) => typeof seen[index] !== "number");
  if (missing >= 0) throw new Error(`Sample ${missing} was never seen`);
  return {
    fromCall: published.map(({ called }, index) => seen[index]! - called),
    fromResolution: published.map(({ resolved }, index) => seen[index]! - resolved),
  };
}

/** The first event after each touch, and none of the rest. */
function firstAfterEach(published: readonly Sample[], heard: readonly number[]): (number | undefined)[] {
  return published.map(({ called }, index) => {
    const next = published[index + 1]?.called ?? Infinity;
    return heard.find((at) => at > called && at < next);
  });
}

/** Both sides take turns, each after a pause of its own length, so that whoever waits is truly idle. */
async function measureWakes(): Promise<{ ours: Latency; bare: Latency }> {
  return await inDirectory(async (root) => {
    const [dir, bareDir] = [`${root}/queue`, `${root}/bare`];
    for (const folder of ["tmp", "queue", "wake"]) fs.mkdirSync(`${bareDir}/${folder}`, { recursive: true });
    fs.writeFileSync(`${bareDir}/wake/signal`, "");
    await using jobs = await newFile({ dir, policy });
    const consumer = startChild<number[]>(import.meta.url, ["--consumer", dir]);
    const watcher = startChild<number[]>(import.meta.url, ["--watcher", bareDir]);
    await Promise.all([consumer.ready, watcher.ready]);
    await pause(500);
    const ours: Sample[] = [];
    const bare: Sample[] = [];
    for (let index = 0; index < samples; index++) {
      await pause(5 + Math.random() * 35);
      const called = instant();
      await jobs.publish(encode(index));
      ours.push({ called, resolved: instant() });
      await pause(5 + Math.random() * 35);
      bare.push(await publishBare(bareDir, index));
    }
    await pause(100);
    consumer.say("stop");
    watcher.say("stop");
    return {
      ours: latencies(ours, await consumer.result),
      bare: latencies(bare, firstAfterEach(bare, await watcher.result)),
    };
  });
}

/** In a child: ms of processor time a second, of an idle consumer or of a process that only waits. */
async function measureIdle(dir: string, consumes: boolean): Promise<number> {
  const stop = new AbortController();
  await using jobs = consumes ? await newFile({ dir, policy }) : undefined;
  const consuming = jobs && consume(jobs, {
    handler: () => {},
    handlerIsIdempotent: true,
    pollInterval,
    signal: stop.signal,
  });
  // What a start costs is over by then.
  await pause(3_000);
  const before = process.cpuUsage();
  const started = performance.now();
  await pause(idleTime);
  const { user, system } = process.cpuUsage(before);
  const elapsed = performance.now() - started;
  stop.abort();
  await consuming;
  return (user + system) / elapsed;
}

/** The two idle processes side by side. */
async function measureIdles(): Promise<{ ours: number; bare: number }> {
  return await inDirectory(async (dir) => {
    const start = (mode: string) => startChild<number>(import.meta.url, ["--idle", dir, mode]).result;
    const [ours, bare] = await Promise.all([start("consume"), start("wait")]);
    return { ours, bare };
  });
}

const ms = (value: number) => `${value.toFixed(2)} ms`;

/** The rows of the table; takes about half a minute. */
export async function benchWake(): Promise<Figure[]> {
  const { ours, bare } = await measureWakes();
  const idle = await measureIdles();
  const row = (name: string, from: keyof Latency, share: number, bound: number | undefined): Figure => {
    const [own, raw] = [percentile(ours[from], share), percentile(bare[from], share)];
    return {
      name,
      ours: ms(own),
      raw: `bare loop and watch ${ms(raw)}`,
      ratio: from === "fromCall" ? `${(own / raw).toFixed(2)}x its time` : `${ms(own - raw)} more`,
      target: bound === undefined ? "-" : `under ${bound} ms`,
      met: bound === undefined || own < bound,
    };
  };
  return [
    row("wake: publish called to handler in another process, median", "fromCall", 0.5, 5),
    row("wake: publish called to handler, p99 of 500", "fromCall", 0.99, 25),
    row("wake: publish called to handler, longest", "fromCall", 1, undefined),
    row("wake: publish resolved to handler, median", "fromResolution", 0.5, 5),
    row("wake: publish resolved to handler, p99 of 500", "fromResolution", 0.99, 25),
    {
      name: "wake: processor time of an idle consumer",
      ours: `${idle.ours.toFixed(2)} ms/s`,
      raw: `idle process ${idle.bare.toFixed(2)} ms/s`,
      ratio: `${(idle.ours - idle.bare).toFixed(2)} ms/s more`,
      target: "not measurable (within 2 ms/s)",
      met: idle.ours - idle.bare <= 2,
    },
  ];
}

if (import.meta.main) {
  const [, , mode, dir, side] = process.argv;
  if (mode === "--consumer") console.log(JSON.stringify(await measureConsumer(dir!)));
  else if (mode === "--watcher") console.log(JSON.stringify(await measureWatcher(dir!)));
  else if (mode === "--idle") console.log(JSON.stringify(await measureIdle(dir!, side === "consume")));
  else console.table(await benchWake());
  process.exit(0);
}
