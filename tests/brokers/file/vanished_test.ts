import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { isQueueError } from "../../../src/core/error.ts";
import type { Receipt } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, drain, openQueue, withMonotonicClock } from "./queue.ts";

type Call = (jobs: FileBroker, receipt: Receipt) => Promise<unknown>;

const calls: Record<string, Call> = {
  publish: (jobs) => jobs.publish(bytes("x")),
  publishAt: (jobs) => jobs.publishAt(bytes("x"), new Date(Date.UTC(2030, 0, 1))),
  publishOnce: (jobs) => jobs.publishOnce("key", bytes("x"), 1_000),
  publishMany: (jobs) => jobs.publishMany([bytes("x"), bytes("y")]),
  receive: (jobs) => jobs.receive(5),
  ack: (jobs, receipt) => jobs.ack(receipt),
  ackMany: (jobs, receipt) => jobs.ackMany([receipt]),
  nack: (jobs, receipt) => jobs.nack(receipt),
  reject: (jobs, receipt) => jobs.reject(receipt),
  release: (jobs, receipt) => jobs.release(receipt),
  extend: (jobs, receipt) => jobs.extend(receipt, 1_000),
  deadLetters: (jobs) => jobs.deadLetters({ max: 5 }),
  replayDeadLetters: (jobs) => jobs.replayDeadLetters({ max: 5 }),
  purgeDeadLetters: (jobs) => jobs.purgeDeadLetters({ before: new Date(), max: 5 }),
  stats: (jobs) => jobs.stats(),
  messages: (jobs) => jobs.messages({ max: 5 }),
  allMessages: (jobs) => Array.fromAsync(jobs.allMessages()),
  purge: (jobs) => jobs.purge(),
};

/** Which calls need which folder, so that none of them may pretend that all is well without it. */
const needs: Record<string, readonly string[]> = {
  "": Object.keys(calls),
  tmp: ["publish", "publishAt", "publishMany", "reject"],
  ready: ["publish", "publishMany", "receive", "release", "stats", "messages", "allMessages", "purge"],
  delayed: ["publishAt", "receive", "stats", "messages", "allMessages", "purge"],
  leased: ["receive", "ack", "ackMany", "nack", "reject", "release", "extend", "stats", "messages", "purge"],
  dead: ["deadLetters", "replayDeadLetters", "purgeDeadLetters", "reject", "stats"],
  once: ["publishOnce"],
  pending: ["publishOnce", "receive"],
};

for (const [folder, affected] of Object.entries(needs)) {
  test(`${folder === "" ? "a directory" : `the folder "${folder}"`} that vanishes is told, not passed over`, async () => {
    for (const name of affected) {
      using directory = temporaryDirectory();
      const dir = `${directory.path}/queue`;
      await withMonotonicClock(async (pass) => {
        await using jobs = await openQueue(dir, { clock: new ManualClock() });
        await jobs.publishMany(["held", "waiting"].map(bytes));
        await jobs.publishAt(bytes("later"), new Date(Date.UTC(2030, 0, 1)));
        const [held] = await jobs.receive(1);
        fs.rmSync(folder === "" ? dir : `${dir}/${folder}`, { recursive: true });
        pass(1_000);
        await assert.rejects(
          calls[name]!(jobs, held!.lease.receipt),
          (error) => isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === "ENOENT",
          name,
        );
      });
    }
  });
}

test("a damaged message is not lost from sight when there is nowhere to put it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publish(bytes("damaged"));
  for (const folder of fs.readdirSync(`${directory.path}/ready`)) {
    for (const name of fs.readdirSync(`${directory.path}/ready/${folder}`)) {
      fs.truncateSync(`${directory.path}/ready/${folder}/${name}`);
    }
  }
  fs.rmdirSync(`${directory.path}/damaged`);
  await assert.rejects(jobs.receive(1), { reason: "QUEUE_BACKEND_FAILED" });
  assert.equal((await jobs.stats()).leased, 1);
  fs.mkdirSync(`${directory.path}/damaged`, 0o700);
  clock.set(clock.now() + 30_000);
  assert.deepEqual(await jobs.receive(1), []);
  assert.equal(fs.readdirSync(`${directory.path}/damaged`).length, 1);
});

test("a folder of messages that somebody else removed is made anew", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await using jobs = await openQueue(dir, { clock });
  const removeBuckets = () => {
    for (const state of ["ready", "delayed", "leased", "once", "dead"]) {
      for (const folder of fs.readdirSync(`${dir}/${state}`)) {
        fs.rmSync(`${dir}/${state}/${folder}`, { recursive: true });
        // The one that is there from the start, and nobody makes again.
        if (folder.startsWith("0000000000000-0000000000")) fs.mkdirSync(`${dir}/${state}/${folder}`, 0o700);
      }
    }
  };
  for (let round = 0; round < 3; round++) {
    await jobs.publish(bytes("first"));
    await jobs.publishAt(bytes("later"), new Date(clock.now() + 1_000));
    await jobs.publishOnce("key", bytes("once"), 1_000);
    await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
    await jobs.receive(1);
    removeBuckets();
    await jobs.publish(bytes("second"));
    await jobs.publishAt(bytes("later"), new Date(clock.now() + 1_000));
    assert.equal((await jobs.publishOnce("key", bytes("once"), 1_000)).published, true);
    clock.set(clock.now() + 60_000);
    assert.deepEqual((await drain(jobs)).sort(), ["later", "once", "second"]);
    assert.equal((await jobs.stats()).queued, 0);
  }
});

test("the file that watchers see is made anew when somebody removed it", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  await using other = await openQueue(directory.path);
  await using _watch = other.watch();
  for (let round = 0; round < 2; round++) {
    fs.unlinkSync(`${directory.path}/wake/signal`);
    const { signal } = other.wake();
    const woken = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await jobs.publish(bytes("x"));
    await woken;
    assert.ok(fs.existsSync(`${directory.path}/wake/signal`));
  }
});

test("a message that is purged while it is being rejected is not said to be dead", async () => {
  using dir = temporaryDirectory();
  const inner = unflushedOperations();
  let purges = false;
  const rename = (from: string, to: string) => {
    inner.rename(from, to);
    if (purges) inner.unlink(to);
  };
  const jobs = await openQueue(dir.path, { operations: { ...inner, rename }, policy: { maxDeliveries: 1 } });
  await jobs.publish(bytes("one"));
  await jobs.publish(bytes("two"));
  const [first, second] = await jobs.receive(2);
  purges = true;
  await assert.rejects(jobs.reject(first!.lease.receipt), { reason: "LEASE_EXPIRED" });
  await assert.rejects(jobs.nack(second!.lease.receipt), { reason: "LEASE_EXPIRED" });
  assert.deepEqual(await jobs.deadLetters({ max: 10 }), []);
  await jobs.close();
});
