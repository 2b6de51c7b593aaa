/**
 * The file broker under faked global timers and Date, nothing injected anywhere.
 */

import assert from "node:assert/strict";
import { setImmediate } from "node:timers";
import FakeTimers from "@sinonjs/fake-timers";
import { type FileBroker, newFile } from "../../../src/brokers/file/mod.ts";
import { consume, type ConsumeOptions } from "../../../src/consume/mod.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, textOf, textsOf } from "./queue.ts";

interface FakeTime {
  /** Moves the clock, and lets real I/O go on at both ends. */
  pass(ms: number): Promise<void>;
  /** Lets real I/O go on until a condition holds, without moving the clock. */
  until(condition: () => boolean): Promise<void>;
}

async function withFakeTime(
  policy: Partial<Policy>,
  body: (jobs: FileBroker, time: FakeTime) => Promise<void>,
): Promise<void> {
  using directory = temporaryDirectory();
  const clock = FakeTimers.install({
    now: Date.UTC(2026, 0, 1),
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  });
  const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));
  const until = async (condition: () => boolean) => {
    for (let turns = 0; !condition(); turns++) {
      assert.ok(turns < 200_000, `In vain: ${condition}`);
      await turn();
    }
  };
  const settle = async () => {
    for (let turns = 0; turns < 100; turns++) await turn();
  };
  const pass = async (ms: number) => {
    await settle();
    await clock.tickAsync(ms);
    await settle();
  };
  try {
    await using jobs = await newFile({
      dir: `${directory.path}/queue`,
      policy: { visibilityTimeout: 30_000, maxDeliveries: 3, ...policy },
    });
    await body(jobs, { pass, until });
    assert.equal(clock.countTimers(), 0, "no timer is left");
  } finally {
    clock.uninstall();
  }
}

/** Consumes until the returned function is called. */
function start(jobs: FileBroker, options: Partial<ConsumeOptions>): () => Promise<void> {
  const controller = new AbortController();
  const done = consume(jobs, {
    handler: () => {},
    handlerIsIdempotent: true,
    pollInterval: 3_600_000,
    signal: controller.signal,
    ...options,
  });
  return async () => {
    controller.abort();
    await done;
  };
}

test("under faked timers: a lease lapses at exactly its deadline", async () => {
  await withFakeTime({}, async (jobs, { pass }) => {
    await jobs.publish(bytes("held"));
    const [first] = await jobs.receive(1);
    assert.equal(first!.lease.expiresAt.getTime(), Date.UTC(2026, 0, 1) + 30_000);
    await pass(29_999);
    assert.deepEqual(await jobs.receive(1), []);
    assert.equal(jobs.wake().in, 1);
    await pass(1);
    const [again] = await jobs.receive(1);
    assert.equal(again!.deliveries, 2);
    await assert.rejects(jobs.ack(first!.lease.receipt), { reason: "LEASE_EXPIRED" });
    await jobs.ack(again!.lease.receipt);
  });
});

test("under faked timers: what is delayed and what is retried come at their instants", async () => {
  await withFakeTime({ retryDelay: 700 }, async (jobs, { pass }) => {
    await jobs.publishAt(bytes("later"), new Date(Date.now() + 1_000));
    await jobs.publish(bytes("failing"));
    const [failing] = await jobs.receive(2);
    await jobs.nack(failing!.lease.receipt);
    await pass(699);
    assert.deepEqual(await jobs.receive(2), []);
    await pass(1);
    assert.deepEqual(textsOf(await jobs.receive(2)), ["failing"]);
    await pass(300);
    assert.deepEqual(textsOf(await jobs.receive(2)), ["later"]);
  });
});

test("under faked timers: an idle consumer wakes for a delay and for a dead consumer's lease", async () => {
  await withFakeTime({}, async (jobs, { pass, until }) => {
    await jobs.publish(bytes("held"));
    assert.equal((await jobs.receive(1)).length, 1);
    await jobs.publishAt(bytes("later"), new Date(Date.now() + 5_000));
    const seen: [string, number][] = [];
    const begun = Date.now();
    const stop = start(jobs, {
      handler: ({ message }) => void seen.push([textOf(message.payload), Date.now() - begun]),
    });
    await pass(4_999);
    assert.deepEqual(seen, []);
    await pass(1);
    await until(() => seen.length === 1);
    await pass(25_000);
    await until(() => seen.length === 2);
    assert.deepEqual(seen, [["later", 5_000], ["held", 30_000]]);
    await stop();
    assert.equal((await jobs.stats()).queued, 0);
  });
});

test("under faked timers: a stop drains the running handler for as long as it may, and releases the rest", async () => {
  await withFakeTime({}, async (jobs, { pass, until }) => {
    await jobs.publishMany(["running", "next"].map(bytes));
    let running = false;
    let aborted = false;
    const stop = start(jobs, {
      batchSize: 2,
      drainTimeout: 4_000,
      handler: (_, { signal }) =>
        new Promise((_, reject) => {
          running = true;
          signal.addEventListener("abort", () => {
            aborted = true;
            reject(signal.reason);
          });
        }),
    });
    await until(() => running);
    const stopped = stop();
    await pass(3_999);
    assert.equal(aborted, false);
    await pass(1);
    await until(() => aborted);
    await stopped;
    const found = await jobs.receive(5);
    assert.deepEqual(textsOf(found), ["running", "next"]);
    assert.deepEqual(found.map(({ deliveries }) => deliveries), [1, 1], "uncounted");
  });
});

test("under faked timers: leases are renewed while a handler runs", async () => {
  await withFakeTime({}, async (jobs, { pass, until }) => {
    await jobs.publish(bytes("long"));
    let finish: () => void = () => {};
    let running = false;
    const stop = start(jobs, {
      autoExtend: true,
      handler: () => {
        running = true;
        return new Promise<void>((resolve) => finish = resolve);
      },
    });
    await until(() => running);
    for (let step = 0; step < 10; step++) {
      await pass(10_000);
      assert.deepEqual(await jobs.receive(1), [], "it is held");
    }
    finish();
    await pass(0);
    await stop();
    assert.equal((await jobs.stats()).leased, 0);
  });
});

test("under faked timers: dead letters go after their retention, and once keys after their window", async () => {
  await withFakeTime({ deadLetterRetention: 600_000 }, async (jobs, { pass }) => {
    assert.equal((await jobs.publishOnce("key", bytes("once"), 10_000)).published, true);
    await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
    await pass(9_999);
    assert.equal((await jobs.publishOnce("key", bytes("once"), 10_000)).published, false);
    await pass(1);
    assert.equal((await jobs.publishOnce("key", bytes("once"), 10_000)).published, true);
    await pass(600_000);
    await jobs.receive(1);
    assert.equal((await jobs.stats()).dead, 0);
  });
});
