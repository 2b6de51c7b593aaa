/**
 * Uses a queue in every way while this process has no descriptor left: `DIR`. It has to run under a low limit of them.
 *
 * @module
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import process from "node:process";
import { type FileBroker, newFile } from "../../src/brokers/file/mod.ts";
import { consume } from "../../src/consume/consume.ts";
import type { ConsumeEvent } from "../../src/consume/events.ts";
import { isQueueError } from "../../src/core/error.ts";
import type { Delivery } from "../../src/core/values.ts";
import { ManualClock } from "../../src/testing/manual_clock.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const textOf = ({ message }: Delivery) => decoder.decode(message.payload);

const dir = process.argv[2]!;
const hoard: number[] = [];

/** Takes every descriptor that there is. */
function takeAll(): void {
  // A limit that is not low would take the machine's.
  for (let count = 0; count < 5_000; count++) {
    try {
      hoard.push(fs.openSync("/dev/null", "r"));
    } catch (error) {
      assert.equal((error as { code?: string }).code, "EMFILE");
      return;
    }
  }
  throw new Error("Cannot use up the descriptors: their number is not limited");
}

function giveBack(): void {
  for (const descriptor of hoard.splice(0)) fs.closeSync(descriptor);
}

/** Lets time pass, a little at a time since the machine takes its own, until a condition holds. */
async function passUntil(condition: () => boolean): Promise<void> {
  for (let step = 0; !condition(); step++) {
    assert.ok(step < 1_000, "it comes to hold within 10 seconds");
    await clock.advance(10);
  }
}

const isShort = (error: unknown) => isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === "EMFILE";

const clock = new ManualClock();
const policy = { visibilityTimeout: 30_000, maxDeliveries: 2, retryDelay: 1_000 };
const jobs: FileBroker = await newFile({ dir, policy, clock });
const expected = Array.from({ length: 30 }, (_, index) => `message ${10 + index}`);
// Each in a file of its own, so that each has to be opened.
for (const text of expected) await jobs.publish(encoder.encode(text));
const held = await jobs.receive(5);
const [acked, rejected, extended, nacked] = held.map(({ lease }) => lease.receipt);
await jobs.reject(held[4]!.lease.receipt);

takeAll();
const payload = encoder.encode("refused");
const refused: Record<string, () => Promise<unknown>> = {
  publish: () => jobs.publish(payload),
  publishMany: () => jobs.publishMany([payload, payload]),
  publishAt: () => jobs.publishAt(payload, new Date(clock.now() + 1_000)),
  publishOnce: () => jobs.publishOnce("key", payload, 60_000),
  receive: () => jobs.receive(1),
  reject: () => jobs.reject(rejected!),
  "reject again": () => jobs.reject(rejected!),
  deadLetters: () => jobs.deadLetters({ max: 5 }),
  stats: () => jobs.stats(),
  messages: () => jobs.messages({ max: 5 }),
  newFile: () => newFile({ dir: `${dir}/other`, policy }),
};
for (const [name, call] of Object.entries(refused)) {
  // What the broker still had open beside the calls may have been closed.
  takeAll();
  await assert.rejects(call(), isShort, name);
}
await jobs.ack(acked!);
const renewed = await jobs.extend(extended!, 60_000);
await jobs.nack(nacked!).catch((error) => assert.ok(isShort(error)));
const events: ConsumeEvent[] = [];
{
  // Where a watch cannot be opened it says so, and nothing else comes of it.
  await using _watch = jobs.watch({ onEvent: (event) => events.push(event) });
  assert.ok(events.every(({ kind }) => kind === "watchFailed"));
}

takeAll();
const consumed: string[] = [];
const counts: number[] = [];
const stop = new AbortController();
const consuming = consume(jobs, {
  handler(delivery) {
    consumed.push(textOf(delivery));
    counts.push(delivery.deliveries);
  },
  handlerIsIdempotent: true,
  parallelism: 4,
  clock,
  onEvent: (event) => events.push(event),
  signal: stop.signal,
});
const failures = () => events.filter(({ kind }) => kind === "storageFailure");
await passUntil(() => failures().length > 3);
for (const event of failures()) {
  assert.ok(event.kind === "storageFailure" && event.retryIn! > 0 && isShort(event.error));
}
assert.deepEqual(consumed, []);

giveBack();
await jobs.reject(rejected!, new TypeError());
await jobs.ack(renewed.receipt);
await passUntil(() => consumed.length >= 25);
clock.set(clock.now() + 100_000);
await passUntil(() => consumed.length >= 26);
stop.abort();
await consuming;
const settled = [0, 1, 2, 4];
assert.deepEqual(consumed.sort(), expected.filter((_, index) => !settled.includes(index)));
assert.deepEqual(counts.sort(), [...Array(25).fill(1), 2], "only the one that was handed out before was counted");
assert.deepEqual((await jobs.deadLetters({ max: 5 })).map(({ cause }) => cause), ["TypeError", ""]);
assert.equal((await jobs.publishOnce("key", payload, 60_000)).published, true);
assert.equal((await jobs.receive(5)).length, 1);
await jobs.close();
console.log("survived");
process.exit(0);
