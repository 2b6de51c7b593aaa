/**
 * What a queue does when its file system becomes read-only under it, as a kernel does after an error of the device.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type FileBroker, newFile } from "../../src/brokers/file/mod.ts";
import { consume } from "../../src/consume/consume.ts";
import type { ConsumeEvent } from "../../src/consume/events.ts";
import { isQueueError } from "../../src/core/error.ts";
import { ManualClock } from "../../src/testing/manual_clock.ts";
import { mountMemory, remount } from "../support/mounts.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function isReadOnly(error: unknown): boolean {
  return isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === "EROFS" &&
    typeof error.fields.path === "string";
}

/** Empties a queue; the payloads in order. */
async function drain(jobs: FileBroker): Promise<string[]> {
  const texts: string[] = [];
  for (let found = await jobs.receive(20); found.length > 0; found = await jobs.receive(20)) {
    texts.push(...found.map(({ message }) => decoder.decode(message.payload)));
    await jobs.ackMany(found.map(({ lease }) => lease.receipt));
  }
  return texts.sort();
}

/** Uses a queue in every way while its file system is read-only, and when it no longer is. */
export async function useReadOnlyDisk(path: string): Promise<void> {
  mountMemory(path, "size=4m");
  const dir = `${path}/queue`;
  const clock = new ManualClock();
  const policy = { visibilityTimeout: 30_000, maxDeliveries: 5, retryDelay: 1_000 };
  await using jobs = await newFile({ dir, policy, clock });
  await using _watch = jobs.watch();
  const texts = Array.from({ length: 12 }, (_, index) => `message ${10 + index}`);
  await jobs.publishMany(texts.map((text) => encoder.encode(text)));
  await jobs.publishOnce("taken", encoder.encode("once"), 60_000);
  await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
  const [letter] = await jobs.deadLetters({ max: 1 });
  const { id } = letter!.message;
  const held = (await jobs.receive(6)).map(({ lease }) => lease.receipt);
  const [acked, nacked, rejected, released, extended, last] = held;
  const payload = encoder.encode("refused");
  const before = new Date(clock.now() + 1);

  remount(path, "ro");
  const changing: Record<string, () => Promise<unknown>> = {
    publish: () => jobs.publish(payload),
    publishMany: () => jobs.publishMany([payload, payload]),
    publishAt: () => jobs.publishAt(payload, new Date(clock.now() + 5_000)),
    publishOnce: () => jobs.publishOnce("key", payload, 60_000),
    receive: () => jobs.receive(1),
    ack: () => jobs.ack(acked!),
    ackMany: () => jobs.ackMany([acked!, last!]),
    nack: () => jobs.nack(nacked!),
    nackAfter: () => jobs.nackAfter(nacked!, undefined, 0),
    reject: () => jobs.reject(rejected!),
    release: () => jobs.release(released!),
    extend: () => jobs.extend(extended!, 60_000),
    replayDeadLetter: () => jobs.replayDeadLetter(id),
    replayDeadLetters: () => jobs.replayDeadLetters({ max: 5 }),
    deleteDeadLetter: () => jobs.deleteDeadLetter(id),
    purgeDeadLetters: () => jobs.purgeDeadLetters({ before, max: 5 }),
    putDeadLetter: () => jobs.putDeadLetter({ ...letter!, message: { ...letter!.message, id: "" } }),
    purge: () => jobs.purge(),
    consume: () => consume(jobs, { handler: () => {}, handlerIsIdempotent: true, clock }),
  };
  for (const [name, call] of Object.entries(changing)) await assert.rejects(call(), isReadOnly, name);
  const events: ConsumeEvent[] = [];
  const consuming = consume(jobs, {
    handler: () => {},
    handlerIsIdempotent: true,
    clock,
    onEvent: (event) => events.push(event),
  });
  await assert.rejects(consuming, isReadOnly);
  assert.deepEqual(events.map((event) => [event.kind, "retryIn" in event]), [
    ["storageFailure", false],
    ["stopped", false],
  ], "it does not pass by itself, so nothing is waited out");
  // Looking goes on.
  const { ready, leased, dead } = await jobs.stats();
  assert.deepEqual({ ready, leased, dead }, { ready: 6, leased: 6, dead: 1 });
  assert.equal((await jobs.messages({ max: 100 })).length, 12);
  assert.equal((await Array.fromAsync(jobs.allMessages())).length, 12);
  assert.equal((await jobs.deadLetters({ max: 5 })).length, 1);
  assert.equal((await jobs.publishOnce("taken", payload, 60_000)).published, false);

  remount(path, "rw");
  await jobs.ack(acked!);
  assert.deepEqual(await jobs.ackMany([last!]), [1]);
  await jobs.nack(nacked!);
  await jobs.reject(rejected!);
  await jobs.release(released!);
  await jobs.ack((await jobs.extend(extended!, 60_000)).receipt);
  await jobs.replayDeadLetters({ max: 5 });
  assert.equal((await jobs.publishOnce("key", encoder.encode("key"), 60_000)).published, true);
  clock.set(clock.now() + 1_000);
  const settled = ["message 11", "message 15", "message 16"];
  const expected = [...texts.filter((text) => !settled.includes(text)), "once", "key"].sort();
  assert.deepEqual(await drain(jobs), expected);
}
