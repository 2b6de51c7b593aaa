/**
 * The shapes that a large queue may have, for tests that count operations and benchmarks that measure times.
 *
 * @module
 */

import type { FileBroker } from "../../src/brokers/file/mod.ts";
import type { TimeSource } from "../../src/core/clock.ts";
import type { Policy } from "../../src/core/policy.ts";
import type { Priority } from "../../src/core/priority.ts";

/** Opens the queue as a process of its own would. */
export type Open = (policy?: Partial<Policy>) => Promise<FileBroker>;

/** A clock that goes where it is told. */
export interface ShapeClock extends TimeSource {
  set(instant: number): void;
}

/** Fills a queue with so many messages; what is due later is due within `longestDelay`. */
export type Fill = (open: Open, count: number, clock: ShapeClock) => Promise<void>;

const second = 1_000;
const day = 86_400 * second;

/** After so many ms everything in every shape can be received. */
export const longestDelay: number = 367 * day;

const payload = new Uint8Array(64).fill(120);
const batch = 1_000;

/** Publishes in batches by one writer. */
async function publishBatches(
  jobs: FileBroker,
  count: number,
  clock: ShapeClock,
  item: (index: number) => { at?: Date; priority?: Priority },
): Promise<void> {
  for (let done = 0; done < count; done += batch) {
    clock.set(clock.now() + 1);
    const items = Array.from({ length: Math.min(batch, count - done) }, (_, at) => ({ payload, ...item(done + at) }));
    await jobs.publishMany(items);
  }
}

/** Every shape by its name. */
export const queueShapes: Readonly<Record<string, Fill>> = {
  async "one writer"(open, count, clock) {
    await using jobs = await open();
    await publishBatches(jobs, count, clock, () => ({}));
  },

  async "eight writers"(open, count, clock) {
    const writers = await Promise.all(Array.from({ length: 8 }, () => open()));
    for (let done = 0; done < count; done += 400) {
      clock.set(clock.now() + 1);
      await Promise.all(writers.map((jobs) => jobs.publishMany(new Array<Uint8Array>(50).fill(payload))));
    }
    for (const jobs of writers) await jobs.close();
  },

  async "one a second"(open, count, clock) {
    await using jobs = await open();
    for (let done = 0; done < count; done += batch) {
      await Promise.all(Array.from({ length: Math.min(batch, count - done) }, () => {
        clock.set(clock.now() + second);
        return jobs.publish(payload);
      }));
    }
  },

  async "due in one instant"(open, count, clock) {
    await using jobs = await open();
    const at = new Date(clock.now() + day);
    await publishBatches(jobs, count, clock, () => ({ at }));
  },

  async "spread over a year"(open, count, clock) {
    await using jobs = await open();
    const start = clock.now() + day;
    // No order, and the same each time: steps by a prime walk through the year.
    await publishBatches(jobs, count, clock, (index) => ({ at: new Date(start + index * 7_919_777 % (365 * day)) }));
  },

  async "five levels mixed"(open, count, clock) {
    await using jobs = await open();
    await publishBatches(jobs, count, clock, (index) => ({ priority: (index * 7 % 5 - 2) as Priority }));
  },

  async "beside a tenth of dead letters"(open, count, clock) {
    const dead = count / 10;
    await using jobs = await open({ maxAge: 1_000 });
    await publishBatches(jobs, dead, clock, () => ({}));
    clock.set(clock.now() + 1_000 + dead);
    // Each receive buries a bounded number and then says that there is more at once.
    for (let buried = 0; buried < dead; buried = (await jobs.stats()).dead) {
      do await jobs.receive(1); while (jobs.wake().in <= 0 && jobs.wake().scheduled);
    }
    await publishBatches(jobs, count, clock, () => ({}));
  },
};
