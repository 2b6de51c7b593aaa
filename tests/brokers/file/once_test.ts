import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { isQueueError } from "../../../src/core/error.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { agedOperations, faultyOperations, unflushedOperations } from "../../support/file_faults.ts";
import { mortal, ProcessDied } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { Disk, sha256 } from "../../simulation/disk.ts";
import { Random } from "../../simulation/random.ts";
import { entriesOf, foldersOf, pathsBelow } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf, withMonotonicClock } from "./queue.ts";

/** The reservations on the disk. */
const reservationsOf = (dir: string) =>
  foldersOf(dir, "once").flatMap((folder) => fs.readdirSync(`${dir}/once/${folder}`));

/** Publishes in a process that is killed once the reservation is made and before the message is moved. */
async function dieReserved(dir: string, clock: ManualClock, key: string, text: string, window: number): Promise<void> {
  const inner = unflushedOperations();
  const died = new ProcessDied("Died before the move");
  const operations: FileOperations = {
    ...inner,
    rename(from, to) {
      if (from.includes("/pending/")) throw died;
      inner.rename(from, to);
    },
  };
  const process = mortal(operations);
  const jobs = await openQueue(dir, { clock, operations: process.operations });
  await assert.rejects(jobs.publishOnce(key, bytes(text), window), ProcessDied);
  process.dieAfter(0);
  assert.equal(foldersOf(dir, "pending").length, 1);
}

test("of fifty calls that race over several processes exactly one publishes", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const brokers = await Promise.all(Array.from({ length: 5 }, () => openQueue(dir, { clock })));
  for (let round = 0; round < 4; round++) {
    const calls = Array.from({ length: 50 }, (_, index) => {
      return brokers[index % brokers.length]!.publishOnce("key", bytes(`${round}: ${index}`), 1_000);
    });
    const outcomes = await Promise.all(calls);
    const winners = outcomes.flatMap((outcome) => outcome.published ? [outcome.message.id] : []);
    assert.equal(winners.length, 1);
    const found = await brokers[round]!.receive(10);
    assert.deepEqual(found.map(({ message }) => message.id), winners);
    await brokers[4]!.ack(found[0]!.lease.receipt);
    clock.set(clock.now() + 1_000);
  }
  assert.deepEqual(foldersOf(dir, "pending"), [], "the losers left nothing");
  await Promise.all(brokers.map((jobs) => jobs.close()));
});

test("racing calls with different keys do not disturb each other", async () => {
  using directory = temporaryDirectory();
  const brokers = await Promise.all(Array.from({ length: 3 }, () => openQueue(directory.path)));
  const calls = Array.from({ length: 120 }, (_, index) => {
    return brokers[index % 3]!.publishOnce(`key ${index % 40}`, bytes(String(index % 40)), 60_000);
  });
  const published = (await Promise.all(calls)).filter((outcome) => outcome.published);
  assert.equal(published.length, 40);
  assert.equal(new Set(await drain(brokers[0]!)).size, 40);
  await Promise.all(brokers.map((jobs) => jobs.close()));
});

test("the key is reserved to the end of its window, not one ms longer, and a duplicate does not prolong it", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const start = clock.now();
  await using jobs = await openQueue(directory.path, { clock });
  await using other = await openQueue(directory.path, { clock });
  const publish = async (at: number, broker: FileBroker) => {
    clock.set(start + at);
    return (await broker.publishOnce("key", bytes(String(at)), 1_000)).published;
  };
  assert.equal(await publish(0, jobs), true);
  assert.equal(await publish(1, other), false);
  assert.equal(await publish(999, jobs), false);
  assert.equal(await publish(1_000, other), true);
  assert.equal(await publish(1_999, jobs), false);
  assert.equal(await publish(2_000, jobs), true);
  assert.deepEqual(await drain(jobs), ["0", "1000", "2000"]);
});

test("neither the message's end nor a purge frees the key", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  const again = async (key: string) => (await jobs.publishOnce(key, bytes("again"), 60_000)).published;
  for (const key of ["acked", "buried", "purged"]) await jobs.publishOnce(key, bytes(key), 60_000);
  const [acked, buried] = await jobs.receive(2);
  await jobs.ack(acked!.lease.receipt);
  await jobs.reject(buried!.lease.receipt);
  await jobs.purge();
  for (const key of ["acked", "buried", "purged"]) assert.equal(await again(key), false, key);
  assert.equal((await jobs.stats()).queued, 0);
});

test("keys compare byte for byte, and none of their text comes to the disk", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  const keys = [
    "secret-key",
    "Secret-key",
    "secret-key ",
    "sécret",
    "se\u0301cret",
    "s\u00e9cret",
    "\0",
    "k".repeat(9_999),
  ];
  for (const key of new Set(keys)) {
    assert.equal((await jobs.publishOnce(key, bytes("payload"), 60_000)).published, true, key);
    assert.equal((await jobs.publishOnce(key, bytes("payload"), 60_000)).published, false, key);
  }
  for (const path of pathsBelow(directory.path)) {
    assert.ok(!/secret|cret/i.test(path), path);
    const whole = `${directory.path}/${path}`;
    if (fs.lstatSync(whole).isFile()) assert.ok(!/secret|kkkk/i.test(fs.readFileSync(whole, "latin1")), path);
  }
});

test("level, headers and instant come along, and what is due later waits", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const at = new Date(clock.now() + 5_000);
  await jobs.publishOnce("key", bytes("later"), 60_000, { at, priority: 2, headers: { a: "b" } });
  assert.deepEqual(await jobs.receive(1), []);
  clock.set(at.getTime());
  const [delivery] = await jobs.receive(1);
  assert.equal(delivery!.priority, 2);
  assert.deepEqual({ ...delivery!.message.headers }, { a: "b" });
});

test("a publisher that died before it moved its message: the next call moves it and publishes nothing", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await dieReserved(directory.path, clock, "key", "theirs", 60_000);
  await using jobs = await openQueue(directory.path, { clock });
  assert.deepEqual(await jobs.receive(1), []);
  assert.equal((await jobs.publishOnce("key", bytes("mine"), 60_000)).published, false);
  assert.deepEqual(await drain(jobs), ["theirs"]);
  assert.deepEqual(foldersOf(directory.path, "pending"), []);
});

test("a call after the window of a dead publisher moves its message and publishes its own", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await dieReserved(directory.path, clock, "key", "theirs", 1_000);
  clock.set(clock.now() + 1_000);
  await using jobs = await openQueue(directory.path, { clock });
  assert.equal((await jobs.publishOnce("key", bytes("mine"), 60_000)).published, true);
  assert.deepEqual(await drain(jobs), ["theirs", "mine"]);
});

test("a mere receive moves the message of a dead publisher, once it is old enough to be dead", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await dieReserved(dir, clock, "key", "theirs", 60_000);
  {
    await using young = await openQueue(dir, { clock });
    assert.deepEqual(await young.receive(1), [], "its publisher may be at work");
  }
  const operations = agedOperations((path) => path.includes("/pending/"));
  await using jobs = await openQueue(dir, { clock, operations });
  assert.deepEqual(textsOf(await jobs.receive(1)), ["theirs"]);
  assert.deepEqual(foldersOf(dir, "pending"), []);
  assert.equal((await jobs.publishOnce("key", bytes("mine"), 60_000)).published, false);
});

test("a receive of a process that has long been open finds it too", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const operations = agedOperations((path) => path.includes("/pending/"));
  await using jobs = await openQueue(directory.path, { clock, operations });
  assert.deepEqual(await jobs.receive(1), []);
  await dieReserved(directory.path, clock, "key", "theirs", 60_000);
  assert.deepEqual(textsOf(await jobs.receive(1)), ["theirs"]);
});

test("a message whose publisher died before it reserved the key is never delivered, and goes in time", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const inner = unflushedOperations();
  const process = mortal({
    ...inner,
    link: () => {
      throw new ProcessDied("Died before the reservation");
    },
    unlink: () => {
      throw new ProcessDied("Died before the reservation");
    },
  });
  const dying = await openQueue(dir, { operations: process.operations });
  await assert.rejects(dying.publishOnce("key", bytes("theirs"), 60_000), ProcessDied);
  assert.equal(foldersOf(dir, "pending").length, 1);
  await using jobs = await openQueue(dir, { operations: agedOperations((path) => path.includes("/pending/")) });
  assert.deepEqual(await jobs.receive(1), []);
  assert.deepEqual(foldersOf(dir, "pending"), []);
  assert.equal((await jobs.publishOnce("key", bytes("mine"), 60_000)).published, true);
  assert.deepEqual(await drain(jobs), ["mine"]);
});

test("expired keys are removed in time, pending ones never", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await dieReserved(dir, clock, "pending", "theirs", 1_000);
  const pending = reservationsOf(dir);
  await using jobs = await openQueue(dir, { clock });
  const known: string[] = [];
  // Keys of one folder, found by trying: a new key looks only beside itself.
  const { sha256 } = unflushedOperations();
  for (let index = 0; known.length < 60; index++) {
    if (sha256(`key ${index}`).slice(0, 3) === pending[0]!.slice(0, 3)) known.push(`key ${index}`);
  }
  for (const key of known.slice(0, 30)) await jobs.publishOnce(key, bytes("x"), 1_000);
  assert.equal(reservationsOf(dir).length, 31);
  clock.set(clock.now() + 60_500);
  for (const key of known.slice(30, 40)) await jobs.publishOnce(key, bytes("x"), 10_000_000);
  assert.equal(reservationsOf(dir).length, 41, "not long enough expired");
  clock.set(clock.now() + 1_000);
  for (const key of known.slice(40)) await jobs.publishOnce(key, bytes("x"), 10_000_000);
  const left = reservationsOf(dir);
  assert.ok(left.length < 45, `${left.length} of 61 are left`);
  assert.ok(left.includes(pending[0]!), "the message of this one was not moved yet");
  assert.equal((await jobs.publishOnce("pending", bytes("mine"), 1_000)).published, true);
  const texts = await drain(jobs);
  assert.equal(texts.filter((text) => text === "theirs").length, 1);
  assert.equal(texts.filter((text) => text === "mine").length, 1);
});

test("a key that is swept while a publisher is about to follow it is reserved once", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  await using jobs = await openQueue(dir, { clock });
  await jobs.publishOnce("key", bytes("earlier"), 1_000);
  clock.set(clock.now() + 120_000);
  const [expired] = reservationsOf(dir);
  // The rival has looked, seen the expired reservation, and is about to link the next one, when the sweep comes.
  const inner = unflushedOperations();
  let interfered: Promise<unknown> | undefined;
  const operations: FileOperations = {
    ...inner,
    link(existing, name) {
      if (interfered === undefined && name.includes("/once/")) {
        fs.unlinkSync(`${dir}/once/${expired!.slice(0, 3)}/${expired}`);
        interfered = jobs.publishOnce("key", bytes("mine"), 60_000);
      }
      inner.link(existing, name);
    },
  };
  await using rival = await openQueue(dir, { clock, operations });
  const theirs = await rival.publishOnce("key", bytes("theirs"), 60_000);
  const mine = await interfered as typeof theirs;
  assert.deepEqual([theirs.published, mine.published].sort(), [false, true]);
  assert.equal((await drain(jobs)).length, 2);
});

test("a reservation whose answer was lost is not lost with it", async () => {
  for (const when of ["before", "after"] as const) {
    using directory = temporaryDirectory();
    const clock = new ManualClock();
    const faulty = faultyOperations(agedOperations((path) => path.includes("/pending/")));
    await using jobs = await openQueue(directory.path, { clock, operations: faulty.operations });
    faulty.arm({ operation: "link", nth: 1, when, code: "EIO" });
    await assert.rejects(jobs.publishOnce("key", bytes("first"), 60_000), (error) => {
      return isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.published === "unknown";
    });
    faulty.disarm();
    const again = await jobs.publishOnce("key", bytes("second"), 60_000);
    assert.equal(again.published, when === "before", "what is reserved is published");
    assert.deepEqual(await drain(jobs), [when === "before" ? "second" : "first"]);
    assert.deepEqual(foldersOf(directory.path, "pending"), []);
  }
});

test("whoever is told that a key is reserved can rely on the message's being on the device", async () => {
  using directory = temporaryDirectory();
  const { operations, calls } = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations });
  await jobs.publishOnce("key", bytes("first"), 60_000);
  const before = calls.get("flush")!;
  assert.equal((await jobs.publishOnce("key", bytes("second"), 60_000)).published, false);
  assert.ok(calls.get("flush")! > before, "another caller may have moved it and not flushed yet");
});

test("no folder of once keys and nothing pending keeps a process busy", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await dieReserved(directory.path, clock, "key", "theirs", 60_000);
  const inner = unflushedOperations();
  const touched: string[] = [];
  const operations: FileOperations = {
    ...inner,
    touch(path) {
      touched.push(path);
      inner.touch(path);
    },
  };
  await withMonotonicClock(async (pass) => {
    await using jobs = await openQueue(directory.path, { clock, operations });
    for (let round = 0; round < 5; round++) {
      assert.deepEqual(await jobs.receive(1), []);
      pass(1_000);
    }
    assert.ok(touched.length > 0, "it looks at the time");
    assert.ok(touched.every((path) => !path.includes("/wake/")), "and wakes nobody by looking");
  });
});

test("a footer that the broker would not write moves nothing", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const clock = new ManualClock();
  await dieReserved(dir, clock, "key", "theirs", 60_000);
  const [name] = foldersOf(dir, "pending");
  const path = `${dir}/pending/${name}`;
  const whole = fs.readFileSync(path);
  const length = whole.readUInt32LE(whole.byteLength - 8);
  const start = whole.byteLength - 8 - length;
  const footer = JSON.parse(whole.subarray(start, start + length).toString());
  const operations = agedOperations((path) => path.includes("/pending/"));
  const spoiled = [
    { ...footer, entry: `../../../${footer.entry}` },
    { ...footer, entry: footer.entry.replace("a", "l") },
    { ...footer, entry: "" },
    { ...footer, pending: "../../outside" },
    { ...footer, end: "soon" },
    {},
  ];
  for (const changed of spoiled) {
    const json = Buffer.from(JSON.stringify(changed));
    const tail = Buffer.alloc(8);
    tail.writeUInt32LE(json.byteLength, 0);
    tail.write("QEND", 4, "latin1");
    fs.writeFileSync(path, Buffer.concat([whole.subarray(0, start), json, tail]));
    await using jobs = await openQueue(dir, { clock, operations });
    assert.deepEqual(await jobs.receive(1), []);
    assert.deepEqual(entriesOf(dir, "ready"), []);
  }
  fs.writeFileSync(path, whole);
  await using jobs = await openQueue(dir, { clock, operations });
  assert.deepEqual(await drain(jobs), ["theirs"]);
});

test("a key is on the device although another process made its folder and has not flushed it", async () => {
  const disk = new Disk();
  const clock = new ManualClock();
  const jobs = await openQueue("/queue", { operations: disk.process(), clock });
  disk.process().makeDirectory(`/queue/once/${sha256("key").slice(0, 3)}`);
  const { published } = await jobs.publishOnce("key", bytes("one"), 60_000);
  assert.equal(published, true);
  for (let seed = 0; seed < 20; seed++) {
    const after = await openQueue("/queue", { operations: disk.cutPower(new Random(seed), 0.5).process(), clock });
    assert.equal((await after.publishOnce("key", bytes("two"), 60_000)).published, false);
  }
});
