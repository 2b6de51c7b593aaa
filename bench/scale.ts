/**
 * A million waiting messages, in every shape that they may have: what a process that has just opened them waits for its
 * first one, what the next ones cost, and what looking at and emptying such a queue takes. Each shape takes turns with a
 * million of one writer's batches, so that a noisy machine disturbs both alike.
 *
 * Run alone: `deno run -A bench/scale.ts` or `bun bench/scale.ts`; `QUEUE_BENCH_WAITING` says how many messages.
 *
 * @module
 */

import fs from "node:fs";
import process from "node:process";
import { currentPlatform, nodeOperations } from "../src/brokers/file/node_operations.ts";
import { newFile } from "../src/brokers/file/mod.ts";
import { openFile } from "../src/brokers/file/new_file.ts";
import type { Policy } from "../src/core/policy.ts";
import { longestDelay, queueShapes } from "../tests/support/queue_shapes.ts";
import { inDirectory } from "./directories.ts";
import { type Figure, median, ratio } from "./figures.ts";
import { startChild } from "./processes.ts";

const waiting = Number(process.env.QUEUE_BENCH_WAITING ?? 1_000_000);
const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 5 };
const rounds = 5;
const taken = 2_000;
const start = Date.UTC(2026, 0, 1);

/** What a process that opens the queue measures. */
interface Opening {
  /** Opening and the first delivery, in ms. */
  readonly first: number;
  /** Lease and acknowledge one by one, us a message. */
  readonly each: number;
  /** The longest of them, which lists a bucket, in ms. */
  readonly longest: number;
  /** What the process holds more than before it opened, in MB. */
  readonly memory: number;
}

/** What looking at the whole queue takes. */
interface Overview {
  readonly statsSeconds: number;
  readonly pageSeconds: number;
  readonly listMicroseconds: number;
  readonly purgeMicroseconds: number;
}

const clock = { now: () => start + 2 * longestDelay };

function memory(): number {
  return process.memoryUsage().rss / 1e6;
}

/** In a child: opens a backlog and takes some of it. */
async function measureOpening(dir: string): Promise<Opening> {
  const before = memory();
  const started = performance.now();
  await using jobs = await newFile({ dir, policy, clock });
  const take = async () => {
    const [delivery] = await jobs.receive(1);
    await jobs.ack(delivery!.lease.receipt);
  };
  await take();
  const first = performance.now() - started;
  let longest = 0;
  const begun = performance.now();
  for (let index = 0; index < taken; index++) {
    const taking = performance.now();
    await take();
    longest = Math.max(longest, performance.now() - taking);
  }
  const each = (performance.now() - begun) * 1_000 / taken;
  return { first, each, longest, memory: memory() - before };
}

/** In a child: counts, pages, lists and purges. */
async function measureOverview(dir: string): Promise<Overview> {
  await using jobs = await newFile({ dir, policy, clock });
  const timed = async (run: () => Promise<unknown>) => {
    const started = performance.now();
    await run();
    return (performance.now() - started) / 1_000;
  };
  const statsSeconds = await timed(() => jobs.stats());
  const [last] = (await jobs.messages({ max: 100 })).slice(-1);
  const pageSeconds = await timed(() => jobs.messages({ max: 100, after: last!.message.id }));
  let listed = 0;
  const listSeconds = await timed(async () => {
    for await (const _ of jobs.allMessages()) listed++;
  });
  let purged = 0;
  const purgeSeconds = await timed(async () => void (purged = (await jobs.purge()).queued));
  return {
    statsSeconds,
    pageSeconds,
    listMicroseconds: listSeconds * 1e6 / listed,
    purgeMicroseconds: purgeSeconds * 1e6 / purged,
  };
}

async function fill(shape: string, dir: string): Promise<void> {
  let now = start;
  const moving = { now: () => now, set: (instant: number) => void (now = instant) };
  const open = (more: Partial<Policy> = {}) =>
    openFile({ dir, policy: { ...policy, ...more }, clock: moving }, nodeOperations(currentPlatform()));
  await queueShapes[shape]!(open, waiting, moving);
}

const openIn = (dir: string) => startChild<Opening>(import.meta.url, ["--open", dir]).result;

/** The rows of the table; takes about five minutes. */
export async function benchScale(): Promise<Figure[]> {
  const figures: Figure[] = [];
  const [plain, ...others] = Object.keys(queueShapes);
  await inDirectory(async (root) => {
    const plainDir = `${root}/plain`;
    await fill(plain!, plainDir);
    const plainOpenings: Opening[] = [];
    for (const shape of others) {
      const dir = `${root}/shape`;
      await fill(shape, dir);
      const sides: { theirs: Opening; plain: Opening }[] = [];
      for (let round = 0; round < rounds; round++) {
        sides.push({ theirs: await openIn(dir), plain: await openIn(plainDir) });
      }
      plainOpenings.push(...sides.map(({ plain }) => plain));
      figures.push(describeShape(shape, sides));
      fs.rmSync(dir, { recursive: true });
    }
    figures.unshift(...describeOpening(plainOpenings));
    figures.push(
      ...describeOverview(await startChild<Overview>(import.meta.url, ["--overview", plainDir]).result),
    );
  });
  return figures;
}

const million = `${waiting.toLocaleString("en")} waiting`;

function describeShape(shape: string, sides: readonly { theirs: Opening; plain: Opening }[]): Figure {
  const theirs = sides.map(({ theirs }) => theirs.each);
  const plain = sides.map(({ plain }) => plain.each);
  const times = ratio(theirs, plain);
  const first = median(sides.map(({ theirs }) => theirs.first));
  return {
    name: `scale: lease and ack, ${million}, ${shape}`,
    ours: `${median(theirs).toFixed(1)} us, first ${first.toFixed(1)} ms`,
    raw: `one writer ${median(plain).toFixed(1)} us`,
    ratio: `${times.toFixed(2)}x its time`,
    target: "within 1.5x",
    met: times <= 1.5,
  };
}

function plainFigure(name: string, ours: string): Figure {
  return { name: `scale: ${name}`, ours, raw: "-", ratio: "-", target: "-", met: true };
}

function describeOpening(openings: readonly Opening[]): Figure[] {
  const of = (field: keyof Opening) => median(openings.map((opening) => opening[field]));
  return [
    plainFigure(`open and first delivery, ${million}`, `${of("first").toFixed(1)} ms`),
    plainFigure(`lease and ack, ${million}, one writer`, `${of("each").toFixed(1)} us`),
    plainFigure(`the longest of ${taken.toLocaleString("en")}: lists a bucket`, `${of("longest").toFixed(1)} ms`),
    plainFigure(`memory of the process, ${million}`, `+${of("memory").toFixed(0)} MB`),
  ];
}

function describeOverview(overview: Overview): Figure[] {
  return [
    plainFigure(`stats, ${million}`, `${overview.statsSeconds.toFixed(2)} s`),
    plainFigure(`messages, a page of 100 of ${million}`, `${overview.pageSeconds.toFixed(2)} s`),
    plainFigure(`allMessages, ${million}`, `${overview.listMicroseconds.toFixed(1)} us a message`),
    plainFigure(`purge, ${million}`, `${overview.purgeMicroseconds.toFixed(1)} us a message`),
  ];
}

if (import.meta.main) {
  const [mode, dir] = process.argv.slice(2);
  if (mode === "--open") console.log(JSON.stringify(await measureOpening(dir!)));
  else if (mode === "--overview") console.log(JSON.stringify(await measureOverview(dir!)));
  else console.table(await benchScale());
}
