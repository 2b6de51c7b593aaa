import assert from "node:assert/strict";
import { LeaseIndex, sharedLeaseBucket } from "../../../src/brokers/file/lease_index.ts";
import { NonceSource, renderEntry } from "../../../src/brokers/file/names.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, openQueue, textsOf, withMonotonicClock } from "./queue.ts";

/** Lets the buckets that receives asked for be made. */
async function letBucketsBeMade(operations: FileOperations): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await operations.pause();
}

/** An index over a directory of its own with one bucket, and a way to put leases into that. */
async function makeIndex(directory: string) {
  const operations = unflushedOperations();
  operations.makeDirectory(`${directory}/${sharedLeaseBucket}`);
  const nonces = new NonceSource();
  const index = new LeaseIndex({ operations, directory, nonces, bucketSize: 10, mayEnter: () => true });
  index.bucketFor(20_000);
  await index.idle();
  const bucket = index.bucketFor(20_000);
  const put = (instant: number) => {
    const entry = renderEntry({
      instant,
      state: "l",
      id: "01JGFJJZ00ABCDEFGHJKMNPQRS",
      enqueuedAt: 1,
      deliveries: 1,
      priority: 0,
      failure: "n",
      segment: "0123456789",
      offset: 0,
      length: 38,
      nonce: nonces.next(),
    });
    operations.close(operations.create(`${bucket.path}/${entry}`));
    index.hold(bucket, instant);
  };
  const take = (name: string) => operations.unlink(`${bucket.path}/${name}`);
  return { index, put, take };
}

test("a lease made while lapsed ones of its bucket are given out is not overlooked", async () => {
  using directory = temporaryDirectory();
  const { index, put, take } = await makeIndex(directory.path);
  put(20_000);
  put(20_001);
  put(27_000);
  const given: number[] = [];
  for (const { name } of index.lapsed(21_000, 100)) {
    given.push(Number(name.slice(0, 13)));
    take(name);
    // Another receive of this process gets its turn, and leases for less than what is left.
    if (given.length === 1) put(25_000);
  }
  assert.deepEqual(given.sort(), [20_000, 20_001]);
  assert.equal(index.firstDeadline(), 25_000);
  assert.deepEqual([...index.lapsed(24_999, 100)], []);
  assert.equal([...index.lapsed(25_000, 100)].length, 1);
});

test("lapsed leases that a receive did not get to are given out to the next", async () => {
  using directory = temporaryDirectory();
  const { index, put, take } = await makeIndex(directory.path);
  for (let lease = 0; lease < 5; lease++) put(20_000 + lease);
  for (const { name } of index.lapsed(20_010, 100)) {
    take(name);
    break;
  }
  let given = 0;
  for (const { name } of index.lapsed(20_010, 2)) {
    take(name);
    given++;
  }
  assert.equal(given, 2, "no more than it was asked for");
  assert.throws(() => {
    for (const _ of index.lapsed(20_010, 100)) throw new Error("refused");
  }, /refused/);
  assert.equal([...index.lapsed(20_010, 100)].length, 2);
});

test("hundreds of lapsed leases are reclaimed and buried over several calls, which come at once", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const policy = { visibilityTimeout: 2_000, maxDeliveries: 1 };
  await using jobs = await openQueue(directory.path, { clock, policy });
  await jobs.publishMany(Array.from({ length: 450 }, (_, index) => bytes(String(index))));
  assert.equal((await jobs.receive(450)).length, 450);
  clock.set(clock.now() + 2_000);
  let calls = 0;
  let dead = 0;
  while (dead < 450) {
    assert.deepEqual(await jobs.receive(10), []);
    const { dead: now } = await jobs.stats();
    assert.ok(now > dead, `call ${calls} buries some: ${now}`);
    assert.ok(now - dead <= 200, "and no more than its bound");
    dead = now;
    calls++;
    const { scheduled, in: wait } = jobs.wake();
    if (dead < 450) assert.ok(scheduled && wait <= 0, "the next call has work at once");
    else assert.ok(wait > 0, "there is nothing to do at once");
  }
  assert.ok(calls > 2);
  assert.equal((await jobs.stats()).leased, 0);
});

test("hundreds of lapsed leases with attempts left come back, all of them", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { visibilityTimeout: 2_000, maxDeliveries: 2 } });
  const texts = Array.from({ length: 700 }, (_, index) => String(index));
  await jobs.publishMany(texts.map(bytes));
  assert.equal((await jobs.receive(700)).length, 700);
  clock.set(clock.now() + 2_000);
  const again: string[] = [];
  for (let call = 0; call < 5; call++) {
    const found = await jobs.receive(700);
    for (const { deliveries } of found) assert.equal(deliveries, 2);
    again.push(...textsOf(found));
  }
  assert.deepEqual(again.map(Number).sort((a, b) => a - b), texts.map(Number));
});

test("leases of every length are kept apart and reclaimed each at its own deadline", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const start = clock.now();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 9 } });
  const lengths = [1, 9_999, 10_000, 10_001, 3_600_000, 86_400_000 * 400];
  for (const length of lengths) await jobs.publish(bytes(String(length)));
  for (const { lease, message } of await jobs.receive(9)) {
    const length = Number(new TextDecoder().decode(message.payload));
    const { expiresAt } = await jobs.extend(lease.receipt, length);
    assert.equal(expiresAt.getTime(), start + length);
    await letBucketsBeMade(unflushedOperations());
  }
  await using other = await openQueue(directory.path, { clock, policy: { maxDeliveries: 9 } });
  for (const length of lengths) {
    clock.set(start + length - 1);
    assert.deepEqual(textsOf(await other.receive(9)), [], `before ${length}`);
    clock.set(start + length);
    const [delivery] = await other.receive(9);
    assert.equal(new TextDecoder().decode(delivery!.message.payload), String(length));
    await jobs.ack(delivery!.lease.receipt);
  }
});

test("folders of leases go when their time is over, and those of long leases once they hold nothing", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await withMonotonicClock(async (pass) => {
    for (const visibilityTimeout of [30_000, 86_400_000]) {
      const operations = unflushedOperations();
      await using jobs = await openQueue(dir, { clock, operations, policy: { visibilityTimeout } });
      let most = 0;
      for (let round = 0; round < 60; round++) {
        await jobs.publish(bytes("x"));
        const [delivery] = await jobs.receive(1);
        await letBucketsBeMade(operations);
        await jobs.ack(delivery!.lease.receipt);
        clock.set(clock.now() + 10_000);
        pass(10_000);
        most = Math.max(most, foldersOf(dir, "leased").length);
      }
      assert.ok(most > 1, "it makes buckets of its own");
      assert.ok(most <= 8, `at most ${most} folders at once`);
    }
  });
  assert.ok(foldersOf(dir, "leased").includes(sharedLeaseBucket));
});

test("the shared bucket serves while none of its own can be made", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const inner = unflushedOperations();
  let refused = 0;
  const operations: FileOperations = {
    ...inner,
    makeDirectory(path) {
      if (path.includes("/leased/") && !path.endsWith(sharedLeaseBucket)) {
        refused++;
        throw Object.assign(new Error("full"), { code: "ENOSPC" });
      }
      inner.makeDirectory(path);
    },
  };
  await using jobs = await openQueue(dir, { clock, operations });
  await jobs.publishMany(Array.from({ length: 20 }, (_, index) => bytes(String(index))));
  for (let round = 0; round < 10; round++) {
    const [delivery] = await jobs.receive(1);
    await letBucketsBeMade(operations);
    if (round % 2 === 0) await jobs.ack(delivery!.lease.receipt);
  }
  assert.ok(refused > 1, "it is tried again");
  assert.deepEqual(foldersOf(dir, "leased"), [sharedLeaseBucket]);
  clock.set(clock.now() + 30_000);
  assert.equal((await jobs.receive(20)).length, 15);
});

test("an extended lease is out of reach from its old deadline to its new one, and its count stays", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const start = clock.now();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publish(bytes("held"));
  let { lease } = (await jobs.receive(1))[0]!;
  for (let renewal = 1; renewal <= 10; renewal++) {
    clock.set(start + renewal * 20_000);
    lease = await jobs.extend(lease.receipt, 30_000);
    assert.deepEqual(await jobs.receive(1), []);
  }
  clock.set(start + 200_000 + 30_000);
  const [again] = await jobs.receive(1);
  assert.equal(again!.deliveries, 2);
});

test("ackMany that was begun runs to its end when its signal aborts, and says what it did", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  await jobs.publishMany(Array.from({ length: 400 }, () => bytes("x")));
  const receipts = (await jobs.receive(400)).map(({ lease }) => lease.receipt);
  const stop = new AbortController();
  const acknowledging = jobs.ackMany(receipts, { signal: stop.signal });
  stop.abort();
  assert.deepEqual(await acknowledging, new Array(400).fill(1));
  await assert.rejects(jobs.ackMany(receipts, { signal: stop.signal }), stop.signal.reason);
});

test("a folder of leases that are over is not forgotten while something is left in it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  let uptime = 0;
  const inner = unflushedOperations();
  const operations: FileOperations = {
    ...inner,
    uptime: () => uptime,
    // No change of a folder is told of for a minute.
    status(path) {
      const status = inner.status(path);
      return status.kind === "directory" ? { ...status, changedAt: 1 } : status;
    },
  };
  await using jobs = await openQueue(directory.path, { clock, operations, policy: { maxDeliveries: 1 } });
  await jobs.publishMany(Array(260).fill(bytes("dies")));
  assert.equal((await jobs.receive(1)).length, 1);
  await letBucketsBeMade(operations);
  assert.equal((await jobs.receive(259)).length, 259);
  uptime = 10_000;
  clock.set(clock.now() + 60_000);
  for (let round = 0; round < 5; round++) {
    uptime += 100;
    assert.deepEqual(await jobs.receive(1), []);
  }
  // One call buries a hundred at most.
  assert.equal((await jobs.stats()).dead, 260);
});
