/**
 * Several brokers on one directory: in one process, where they share what they know, and as if in processes of their own.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import { type FileBroker, newFile } from "../../../src/brokers/file/mod.ts";
import { openFile } from "../../../src/brokers/file/new_file.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { AckOutcome } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, drain, openQueue, textsOf, withMonotonicClock } from "./queue.ts";

const policy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 3 };

test("brokers of one process share a wake, through a link to the directory too", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  fs.symlinkSync(dir, `${directory.path}/link`);
  await using one = await newFile({ dir, policy });
  await using linked = await newFile({ dir: `${directory.path}/link`, policy });
  await using slashed = await newFile({ dir: `${dir}//`, policy });
  await using elsewhere = await newFile({ dir: `${directory.path}/elsewhere`, policy });
  const signals = [one, linked, slashed].map((jobs) => jobs.wake().signal);
  const other = elsewhere.wake().signal;
  await linked.publish(bytes("x"));
  assert.deepEqual(signals.map(({ aborted }) => aborted), [true, true, true]);
  assert.equal(other.aborted, false);
});

/** Runs a body with two brokers of one process, then with two that could be in processes of their own. */
function testPair(name: string, body: (one: FileBroker, two: FileBroker, clock: ManualClock) => Promise<void>): void {
  for (const apart of [false, true]) {
    test(`${name}, ${apart ? "as processes" : "in one process"}`, async () => {
      using directory = temporaryDirectory();
      const clock = new ManualClock();
      const shared = unflushedOperations();
      await using one = await openQueue(directory.path, { clock, operations: shared });
      const operations = apart ? unflushedOperations() : shared;
      await using two = await openQueue(directory.path, { clock, operations });
      await body(one, two, clock);
    });
  }
}

testPair("either broker may settle the other's leases in every way", async (one, two, clock) => {
  await one.publishMany(["ack", "nack", "reject", "release", "extend", "many"].map(bytes));
  const [ack, nack, reject, release, extend, many] = (await one.receive(6)).map(({ lease }) => lease.receipt);
  assert.deepEqual(await two.receive(6), [], "its leases are respected");
  await two.ack(ack!);
  assert.equal((await two.nackAfter(nack!, undefined, 5_000)).deliveries, 1);
  await two.reject(reject!);
  await two.release(release!);
  const { receipt } = await two.extend(extend!, 60_000);
  assert.deepEqual(await two.ackMany([many!, ack!, nack!, reject!, release!, extend!]), [
    AckOutcome.acknowledged,
    ...Array(5).fill(AckOutcome.leaseExpired),
  ]);
  await one.ack(receipt);
  assert.deepEqual(textsOf(await one.receive(6)), ["release"]);
  clock.set(clock.now() + 5_000);
  assert.deepEqual(textsOf(await one.receive(6)), ["nack"]);
  assert.equal((await one.deadLetters({ max: 5 })).length, 1);
});

testPair("a lease that lapsed is delivered by whoever looks next", async (one, two, clock) => {
  await one.publish(bytes("held"));
  await one.receive(1);
  clock.set(clock.now() + 29_999);
  assert.deepEqual(await two.receive(1), []);
  assert.deepEqual(two.wake().scheduled && two.wake().in, 1);
  clock.set(clock.now() + 1);
  const [again] = await two.receive(1);
  assert.equal(again!.deliveries, 2);
  assert.deepEqual(again!.lastFailure, { reason: "LEASE_EXPIRED", code: 0 });
  await two.ack(again!.lease.receipt);
  assert.deepEqual(await one.receive(1), []);
});

testPair("what one purges, the other's consumers have lost", async (one, two) => {
  await one.publishMany(["held", "waiting"].map(bytes));
  const [held] = await one.receive(1);
  assert.deepEqual(await two.purge(), { queued: 1, leased: 1 });
  await assert.rejects(one.ack(held!.lease.receipt), { reason: "LEASE_EXPIRED" });
  assert.deepEqual(await one.receive(5), []);
  await two.publish(bytes("new"));
  assert.deepEqual(await drain(one), ["new"]);
});

testPair("what one publishes, delays, buries and replays, the other finds", async (one, two, clock) => {
  await one.publish(bytes("now"));
  await one.publishAt(bytes("later"), new Date(clock.now() + 1_000));
  await one.publish(bytes("high"), { priority: 2 });
  const [high, now] = await two.receive(10);
  assert.deepEqual(textsOf([high!, now!]), ["high", "now"]);
  await two.reject(high!.lease.receipt);
  await two.ack(now!.lease.receipt);
  const [letter] = await one.deadLetters({ max: 1 });
  await one.replayDeadLetter(letter!.message.id);
  await assert.rejects(two.replayDeadLetter(letter!.message.id), { reason: "DEAD_LETTER_NOT_FOUND" });
  clock.set(clock.now() + 1_000);
  // Which is first depends on whether two has looked again for what one did.
  assert.deepEqual((await drain(two)).sort(), ["high", "later"]);
  assert.equal((await one.stats()).queued, 0);
});

testPair("a message nacked by one is not seen early by the other", async (one, two, clock) => {
  await one.publish(bytes("retry"));
  const [first] = await one.receive(1);
  await one.nackAfter(first!.lease.receipt, undefined, 500);
  clock.set(clock.now() + 499);
  assert.deepEqual(await two.receive(1), []);
  assert.equal(two.wake().in, 1);
  clock.set(clock.now() + 1);
  assert.deepEqual(textsOf(await two.receive(1)), ["retry"]);
});

testPair("many consumers that race get every message once", async (one, two) => {
  const texts = Array.from({ length: 600 }, (_, index) => String(index));
  await Promise.all([one.publishMany(texts.slice(0, 300).map(bytes)), two.publishMany(texts.slice(300).map(bytes))]);
  const drained = await Promise.all([drain(one, 7), drain(two, 5), drain(one, 11), drain(two, 1)]);
  assert.deepEqual(drained.flat().map(Number).sort((a, b) => a - b), texts.map(Number));
});

test("each broker applies its own policy", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const operations = unflushedOperations();
  const open = (policy: Partial<Policy>) => openQueue(directory.path, { clock, policy, operations });
  await using patient = await open({ maxDeliveries: 5, visibilityTimeout: 10_000, retryDelay: 1_000 });
  await using strict = await open({ maxDeliveries: 1, visibilityTimeout: 1_000, maxMessageBytes: 8, maxAge: 100_000 });
  await patient.publish(new Uint8Array(9));
  await assert.rejects(strict.publish(new Uint8Array(9)), { reason: "MESSAGE_TOO_LARGE" });
  const start = clock.now();
  const [first] = await patient.receive(1);
  assert.equal(first!.lease.expiresAt.getTime(), start + 10_000);
  const { visibleAt } = await patient.nack(first!.lease.receipt);
  assert.equal(visibleAt!.getTime(), start + 1_000);
  clock.set(start + 1_000);
  const [second] = await strict.receive(1);
  assert.equal(second!.lease.expiresAt.getTime(), start + 2_000);
  assert.equal((await strict.nack(second!.lease.receipt)).deadLettered, true, "two deliveries are more than its one");
  await patient.replayDeadLetters({ max: 1 });
  clock.set(start + 100_000);
  assert.deepEqual(await strict.receive(1), [], "too old for this one");
  assert.equal((await patient.deadLetters({ max: 1 }))[0]!.reason, "MESSAGE_EXPIRED");
  await patient.replayDeadLetters({ max: 1 });
  assert.equal((await patient.receive(1)).length, 1, "and not for that one");
});

test("a reclaimed lease is buried or handed back by the policy of whoever reclaims it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using patient = await openQueue(directory.path, { clock, policy: { maxDeliveries: 5 } });
  await using strict = await openQueue(directory.path, { clock, policy: { maxDeliveries: 1 } });
  await patient.publishMany(["one", "two"].map(bytes));
  await patient.receive(1);
  clock.set(clock.now() + 30_000);
  assert.deepEqual(textsOf(await patient.receive(2)), ["two", "one"]);
  clock.set(clock.now() + 30_000);
  assert.deepEqual(await strict.receive(2), []);
  assert.equal((await strict.stats()).dead, 2);
});

test("closing one broker leaves the others of its directory open; a closed one refuses every call", async () => {
  using directory = temporaryDirectory();
  const operations = unflushedOperations();
  const one = await openQueue(directory.path, { operations });
  await using two = await openQueue(directory.path, { operations });
  await one.publish(bytes("x"));
  await one.close();
  await one.close();
  await assert.rejects(one.receive(1), { reason: "QUEUE_CLOSED" });
  assert.throws(() => one.wake(), { reason: "QUEUE_CLOSED" });
  assert.throws(() => one.watch(), { reason: "QUEUE_CLOSED" });
  await assert.rejects(Array.fromAsync(one.allMessages()), { reason: "QUEUE_CLOSED" });
  assert.deepEqual(textsOf(await two.receive(1)), ["x"]);
});

test("closing one broker does not wait for another that never rests", async () => {
  using directory = temporaryDirectory();
  const operations = unflushedOperations();
  const one = await openQueue(directory.path, { operations });
  await using busy = await openQueue(directory.path, { operations });
  let stopped = false;
  let published = 0;
  const publishing = (async () => {
    // Always one on its way: the next is published before the last has resolved.
    let last: Promise<unknown> = Promise.resolve();
    for (; !stopped && published < 100_000; published++) {
      const next = busy.publish(bytes("x"));
      await last;
      last = next;
    }
    await last;
  })();
  await one.publish(bytes("mine"));
  await one.close();
  assert.ok(published < 100_000);
  stopped = true;
  await publishing;
});

test("close waits for the calls that are under way", async () => {
  using directory = temporaryDirectory();
  const inner = unflushedOperations();
  let flushes: (() => void)[] = [];
  const operations = { ...inner, flush: () => new Promise<void>((resolve) => flushes.push(resolve)) };
  /** Lets flushes end until something is done. */
  const flushUntil = async (done: Promise<unknown>) => {
    let ended = false;
    done.finally(() => ended = true).catch(() => {});
    while (!ended) {
      for (const end of flushes) end();
      flushes = [];
      await inner.pause();
    }
  };
  const opening = openFile({ dir: directory.path, policy }, operations);
  await flushUntil(opening);
  const jobs = await opening;
  const publishing = jobs.publish(bytes("x"));
  let closed = false;
  const closing = jobs.close().then(() => closed = true);
  for (let turn = 0; turn < 20; turn++) await inner.pause();
  assert.equal(closed, false);
  await flushUntil(publishing);
  await Promise.all([publishing, closing]);
});

test("a directory is forgotten with its last broker, and opened anew", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const operations = unflushedOperations();
  {
    await using one = await openQueue(dir, { operations });
    await one.publish(bytes("gone"));
    await one.receive(1);
  }
  fs.rmSync(dir, { recursive: true });
  await using again = await openQueue(dir, { operations });
  await again.publish(bytes("new"));
  assert.deepEqual(await drain(again), ["new"]);
});

test("a high priority that another process publishes late is received next", async () => {
  using directory = temporaryDirectory();
  await withMonotonicClock(async (pass) => {
    await using producer = await openQueue(directory.path);
    await using consumer = await openQueue(directory.path);
    await producer.publishMany(Array.from({ length: 1_200 }, (_, index) => bytes(`low ${index}`)));
    assert.deepEqual(textsOf(await consumer.receive(2)), ["low 0", "low 1"]);
    await producer.publish(bytes("high"), { priority: 2 });
    await producer.publish(bytes("lowest"), { priority: -2 });
    // It looks at what others did every so often, not at every call.
    pass(10_000);
    assert.deepEqual(textsOf(await consumer.receive(2)), ["high", "low 2"]);
    const rest = await drain(consumer);
    assert.equal(rest.length, 1_198);
    assert.equal(rest.at(-1), "lowest");
  });
});

test("processes that take turns at one backlog seldom run for the same message", async () => {
  using directory = temporaryDirectory();
  let claims = 0;
  let lost = 0;
  const open = () => {
    const inner = unflushedOperations();
    const rename = (from: string, to: string) => {
      const isClaim = from.includes("/ready/") && to.includes("/leased/");
      if (isClaim) claims++;
      try {
        inner.rename(from, to);
      } catch (error) {
        if (isClaim) lost++;
        throw error;
      }
    };
    // Their clocks stand, so nobody looks for what the others did while there is something left to try.
    return openQueue(directory.path, { operations: { ...inner, rename, uptime: () => 0 } });
  };
  await using first = await open();
  await using second = await open();
  await using third = await open();
  await using fourth = await open();
  const count = 2_000;
  await first.publishMany(Array.from({ length: count }, (_, index) => bytes(`message ${index}`)));
  const processes = [first, second, third, fourth];
  const seen: string[] = [];
  for (let turn = 0; seen.length < count; turn++) {
    const [delivery] = await processes[turn % processes.length]!.receive(1);
    assert.ok(delivery !== undefined, "there is something for everybody");
    seen.push(textsOf([delivery])[0]!);
  }
  assert.equal(new Set(seen).size, count);
  assert.ok(lost <= claims / 10, `${lost} of ${claims} claims were lost`);
});
