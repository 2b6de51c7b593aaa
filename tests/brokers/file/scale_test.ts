/**
 * What a large queue costs, in operations and folders rather than in time.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import { openFile } from "../../../src/brokers/file/new_file.ts";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { queueSizes } from "../../../src/brokers/file/queue_directory.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { longestDelay, queueShapes } from "../../support/queue_shapes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { SeededRandom } from "../memory/random.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf } from "./queue.ts";

const day = 86_400_000;
const policy = { visibilityTimeout: 30_000, maxDeliveries: 3 };

/** Operations that are counted: the calls, the names that listings gave, and the most calls between two turns. */
function counted() {
  const inner = unflushedOperations();
  const seen = { calls: 0, names: 0, sinceTurn: 0, most: 0, listed: [] as string[] };
  const free = new Set(["uptime", "pause", "flush", "sha256", "isPermitted", "resolve"]);
  const operations = { ...inner } as Record<string, unknown>;
  for (const [name, call] of Object.entries(inner)) {
    if (free.has(name)) continue;
    operations[name] = (...args: never[]) => {
      seen.calls++;
      seen.most = Math.max(seen.most, ++seen.sinceTurn);
      const result = (call as (...args: never[]) => unknown)(...args);
      if (name === "list") {
        seen.names += (result as string[]).length;
        seen.listed.push(args[0]!);
      }
      return result;
    };
  }
  operations.pause = () => {
    seen.sinceTurn = 0;
    return inner.pause();
  };
  return { operations: operations as unknown as FileOperations, seen };
}

/** Calls and listed names for each of some messages, received and acknowledged one by one by a process that has just opened. */
async function costOf(shape: string, count: number): Promise<{ calls: number; names: number; received: number }> {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await queueShapes[shape]!((policy) => openQueue(directory.path, { clock, policy }), count, clock);
  clock.set(clock.now() + longestDelay);
  const { operations, seen } = counted();
  // One look is all there is time for, however slow the machine.
  await using jobs = await openQueue(directory.path, { clock, operations: { ...operations, uptime: () => 0 } });
  // The first one pays for what opening looks at.
  await take(jobs);
  Object.assign(seen, { calls: 0, names: 0 });
  let received = 0;
  while (received < 400 && await take(jobs)) received++;
  return { calls: seen.calls / received, names: seen.names / received, received };
}

async function take(jobs: FileBroker): Promise<boolean> {
  const [delivery] = await jobs.receive(1);
  if (delivery !== undefined) await jobs.ack(delivery.lease.receipt);
  return delivery !== undefined;
}

for (const shape of Object.keys(queueShapes)) {
  test(`a receive asks the file system for as much with 12,000 waiting as with 1,000: ${shape}`, async () => {
    const shallow = await costOf(shape, 1_000);
    const deep = await costOf(shape, 12_000);
    assert.deepEqual([shallow.received, deep.received], [400, 400]);
    assert.ok(deep.calls < 8, `${deep.calls} calls a message`);
    assert.ok(deep.calls <= shallow.calls * 1.5 + 1, `${shallow.calls} calls a message became ${deep.calls}`);
    assert.ok(deep.names < 20, `${deep.names} names listed a message`);
  });
}

test("a thousand processes that publish one message each share folders, and the order holds", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const texts = Array.from({ length: 1_100 }, (_, index) => String(index));
  for (const text of texts) {
    clock.set(clock.now() + 1);
    await using jobs = await openQueue(dir, { clock });
    await jobs.publish(bytes(text));
  }
  const folders = foldersOf(dir, "ready");
  assert.ok(folders.length <= 4, `${folders.length} folders`);
  for (const folder of folders) assert.ok(fs.readdirSync(`${dir}/ready/${folder}`).length <= 500);
  await using consumer = await openQueue(dir, { clock });
  assert.deepEqual(await drain(consumer, 100), texts);
});

test("hundreds of processes that publish one message for later each share the folders of their ranges", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const start = clock.now();
  const random = new SeededRandom(2);
  const dues = Array.from({ length: 600 }, () => start + 1_000 + random.below(7 * day));
  for (const due of dues) {
    await using jobs = await openQueue(dir, { clock });
    await jobs.publishAt(bytes(String(due)), new Date(due));
  }
  const folders = foldersOf(dir, "delayed");
  assert.ok(folders.length <= 9, `${folders.length} folders for ranges of 27.8 hours`);
  clock.set(start + 8 * day);
  await using consumer = await openQueue(dir, { clock });
  assert.deepEqual((await drain(consumer)).map(Number), dues.toSorted((a, b) => a - b));
});

test("a folder that another process's publications fill too is not forgotten for what they put there", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using first = await openQueue(directory.path, { clock });
  await first.publish(bytes("first"));
  await using second = await openQueue(directory.path, { clock });
  clock.set(clock.now() + 1);
  await second.publish(bytes("second"));
  assert.equal(foldersOf(directory.path, "ready").length, 1);
  assert.deepEqual(textsOf(await first.receive(9)), ["first", "second"]);
  await second.publish(bytes("third"));
  assert.deepEqual(textsOf(await first.receive(9)), ["third"]);
  assert.deepEqual(await second.receive(9), []);
});

test("a publisher whose clock goes back at every message does not leave a folder a message", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  for (let index = 0; index < 400; index++) {
    clock.set(clock.now() - 1_000);
    await jobs.publish(bytes(String(index)));
  }
  const folders = foldersOf(directory.path, "ready");
  assert.ok(folders.length <= 10, `${folders.length} folders`);
  assert.equal((await drain(jobs)).length, 400);
});

test("folders that were all emptied are removed a few to a turn of the event loop", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const sizes = { ...queueSizes, waitingBucket: 4 };
  const config = { dir: directory.path, policy, clock };
  {
    await using jobs = await openFile(config, unflushedOperations(), sizes);
    await jobs.publishMany(Array(1_200).fill(bytes("x")));
    assert.equal(foldersOf(directory.path, "ready").length, 300);
    await jobs.purge();
  }
  const { operations, seen } = counted();
  // Each call takes a fifth of a slice.
  await using jobs = await openFile(config, { ...operations, uptime: () => seen.calls }, sizes);
  assert.deepEqual(await jobs.receive(1), []);
  assert.ok(foldersOf(directory.path, "ready").length <= 1, "they are gone");
  assert.ok(seen.most < 50, `${seen.most} calls without a turn`);
});

test("of folders that dead processes left empty only a few are looked into again", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const { operations, seen } = counted();
  await using consumer = await openQueue(directory.path, { clock, operations });
  // All open before the first publishes, so that none finds a folder of another.
  const writers = await Promise.all(Array.from({ length: 60 }, () => openQueue(directory.path, { clock })));
  for (const jobs of writers) await jobs.publish(bytes("x"));
  assert.equal(foldersOf(directory.path, "ready").length, 60);
  assert.equal((await drain(consumer, 7)).length, 60);
  seen.listed.length = 0;
  assert.deepEqual(await consumer.receive(1), []);
  const looked = seen.listed.filter((path) => path.includes("/ready/"));
  assert.ok(looked.length <= 17, `${looked.length} folders listed`);
  for (const jobs of writers) await jobs.close();
});

test("a folder of thousands of folders is not listed again while its time of change stays", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  {
    await using jobs = await openQueue(directory.path, { clock });
    await jobs.publishAt(bytes("later"), new Date(clock.now() + day));
  }
  const { operations, seen } = counted();
  let uptime = 0;
  let stamp = 1;
  const still: FileOperations = {
    ...operations,
    uptime: () => uptime,
    status: (path) => ({ ...operations.status(path), changedAt: stamp }),
  };
  await using jobs = await openQueue(directory.path, { clock, operations: still });
  const looks = async () => {
    seen.listed.length = 0;
    uptime += 5_000;
    assert.deepEqual(await jobs.receive(1), []);
    return seen.listed.filter((path) => /\/(ready|delayed|leased)$/.test(path)).length;
  };
  assert.equal(await looks(), 3);
  assert.equal(await looks(), 0);
  stamp++;
  assert.equal(await looks(), 3);
});

test("a consumer that closes takes its folders of leases with it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  for (let round = 0; round < 5; round++) {
    await using jobs = await openQueue(directory.path, { clock, policy: { visibilityTimeout: 3_600_000 } });
    await jobs.publishMany([bytes("a"), bytes("b")]);
    assert.equal((await drain(jobs, 1)).length, 2);
    clock.set(clock.now() + 60_000);
  }
  assert.equal(foldersOf(directory.path, "leased").length, 1, "the shared one");
});

test("a purge takes the folders along, and a listing the empty ones of dead letters", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const sizes = { ...queueSizes, waitingBucket: 4 };
  await using jobs = await openFile({ dir: directory.path, policy, clock }, unflushedOperations(), sizes);
  await jobs.publishMany(Array(40).fill(bytes("x")));
  await jobs.publishMany(Array(40).fill({ payload: bytes("x"), at: new Date(clock.now() + day) }));
  // What somebody left who died after the last letter of a folder had gone.
  fs.mkdirSync(`${directory.path}/dead/01JGFJ`);
  await jobs.purge();
  assert.deepEqual(foldersOf(directory.path, "ready"), []);
  assert.deepEqual(foldersOf(directory.path, "delayed"), []);
  assert.deepEqual(await jobs.deadLetters({ max: 1 }), []);
  assert.deepEqual(foldersOf(directory.path, "dead"), []);
});
