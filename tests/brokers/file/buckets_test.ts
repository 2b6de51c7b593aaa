import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { Priority } from "../../../src/core/priority.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf, pathsBelow } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf, withMonotonicClock } from "./queue.ts";

const count = (length: number, start = 0) => Array.from({ length }, (_, index) => String(start + index));

test("more than one bucket of messages comes out in the order of publication", async () => {
  using directory = temporaryDirectory();
  await using producer = await openQueue(directory.path);
  const texts = count(2_600);
  await producer.publishMany(texts.slice(0, 1_300).map(bytes));
  for (const text of texts.slice(1_300, 1_320)) await producer.publish(bytes(text));
  await producer.publishMany(texts.slice(1_320).map(bytes));
  assert.ok(foldersOf(directory.path, "ready").length > 4);
  await using consumer = await openQueue(directory.path);
  assert.deepEqual(await drain(consumer, 90), texts);
  assert.deepEqual(await producer.receive(1), []);
});

test("all five levels mixed come out level by level, each in the order of publication", async () => {
  using directory = temporaryDirectory();
  const levels = [Priority.highest, Priority.high, Priority.normal, Priority.low, Priority.lowest] as const;
  const texts = count(1_500);
  const levelOf = (text: string) => levels[(Number(text) * 7) % 5]!;
  await using producer = await openQueue(directory.path);
  await using consumer = await openQueue(directory.path);
  await producer.publishMany(texts.map((text) => ({ payload: bytes(text), priority: levelOf(text) })));
  const expected = levels.flatMap((level) => texts.filter((text) => levelOf(text) === level));
  assert.deepEqual(await drain(consumer, 100), expected);
});

test("what waits never shares a file with what is visible, so that no old message keeps its neighbours' blocks", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const at = new Date(clock.now() + 1_000);
  await jobs.publishMany(
    count(30).map((text, index) => ({ payload: bytes(text), ...(index % 3 === 0 ? { at } : {}) })),
  );
  const segmentsOf = (state: "ready" | "delayed") =>
    new Set(entriesOf(directory.path, state).map(({ entry }) => entry.segment));
  const delayed = segmentsOf("delayed");
  assert.equal(entriesOf(directory.path, "delayed").length, 10);
  for (const segment of segmentsOf("ready")) assert.ok(!delayed.has(segment));
});

test("payloads of every size come out of their segments, whoever reads them", async () => {
  using directory = temporaryDirectory();
  await using producer = await openQueue(directory.path, { policy: { maxMessageBytes: 4_000_000 } });
  await using consumer = await openQueue(directory.path);
  const sizes = [0, 1, 64, 300_000, 1_048_576, 1_048_577, 0, 2_500_000, 700_000, 700_000, 5];
  const payloads = sizes.map((size, index) => new Uint8Array(size).fill(index + 1));
  await producer.publishMany(payloads);
  for (const payload of payloads) {
    const [delivery] = await consumer.receive(1);
    assert.equal(delivery!.message.payload.byteLength, payload.byteLength);
    assert.ok(Buffer.from(delivery!.message.payload).equals(payload));
    // What the consumer does to its copy is its own business.
    delivery!.message.payload.fill(0);
    await consumer.release(delivery!.lease.receipt);
    const [again] = await consumer.receive(1);
    assert.ok(Buffer.from(again!.message.payload).equals(payload));
    await consumer.ack(again!.lease.receipt);
  }
});

test("thousands due at one instant and thousands spread over a year split into folders, and come in order", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const start = clock.now();
  await using producer = await openQueue(dir, { clock });
  const instant = start + 40 * 86_400_000;
  const year = 365 * 86_400_000;
  const spread = Array.from(
    { length: 2_000 },
    (_, index) => start + 1 + Math.floor((index * 7_919 % 2_000) / 2_000 * year),
  );
  const items = [
    ...spread.map((at) => ({ payload: bytes(String(at)), at: new Date(at) })),
    ...Array.from({ length: 2_000 }, () => ({ payload: bytes(String(instant)), at: new Date(instant) })),
  ];
  await producer.publishMany(items);
  const { delayed, ready, nextDueAt } = await producer.stats();
  assert.deepEqual({ delayed, ready }, { delayed: 4_000, ready: 0 });
  assert.equal(nextDueAt!.getTime(), Math.min(...spread));
  const folders = foldersOf(dir, "delayed");
  assert.ok(folders.length < 400, `${folders.length} folders for a year`);
  for (const folder of folders) {
    const { length } = fs.readdirSync(`${dir}/delayed/${folder}`);
    assert.ok(length <= 500, `${length} in one folder`);
  }
  await using consumer = await openQueue(dir, { clock });
  let last = 0;
  let received = 0;
  while (received < 4_000) {
    const found = await consumer.receive(200);
    for (const text of textsOf(found)) {
      const due = Number(text);
      assert.ok(due <= clock.now(), "not before its instant");
      assert.ok(due >= last, "in the order of the instants");
      last = due;
    }
    received += found.length;
    await consumer.ackMany(found.map(({ lease }) => lease.receipt));
    if (found.length > 0) continue;
    const { scheduled, in: wait } = consumer.wake();
    assert.ok(scheduled && wait > 0);
    // A few steps of the wake, then leaps, so that some fall due together.
    clock.set(clock.now() + (received % 3 === 0 ? Math.max(wait, 10 * 86_400_000) : wait));
  }
  assert.deepEqual(await consumer.receive(1), []);
  assert.equal((await consumer.stats()).queued, 0);
});

test("spreading a batch over more folders than there are descriptors opens only a few at a time", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const inner = unflushedOperations();
  let open = 0;
  let most = 0;
  const operations: FileOperations = {
    ...inner,
    open(path) {
      most = Math.max(most, ++open);
      return inner.open(path);
    },
    flush: () => inner.pause(),
    close(descriptor) {
      open--;
      inner.close(descriptor);
    },
  };
  await using jobs = await openQueue(directory.path, { clock, operations });
  const day = 86_400_000;
  await jobs.publishMany(Array.from({ length: 600 }, (_, index) => ({
    payload: bytes("x"),
    at: new Date(clock.now() + 2 * day * (index + 1)),
  })));
  assert.ok(foldersOf(directory.path, "delayed").length >= 600);
  assert.ok(most <= 20, `${most} at once`);
});

test("emptied buckets are removed in time, full ones at once, and no folder grows", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await withMonotonicClock(async (pass) => {
    const operations = unflushedOperations();
    await using jobs = await openQueue(dir, {
      clock,
      operations,
      policy: { maxDeliveries: 1, deadLetterRetention: 60_000 },
    });
    let most = 0;
    for (let round = 0; round < 400; round++) {
      const payload = bytes(String(round));
      await Promise.all(
        Array.from({ length: 20 }, (_, index) => jobs.publish(payload, { priority: (index % 5 - 2) as 0 })),
      );
      await jobs.publishAt(payload, new Date(clock.now() + 1_000));
      await jobs.publishOnce(`key ${round}`, payload, 1_000);
      const found = await jobs.receive(25);
      const [dying, returning, ...others] = found.map(({ lease }) => lease.receipt);
      await jobs.reject(dying!);
      await jobs.release(returning!);
      await jobs.ackMany(others);
      clock.set(clock.now() + 10_000);
      pass(10_000);
      if (round % 20 === 19) most = Math.max(most, pathsBelow(dir).filter((path) => !path.startsWith("once/")).length);
    }
    assert.ok(most < 200, `${most} entries and folders after thousands of messages`);
    await drain(jobs);
    for (let round = 0; round < 4; round++) {
      clock.set(clock.now() + 60_000);
      pass(60_000);
      await drain(jobs);
    }
    const left = ["ready", "delayed", "leased", "dead", "pending", "tmp"].map((state) => foldersOf(dir, state).length);
    assert.deepEqual(left, [0, 0, 1, 0, 0, 1], "the shared bucket of leases, and the clock file");
    await jobs.publish(bytes("last"));
    assert.deepEqual(await drain(jobs), ["last"], "and all goes on");
  });
});

test("small steps of ten thousand round trips leave a handful of folders", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await openQueue(dir);
  for (let round = 0; round < 1_250; round++) {
    await Promise.all(Array.from({ length: 8 }, () => jobs.publish(bytes("x"))));
    const found = await jobs.receive(8);
    assert.equal(found.length, 8);
    await jobs.ackMany(found.map(({ lease }) => lease.receipt));
  }
  const paths = pathsBelow(dir);
  assert.ok(paths.length < 60, `${paths.length} entries and folders`);
});

test("a clock that steps back an hour keeps everything receivable, in the order of visibility", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const start = clock.now();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publish(bytes("before"));
  await jobs.publishAt(bytes("due before the step"), new Date(start + 1_000));
  await jobs.publish(bytes("to be held"));
  clock.set(start - 3_600_000);
  await jobs.publish(bytes("after"));
  await jobs.publishAt(bytes("due after the step"), new Date(start - 3_600_000 + 1_000));
  assert.deepEqual(textsOf(await jobs.receive(2)), ["after", "before"]);
  await using other = await openQueue(directory.path, { clock });
  assert.deepEqual(textsOf(await other.receive(9)), ["to be held"]);
  clock.set(start - 3_600_000 + 1_000);
  assert.deepEqual(textsOf(await other.receive(9)), ["due after the step"]);
  clock.set(start + 1_000);
  // What lapsed is visible from now on, in the order of publication.
  await using last = await openQueue(directory.path, { clock });
  assert.deepEqual(textsOf(await last.receive(9)), [
    "due before the step",
    "before",
    "to be held",
    "after",
    "due after the step",
  ]);
});

test("publishers whose clocks disagree share a queue, and the instants decide", async () => {
  using directory = temporaryDirectory();
  const operations = unflushedOperations();
  const clocks = [0, 3_600_000, -3_600_000, 60_000, -60_000, 1].map((offset) => new ManualClock(1e12 + offset));
  const brokers = await Promise.all(clocks.map((clock) => openQueue(directory.path, { clock, operations })));
  const expected: [number, string][] = [];
  for (let round = 0; round < 40; round++) {
    for (const [index, jobs] of brokers.entries()) {
      clocks[index]!.set(clocks[index]!.now() + 10);
      expected.push([clocks[index]!.now(), `${index}: ${round}`]);
      await jobs.publish(bytes(`${index}: ${round}`));
    }
  }
  await using consumer = await openQueue(directory.path, { clock: clocks[1]! });
  expected.sort(([a], [b]) => a - b);
  assert.deepEqual(await drain(consumer, 7), expected.map(([, text]) => text));
  assert.ok(entriesOf(directory.path, "ready").length === 0);
  await Promise.all(brokers.map((jobs) => jobs.close()));
});

test("a publication into a bucket that a reader removes meanwhile is not lost", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const inner = unflushedOperations();
  let removals = 0;
  const operations: FileOperations = {
    ...inner,
    // Before every name is given, somebody removes the folder that it would lie in, as long as it is empty.
    rename(from, to) {
      if (from.startsWith(`${dir}/tmp/`) && removals++ % 3 < 2) remove(to);
      inner.rename(from, to);
    },
    link(existing, name) {
      if (removals++ % 3 < 2) remove(name);
      inner.link(existing, name);
    },
  };
  const remove = (path: string) => {
    try {
      fs.rmdirSync(path.slice(0, path.lastIndexOf("/")));
    } catch {
      // Something is in it.
    }
  };
  await using jobs = await openQueue(dir, { operations });
  await jobs.publish(bytes("0"));
  await jobs.publishMany(["1", "2", "3"].map(bytes));
  assert.deepEqual(await drain(jobs), ["0", "1", "2", "3"]);
  for (const text of count(5)) {
    await jobs.publish(bytes(text));
    assert.deepEqual(await drain(jobs), [text]);
  }
  assert.ok(removals > 5);
});

test("a bucket that a reader emptied and removed before its flush does not fail the publication", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const inner = unflushedOperations();
  await using reader = await openQueue(dir);
  const taken: string[] = [];
  let interfering = true;
  const operations: FileOperations = {
    ...inner,
    open(path) {
      if (interfering && /\/ready\/./.test(path)) {
        interfering = false;
        for (const name of fs.readdirSync(path)) {
          fs.renameSync(`${path}/${name}`, `${dir}/damaged/${name}`);
          taken.push(name);
        }
        fs.rmdirSync(path);
      }
      return inner.open(path);
    },
  };
  await using jobs = await openQueue(dir, { operations });
  await jobs.publish(bytes("taken at once"));
  assert.equal(taken.length, 1);
  await jobs.publish(bytes("next"));
  assert.deepEqual(await drain(reader), ["next"]);
});
