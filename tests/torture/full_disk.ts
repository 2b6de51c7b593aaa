/**
 * What a queue does on a disk that is full.
 *
 * @module
 */

import assert from "node:assert/strict";
import { openFile } from "../../src/brokers/file/new_file.ts";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { consume } from "../../src/consume/consume.ts";
import type { ConsumeEvent } from "../../src/consume/events.ts";
import { isQueueError } from "../../src/core/error.ts";
import { doNotRetry } from "../../src/core/marks.ts";
import type { Delivery } from "../../src/core/values.ts";
import { ManualClock } from "../../src/testing/manual_clock.ts";
import type { SmallDisk } from "./disks.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Texts of a length that fills a block, so that a torn one is seen. */
const textOf = (name: string): string => `${name} ${"x".repeat(600)} ${name}`;
const bytesOf = (name: string): Uint8Array => encoder.encode(textOf(name));
const nameOf = ({ message: { payload } }: Pick<Delivery, "message">): string => {
  const text = decoder.decode(payload);
  const name = text.slice(0, text.indexOf(" "));
  assert.equal(text, textOf(name), "a message is whole");
  return name;
};

/** Whether a call was made, or refused as it should be for want of room. */
async function isRefused(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return false;
  } catch (error) {
    assert.ok(isQueueError(error, "QUEUE_BACKEND_FAILED"), String(error));
    assert.equal(error.fields.code, "ENOSPC", error.message);
    assert.equal(typeof error.fields.path, "string", error.message);
    assert.equal(error.fields.published, undefined, "it was taken back, and said so");
    return true;
  }
}

/** Leaves no room, once emptied folders have gone, which are removed beside everything else. */
async function fillUp({ operations, fill }: SmallDisk): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await operations.pause();
  fill();
}

/** Lets time pass, a little at a time since the disk takes its own, until a condition holds. */
async function passUntil(clock: ManualClock, condition: () => boolean): Promise<void> {
  for (let step = 0; !condition(); step++) {
    assert.ok(step < 2_000, "it comes to hold within 20 seconds");
    await clock.advance(10);
  }
}

/** Empties a queue; names by how often they came, those of dead letters among them. */
async function collect(jobs: FileBroker, clock: ManualClock): Promise<string[]> {
  const names: string[] = [];
  for (const step of [0, 100_000, 100_000]) {
    clock.set(clock.now() + step);
    for (let found = await jobs.receive(20); found.length > 0; found = await jobs.receive(20)) {
      names.push(...found.map(nameOf));
      await jobs.ackMany(found.map(({ lease }) => lease.receipt));
    }
  }
  names.push(...(await jobs.deadLetters({ max: 1_000 })).map(nameOf));
  return names.sort();
}

/** Uses a queue in every way while there is no room, and goes on when there is. */
export async function useFullDisk(disk: SmallDisk): Promise<void> {
  const clock = new ManualClock();
  const policy = { visibilityTimeout: 30_000, maxDeliveries: 5, retryDelay: 1_000 };
  await using jobs = await openFile({ dir: disk.dir, policy, clock }, disk.operations);
  const expected = new Set<string>();
  for (let index = 0; index < 20; index++) {
    await jobs.publish(bytesOf(`lone-${index}`));
    expected.add(`lone-${index}`);
  }
  const many = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  for (const { payload } of await jobs.publishMany(many.map(bytesOf))) {
    expected.add(nameOf({ message: { payload } } as Delivery));
  }
  await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
  const [letter] = await jobs.deadLetters({ max: 1 });
  const held = (await jobs.receive(7)).map((delivery) => ({ name: nameOf(delivery), receipt: delivery.lease.receipt }));
  const [acked, nacked, rejected, released, extended, ackedMany, ackedLast] = held;

  const copy = (name: string) => ({ ...letter!.message, id: "", payload: bytesOf(name) });
  const attempts: Record<string, (name: string) => Promise<unknown>> = {
    publish: (name) => jobs.publish(bytesOf(name), { headers: { about: name } }),
    publishPriority: (name) => jobs.publishPriority(bytesOf(name), 2),
    publishAt: (name) => jobs.publishAt(bytesOf(name), new Date(clock.now() + 5_000)),
    publishMany: (name) => jobs.publishMany([bytesOf(name)]),
    putMessage: (name) =>
      jobs.putMessage({ message: copy(name), visibleAt: new Date(0), deliveries: 1, leased: false, priority: 0 }),
    putDeadLetter: (name) => jobs.putDeadLetter({ ...letter!, message: copy(name) }),
  };
  let refused = 0;
  for (let round = 0; round < 3; round++) {
    for (const [verb, attempt] of Object.entries(attempts)) {
      await fillUp(disk);
      if (await isRefused(attempt(`${verb}-${round}`))) refused++;
      else expected.add(`${verb}-${round}`);
    }
  }
  assert.ok(refused >= 15, `${refused} refused`);
  await fillUp(disk);
  assert.ok(await isRefused(jobs.publishOnce("key", bytesOf("once"), 60_000)));

  // Whatever is refused leaves the lease with its holder, who tries again when there is room.
  await fillUp(disk);
  assert.ok(await isRefused(jobs.reject(rejected!.receipt, new TypeError())));
  await fillUp(disk);
  assert.ok(await isRefused(jobs.reject(rejected!.receipt, new TypeError())), "the second time too");
  await fillUp(disk);
  const nackedEarly = !await isRefused(jobs.nack(nacked!.receipt));
  await fillUp(disk);
  const releasedEarly = !await isRefused(jobs.release(released!.receipt));
  const { receipt } = await jobs.extend(extended!.receipt, 90_000);
  await fillUp(disk);
  const replayed = !await isRefused(jobs.replayDeadLetter(letter!.message.id));
  await fillUp(disk);
  const received: Delivery[] = [];
  const full = await isRefused(jobs.receive(5).then((found) => received.push(...found)));
  assert.ok(!full && received.length === 5, "a receive needs no room");
  received.forEach(nameOf);
  // An end frees what it was about.
  await jobs.ack(acked!.receipt);
  assert.deepEqual(await jobs.ackMany([ackedMany!.receipt, ackedLast!.receipt]), [1, 1]);
  for (const { name } of [acked!, ackedMany!, ackedLast!]) expected.delete(name);
  await fillUp(disk);
  assert.ok((await jobs.stats()).queued > 0);
  assert.ok((await jobs.messages({ max: 100 })).map(nameOf).length > 0);
  assert.equal((await jobs.deadLetters({ max: 10 })).length, replayed ? 0 : 1);
  await fillUp(disk);
  assert.ok(await isRefused(jobs.publish(bytesOf("still-full"))));

  disk.free();
  assert.equal((await jobs.publishOnce("key", bytesOf("once"), 60_000)).published, true, "nothing was reserved");
  expected.add("once");
  await jobs.reject(rejected!.receipt, new TypeError());
  if (!nackedEarly) await jobs.nack(nacked!.receipt);
  if (!releasedEarly) await jobs.release(released!.receipt);
  await jobs.ack(receipt);
  expected.delete(extended!.name);
  if (!replayed) await jobs.replayDeadLetter(letter!.message.id);
  const [buried] = await jobs.deadLetters({ max: 10 });
  assert.equal(buried!.cause, "TypeError", "the evidence is what it would have been");
  await jobs.publish(bytesOf("afterwards"));
  expected.add("afterwards");
  assert.deepEqual(await collect(jobs, clock), [...expected].sort());
}

/** Consumes while there is no room to bury in, and buries when there is. */
export async function consumeOnFullDisk(disk: SmallDisk): Promise<void> {
  const clock = new ManualClock();
  const policy = { visibilityTimeout: 30_000, maxDeliveries: 2 };
  await using jobs = await openFile({ dir: disk.dir, policy, clock }, disk.operations);
  await jobs.publishMany(["dies", "lives"].map(bytesOf));
  const start = (storagePatience: number) => {
    const stop = new AbortController();
    const events: ConsumeEvent[] = [];
    const handler = (delivery: Delivery) => {
      if (nameOf(delivery) === "dies") throw doNotRetry(new TypeError());
    };
    const done = consume(jobs, {
      handler,
      handlerIsIdempotent: true,
      storagePatience,
      clock,
      onEvent: (event) => events.push(event),
      signal: stop.signal,
    });
    const seen = (kind: string) => events.filter((event) => event.kind === kind);
    return { done, stop, seen, events };
  };
  await fillUp(disk);
  const impatient = start(0);
  await assert.rejects(impatient.done, (error) => isQueueError(error, "QUEUE_BACKEND_FAILED"));
  assert.deepEqual(impatient.seen("deadLettered"), []);
  // Its lease was not settled: it comes back with its end, one that was handed back at the stop too.
  clock.set(clock.now() + 30_000);

  // A journal gives blocks back some time after what held them has gone.
  await fillUp(disk);
  const patient = start(300_000);
  await clock.until(() => patient.seen("storageFailure").length > 0);
  await fillUp(disk);
  await passUntil(clock, () => patient.seen("storageFailure").length >= 3);
  for (const event of patient.seen("storageFailure")) {
    assert.ok(event.kind === "storageFailure" && event.operation === "reject" && event.retryIn! > 0);
    assert.ok(isQueueError(event.error, "QUEUE_BACKEND_FAILED") && event.error.fields.code === "ENOSPC");
  }
  disk.free();
  await passUntil(clock, () => patient.seen("deadLettered").length === 1);
  await clock.until(() => patient.seen("acknowledged").length + impatient.seen("acknowledged").length === 1);
  patient.stop.abort();
  await patient.done;
  assert.deepEqual(patient.seen("leaseLost"), []);
  const letters = await jobs.deadLetters({ max: 10 });
  assert.deepEqual(letters.map(({ reason, cause }) => [reason, cause]), [["NOT_RETRYABLE", "TypeError"]]);
  const { queued, leased } = await jobs.stats();
  assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 });
}

/** Receives while what has used up its attempts cannot be buried. */
export async function receiveOnFullDisk(disk: SmallDisk): Promise<void> {
  const clock = new ManualClock();
  const policy = { visibilityTimeout: 10_000, maxDeliveries: 1 };
  await using jobs = await openFile({ dir: disk.dir, policy, clock }, disk.operations);
  await jobs.publishMany(["one", "two"].map(bytesOf));
  assert.equal((await jobs.receive(2)).length, 2);
  clock.set(clock.now() + 10_000);
  await fillUp(disk);
  assert.ok(await isRefused(jobs.receive(1)), "nothing to hand out, and nowhere to bury");
  assert.deepEqual(await jobs.receive(1), [], "what is to be buried is in nobody's way");
  assert.equal((await jobs.stats()).leased, 2);
  clock.set(clock.now() + 30_000);
  await fillUp(disk);
  assert.ok(await isRefused(jobs.receive(1)), "and tried again in time");
  disk.free();
  clock.set(clock.now() + 30_000);
  await jobs.publish(bytesOf("three"));
  assert.deepEqual((await jobs.receive(1)).map(nameOf), ["three"]);
  assert.deepEqual((await jobs.deadLetters({ max: 5 })).map(nameOf), ["one", "two"]);
}
