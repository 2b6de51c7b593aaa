import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { QueueError } from "../../../src/core/error.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { faultyOperations, unflushedOperations } from "../../support/file_faults.ts";
import { mortal } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf, pathsBelow } from "./on_disk.ts";
import { bytes, drain, openQueue, settle, textsOf } from "./queue.ts";

/** Buries so many messages of one instant; their ids. */
async function bury(jobs: FileBroker, count: number): Promise<string[]> {
  const published = await jobs.publishMany(Array.from({ length: count }, (_, index) => bytes(String(index))));
  for (const { lease } of await jobs.receive(count)) await jobs.reject(lease.receipt);
  return published.map(({ id }) => id);
}

async function pageAll(jobs: FileBroker, max: number): Promise<string[]> {
  const ids: string[] = [];
  for (let after = "";;) {
    const page = await jobs.deadLettersAfter({ after, max });
    if (page.length === 0) return ids;
    assert.ok(page.length <= max);
    ids.push(...page.map(({ message }) => message.id));
    after = ids.at(-1)!;
  }
}

test("thousands of dead letters of one instant are paged, found, replayed and deleted one by one", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await using jobs = await openQueue(dir, { clock, policy: { maxDeliveries: 1 } });
  const published = await jobs.publishMany(Array.from({ length: 2_000 }, (_, index) => bytes(String(index))));
  const ids = published.map(({ id }) => id);
  // Lapsed leases are buried a hundred at a time.
  assert.equal((await jobs.receive(2_000)).length, 2_000);
  clock.set(clock.now() + 30_000);
  for (let call = 0; call < 20; call++) assert.deepEqual(await jobs.receive(1), []);
  const folders = foldersOf(dir, "dead");
  assert.ok(folders.length >= 7, "they split over the prefixes of their ids");
  for (const folder of folders.filter((name) => name.length < 12)) {
    assert.ok(fs.readdirSync(`${dir}/dead/${folder}`).length <= 250);
  }
  await using other = await openQueue(dir, { clock });
  assert.deepEqual(await pageAll(other, 333), ids);
  assert.equal((await other.stats()).dead, 2_000);
  const left = new Set(ids);
  // One of each folder.
  for (const index of [0, 249, 250, 600, 1_100, 1_999]) {
    const id = ids[index]!;
    left.delete(id);
    await other.replayDeadLetter(id);
    const [again] = await other.receive(1);
    assert.equal(again!.message.id, id);
    await other.ack(again!.lease.receipt);
    await assert.rejects(other.deleteDeadLetter(id), { reason: "DEAD_LETTER_NOT_FOUND" });
  }
  for (const index of [1, 1_500, 1_998]) {
    left.delete(ids[index]!);
    await other.deleteDeadLetter(ids[index]!);
    await assert.rejects(jobs.replayDeadLetter(ids[index]!), { reason: "DEAD_LETTER_NOT_FOUND" });
  }
  assert.equal(await other.purgeDeadLetters({ before: new Date(clock.now()), max: 9 }), 0, "none is older than now");
  clock.set(clock.now() + 1);
  assert.equal(await other.purgeDeadLetters({ before: new Date(clock.now()), max: 991 }), 991);
  assert.equal(await jobs.replayDeadLetters({ max: 600 }), 600);
  assert.equal(await jobs.replayDeadLetters({ max: 600 }), 400);
  const replayed = await jobs.receive(2_000);
  assert.deepEqual(replayed.map(({ message }) => message.id), [...left].slice(991));
  assert.deepEqual(foldersOf(dir, "dead"), [], "no folder stays");
});

test("letters of many instants are paged in the order of their ids, from any id on", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const ids: string[] = [];
  for (let round = 0; round < 40; round++) {
    ids.push(...await bury(jobs, 10));
    // Every folder's prefix covers a little more than 17 minutes.
    clock.set(clock.now() + 260_000);
  }
  assert.deepEqual(await pageAll(jobs, 7), ids);
  for (const index of [0, 1, 57, 199, 398, 399]) {
    const page = await jobs.deadLettersAfter({ after: ids[index]!, max: 5 });
    assert.deepEqual(page.map(({ message }) => message.id), ids.slice(index + 1, index + 6));
  }
  assert.equal((await jobs.deadLettersAfter({ after: "0", max: 500 })).length, 400);
  assert.deepEqual(await jobs.deadLettersAfter({ after: "Z", max: 5 }), []);
  assert.deepEqual(await jobs.deadLettersAfter({ after: "~~~", max: 5 }), []);
});

test("ids that were never minted are not found, and lead to no file", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  await using jobs = await openQueue(dir);
  const [id] = await bury(jobs, 1) as [string];
  await settle();
  const before = pathsBelow(directory.path);
  const forged = [
    "",
    ".",
    "../../etc",
    `../${id}`,
    `${id}/`,
    `${id} `,
    id.toLowerCase(),
    id.slice(0, 6),
    "0".repeat(26),
  ];
  for (const other of [...forged, undefined, null, 42, {}, Symbol("id")]) {
    await assert.rejects(jobs.replayDeadLetter(other as string), { reason: "DEAD_LETTER_NOT_FOUND" });
    await assert.rejects(jobs.deleteDeadLetter(other as string), { reason: "DEAD_LETTER_NOT_FOUND" });
  }
  assert.deepEqual(pathsBelow(directory.path), before);
});

test("of replays that race over two processes exactly one queues the message", async () => {
  using directory = temporaryDirectory();
  await using one = await openQueue(directory.path);
  await using two = await openQueue(directory.path);
  const ids = await bury(one, 30);
  for (const id of ids.slice(0, 10)) {
    const outcomes = await Promise.allSettled([one, two, one, two].map((jobs) => jobs.replayDeadLetter(id)));
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") assert.equal(outcome.reason.reason, "DEAD_LETTER_NOT_FOUND");
    }
  }
  const counts = await Promise.all([one, two].map((jobs) => jobs.replayDeadLetters({ max: 30 })));
  assert.equal(counts[0]! + counts[1]!, 20);
  const texts = await drain(one);
  assert.deepEqual(texts.map(Number).sort((a, b) => a - b), ids.map((_, index) => index));
});

test("a message that dies again while a bulk replay goes on keeps its new record", async () => {
  using directory = temporaryDirectory();
  const inner = unflushedOperations();
  await using rival = await openQueue(directory.path);
  let meanwhile: (() => Promise<void>) | undefined;
  const operations: FileOperations = {
    ...inner,
    async flush(descriptor) {
      const act = meanwhile;
      // Once it lies among the waiting ones, before its folder is flushed.
      if (entriesOf(directory.path, "ready").length === 0) return inner.flush(descriptor);
      meanwhile = undefined;
      await act?.();
    },
  };
  await using jobs = await openQueue(directory.path, { operations });
  const [id] = await bury(rival, 1) as [string];
  meanwhile = async () => rival.reject((await rival.receive(1))[0]!.lease.receipt, new TypeError("again"));
  assert.equal(await jobs.replayDeadLetters({ max: 5 }), 1);
  assert.equal(meanwhile, undefined, "it died meanwhile");
  const letters = await jobs.deadLetters({ max: 5 });
  assert.deepEqual(letters.map(({ message, cause }) => [message.id, cause]), [[id, "TypeError"]]);
});

test("a replay races with a deletion: one of them has it", async () => {
  using directory = temporaryDirectory();
  await using one = await openQueue(directory.path);
  await using two = await openQueue(directory.path);
  for (const id of await bury(one, 20)) {
    const outcomes = await Promise.allSettled([one.replayDeadLetter(id), two.deleteDeadLetter(id)]);
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    const queued = (await drain(one)).length;
    assert.equal(queued, outcomes[0]!.status === "fulfilled" ? 1 : 0);
  }
});

test("a message is replayed as it was, headers and level too, however often it dies", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 1 } });
  const message = await jobs.publish(bytes("payload"), { headers: { a: "b" }, priority: 1 });
  for (let life = 0; life < 5; life++) {
    clock.set(clock.now() + 60_000);
    const [delivery] = await jobs.receive(1);
    assert.deepEqual(delivery!.message, message);
    assert.equal(delivery!.deliveries, 1);
    assert.equal(delivery!.priority, 1);
    assert.equal(delivery!.lastFailure, undefined);
    await jobs.nack(delivery!.lease.receipt, new QueueError("RETRY_REQUESTED"));
    const [letter, ...others] = await jobs.deadLetters({ max: 5 });
    assert.deepEqual(others, []);
    assert.deepEqual(letter!.message, message);
    assert.equal(letter!.failedAt.getTime(), clock.now());
    await jobs.replayDeadLetter(message.id);
  }
});

test("a burial that was cut short after its record is finished without a second one, and flushes the first", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const inner = unflushedOperations();
  const process = mortal({
    ...inner,
    unlink(path) {
      if (path.includes("/leased/")) {
        process.dieAfter(0);
        process.operations.unlink(path);
      }
      inner.unlink(path);
    },
  });
  const dying = await openQueue(dir, { clock, operations: process.operations });
  const { id } = await dying.publish(bytes("dying"));
  await assert.rejects(dying.reject((await dying.receive(1))[0]!.lease.receipt, new TypeError("first")));
  assert.equal(entriesOf(dir, "leased").length, 1, "it died between the record and the end of the lease");
  const flushed: string[] = [];
  const descriptors = new Map<number, string>();
  const operations: FileOperations = {
    ...inner,
    open(path) {
      const descriptor = inner.open(path);
      descriptors.set(descriptor, path);
      return descriptor;
    },
    flush: (descriptor) => Promise.resolve(void flushed.push(descriptors.get(descriptor) ?? "")),
  };
  await using jobs = await openQueue(dir, { clock, operations });
  assert.equal((await jobs.deadLetters({ max: 5 })).length, 1);
  clock.set(clock.now() + 30_000);
  const [again] = await jobs.receive(1);
  assert.equal(again!.message.id, id, "it is dead, and comes back all the same");
  flushed.length = 0;
  await jobs.reject(again!.lease.receipt, new RangeError("second"));
  assert.ok(flushed.includes(`${dir}/dead/${id.slice(0, 6)}`), "the first record may not have come to the device");
  const letters = await jobs.deadLetters({ max: 5 });
  assert.deepEqual(letters.map(({ cause }) => cause), ["TypeError"]);
  assert.equal((await jobs.stats()).leased, 0);
});

test("a burial whose flush failed leaves no record that would pass for one on the device", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { clock, operations: faulty.operations });
  await jobs.publish(bytes("dying"));
  const [delivery] = await jobs.receive(1);
  // The file of the letter itself, then its folder.
  faulty.arm({ operation: "flush", nth: 2, when: "before", code: "EIO" });
  await assert.rejects(jobs.reject(delivery!.lease.receipt), { reason: "QUEUE_BACKEND_FAILED" });
  faulty.disarm();
  const { dead, leased } = await jobs.stats();
  assert.deepEqual({ dead, leased }, { dead: 0, leased: 1 });
  clock.set(clock.now() + 30_000);
  assert.deepEqual(textsOf(await jobs.receive(1)), ["dying"]);
});

for (const how of ["rejected", "lapsed", "expired"] as const) {
  test(`a message that is ${how} is not taken back by a rival while its burial takes longer than a lease`, async () => {
    using directory = temporaryDirectory();
    const clock = new ManualClock();
    const policy = { visibilityTimeout: 100, maxDeliveries: 1, maxAge: how === "expired" ? 1_000 : 0 };
    let meanwhile: () => Promise<void> = () => Promise.resolve();
    const operations: FileOperations = { ...unflushedOperations(), flush: () => meanwhile() };
    await using jobs = await openQueue(directory.path, { clock, policy, operations });
    await using rival = await openQueue(directory.path, { clock, policy: { ...policy, maxDeliveries: 9, maxAge: 0 } });
    await jobs.publish(bytes("dying"));
    const receipt = how === "expired" ? undefined : (await jobs.receive(1))[0]!.lease.receipt;
    for (let turn = 0; turn < 5; turn++) await operations.pause();
    const found: string[] = [];
    meanwhile = async () => {
      clock.set(clock.now() + 200);
      found.push(...textsOf(await rival.receive(1)));
    };
    if (how === "lapsed") clock.set(clock.now() + 100);
    if (how === "expired") clock.set(clock.now() + 1_000);
    if (how === "rejected") await jobs.reject(receipt!);
    else assert.deepEqual(await jobs.receive(1), []);
    assert.deepEqual(found, []);
    const { queued, leased, dead } = await rival.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 1 });
  });
}

test("two records of one id are listed once, and leave together", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await openQueue(dir);
  const [first, second] = await bury(jobs, 2) as [string, string];
  for (const id of [first, second]) {
    const folder = `${dir}/dead/${id.slice(0, 6)}`;
    const name = fs.readdirSync(folder).find((name) => name.startsWith(id))!;
    fs.mkdirSync(`${dir}/dead/${id.slice(0, 8)}`, { recursive: true, mode: 0o700 });
    fs.copyFileSync(`${folder}/${name}`, `${dir}/dead/${id.slice(0, 8)}/${name}`);
    fs.copyFileSync(`${folder}/${name}`, `${folder}/${name.replace(/-\d{13}-/, "-0000000000007-")}`);
  }
  assert.deepEqual((await jobs.deadLetters({ max: 9 })).map(({ message }) => message.id), [first, second]);
  await jobs.replayDeadLetter(first);
  assert.deepEqual((await jobs.deadLetters({ max: 9 })).map(({ message }) => message.id), [second]);
  await jobs.deleteDeadLetter(second);
  assert.deepEqual(await jobs.deadLetters({ max: 9 }), []);
  assert.equal((await jobs.stats()).dead, 0);
  assert.deepEqual(await drain(jobs), ["0"]);
});

test("a refusal half-way through a bulk call reports how many were done, and calling again goes on", async () => {
  using directory = temporaryDirectory();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations: faulty.operations });
  await bury(jobs, 10);
  faulty.arm({ operation: "rename", nth: 4, when: "before", code: "EIO" });
  const failure = await jobs.replayDeadLetters({ max: 10 }).then(() => undefined, (error) => error);
  assert.equal(failure.reason, "QUEUE_BACKEND_FAILED");
  assert.equal(failure.partial, 3);
  faulty.disarm();
  assert.equal((await jobs.stats()).dead, 7);
  const purging = new Date(Date.now() + 60_000);
  faulty.arm({ operation: "unlink", nth: 3, when: "before", code: "EACCES" });
  const refused = await jobs.purgeDeadLetters({ before: purging, max: 10 }).then(() => undefined, (error) => error);
  assert.equal(refused.partial, 2);
  faulty.disarm();
  assert.equal(await jobs.purgeDeadLetters({ before: purging, max: 10 }), 5);
  assert.equal((await drain(jobs)).length, 3);
});

test("a bulk replay shares its flushes, and counts what is on the device when one of them is refused", async () => {
  using directory = temporaryDirectory();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations: faulty.operations });
  await bury(jobs, 200);
  await settle();
  const before = faulty.calls.get("flush")!;
  assert.equal(await jobs.replayDeadLetters({ max: 100 }), 100);
  const flushes = faulty.calls.get("flush")! - before;
  assert.ok(flushes <= 5, `${flushes} flushes`);
  faulty.arm({ operation: "flush", nth: 2, when: "before", code: "EIO" });
  const failure = await jobs.replayDeadLetters({ max: 100 }).then(() => undefined, (error) => error);
  assert.equal(failure.reason, "QUEUE_BACKEND_FAILED");
  assert.equal(failure.fields.published, "unknown");
  assert.equal(failure.partial, 64, "the first group");
  faulty.disarm();
  const { dead, queued } = await jobs.stats();
  assert.deepEqual({ dead, queued }, { dead: 0, queued: 200 }, "what is in doubt is there all the same");
  assert.equal((await drain(jobs)).length, 200);
});
