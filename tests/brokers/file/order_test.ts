import assert from "node:assert/strict";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf } from "./queue.ts";

const count = (length: number) => Array.from({ length }, (_, index) => String(index));

test("what is released comes before all that waits, in the order of publication", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  for (const text of count(30)) {
    await jobs.publish(bytes(text));
    clock.set(clock.now() + 1);
  }
  const found = await jobs.receive(20);
  for (const index of [7, 3, 19, 0, 11]) await jobs.release(found[index]!.lease.receipt);
  const [first] = await jobs.receive(1);
  assert.equal(first!.deliveries, 1, "a release is not counted");
  await jobs.release(first!.lease.receipt);
  assert.deepEqual(textsOf(await jobs.receive(7)), ["0", "3", "7", "11", "19", "20", "21"]);
});

test("thousands that are released come back in the order of publication, in a process of another's too", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const texts = count(1_300);
  await jobs.publishMany(texts.map(bytes));
  const found = await jobs.receive(1_200);
  // In no order at all.
  const shuffled = found.map((delivery, index) => ({ delivery, rank: (index * 7_919) % 1_200 }));
  shuffled.sort((a, b) => a.rank - b.rank);
  for (const { delivery } of shuffled) await jobs.release(delivery.lease.receipt);
  await using other = await openQueue(directory.path, { clock });
  assert.deepEqual(await drain(other, 100), texts);
});

test("a release with a delay waits, and then comes by its instant", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publishMany(["delayed", "now"].map(bytes));
  const [delayed] = await jobs.receive(1);
  await jobs.release(delayed!.lease.receipt, { delay: 1_000 });
  clock.set(clock.now() + 999);
  await jobs.publish(bytes("before it"));
  assert.deepEqual(textsOf(await jobs.receive(1)), ["now"]);
  clock.set(clock.now() + 1);
  await jobs.publish(bytes("after it"));
  const rest = await jobs.receive(9);
  // Uncounted it is as if it was never delivered, so of one instant the id decides.
  assert.deepEqual(textsOf(rest), ["before it", "delayed", "after it"]);
  assert.equal(rest[1]!.deliveries, 1);
});

test("what failed comes behind all that was visible before, and keeps its order among the failed", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 9 } });
  await jobs.publishMany(count(6).map(bytes));
  for (const { lease } of await jobs.receive(3)) await jobs.nack(lease.receipt);
  await jobs.publish(bytes("published in the same ms"));
  clock.set(clock.now() + 1);
  await jobs.publish(bytes("published later"));
  assert.deepEqual(await drain(jobs), ["3", "4", "5", "published in the same ms", "0", "1", "2", "published later"]);
});

test("retries of different delays come each at its instant, behind what waits longer", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const start = clock.now();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 9 } });
  await jobs.publishMany(count(5).map(bytes));
  for (const [index, { lease }] of (await jobs.receive(5)).entries()) {
    const { visibleAt } = await jobs.nackAfter(lease.receipt, undefined, 5_000 - index * 1_000);
    assert.equal(visibleAt!.getTime(), start + 5_000 - index * 1_000);
  }
  await jobs.publishAt(bytes("at 2,500"), new Date(start + 2_500));
  clock.set(start + 2_000);
  assert.deepEqual(await drain(jobs), ["3", "4"].reverse());
  clock.set(start + 5_000);
  assert.deepEqual(await drain(jobs), ["at 2,500", "2", "1", "0"]);
});

test("one producer's order holds over many buckets while others publish between", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const producers = await Promise.all([0, 1, 2].map(() => openQueue(directory.path, { clock })));
  const expected: string[] = [];
  for (let round = 0; round < 120; round++) {
    for (const [index, jobs] of producers.entries()) {
      clock.set(clock.now() + 1);
      const batch = count(5).map((text) => `${index}: ${round} ${text}`);
      await jobs.publishMany(batch.map(bytes));
      expected.push(...batch);
    }
  }
  assert.ok(foldersOf(directory.path, "ready").length > 3);
  await using consumer = await openQueue(directory.path, { clock });
  assert.deepEqual(await drain(consumer, 50), expected);
  await Promise.all(producers.map((jobs) => jobs.close()));
});

test("a copied message takes the place that its instant gives it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publishMany(count(3).map(bytes));
  const put = (text: string, visibleAt: number, deliveries = 0) =>
    jobs.putMessage({
      message: { id: "", enqueuedAt: new Date(clock.now() - 1e9), payload: bytes(text), headers: {} },
      visibleAt: new Date(visibleAt),
      deliveries,
      leased: false,
      priority: 0,
    });
  await put("older", clock.now() - 1_000, 2);
  await put("oldest", 0);
  await put("older still", clock.now() - 2_000);
  await put("later", clock.now() + 1_000);
  assert.deepEqual(await drain(jobs), ["oldest", "older still", "older", "0", "1", "2"]);
  clock.set(clock.now() + 1_000);
  assert.deepEqual(await drain(jobs), ["later"]);
});

test("thousands of copies with instants in no order do not make thousands of folders", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const instants = Array.from({ length: 1_500 }, (_, index) => 1e12 + ((index * 7_919 + 700) % 1_500) * 1_000);
  await Promise.all(instants.map((instant) =>
    jobs.putMessage({
      message: { id: "", enqueuedAt: new Date(1e12), payload: bytes(String(instant)), headers: {} },
      visibleAt: new Date(instant),
      deliveries: 0,
      leased: false,
      priority: 0,
    })
  ));
  const folders = foldersOf(directory.path, "ready").length;
  assert.ok(folders <= 30, `${folders} folders`);
  const texts = await drain(jobs);
  assert.deepEqual(texts.map(Number), instants.sort((a, b) => a - b));
});

for (const apart of [false, true]) {
  test(`what is handed back gets through while ${apart ? "another process" : "this one"} receives all the time`, async () => {
    using directory = temporaryDirectory();
    const inner = unflushedOperations();
    let uptime = 0;
    const made: string[] = [];
    const operations: FileOperations = {
      ...inner,
      makeDirectory(path) {
        made.push(path);
        inner.makeDirectory(path);
      },
      // A slow device: others get many turns before a new folder may be used.
      async flush() {
        for (let turn = 0; turn < 20; turn++) await inner.pause();
      },
    };
    await using jobs = await openQueue(directory.path, { operations, policy: { retryDelay: 10, maxDeliveries: 9 } });
    const others = { ...unflushedOperations(), uptime: () => uptime += 1_000 };
    await using busy = await openQueue(directory.path, { operations: apart ? others : operations });
    await jobs.publishMany(count(1_200).map(bytes));
    const [released, failed, delayed] = (await jobs.receive(3)).map(({ lease }) => lease.receipt);
    for (let turn = 0; turn < 50; turn++) await inner.pause();
    made.length = 0;
    let done = false;
    const handingBack = Promise.all([
      jobs.release(released!),
      jobs.nackAfter(failed!, undefined, 0),
      jobs.nack(delayed!),
    ]).finally(() => done = true);
    for (let receives = 0; !done; receives++) {
      assert.ok(receives < 1_000, "it takes no longer than a flush or two");
      await busy.receive(1);
      await inner.pause();
    }
    await handingBack;
    const folders = made.filter((path) => !path.includes("/leased/"));
    assert.ok(folders.length <= 3, `${folders.length} folders were made`);
  });
}
