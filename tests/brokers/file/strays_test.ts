import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { renderBucket, renderDead, renderEntry, renderLeaseBucket } from "../../../src/brokers/file/names.ts";
import { states } from "../../../src/brokers/file/queue_directory.ts";
import { recordLength, writeRecord } from "../../../src/brokers/file/records.ts";
import type { BrokerEvent } from "../../../src/core/capabilities/wake.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { agedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf, pathsBelow } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf, withMonotonicClock } from "./queue.ts";

/** Names that people, editors and other programs leave in folders. */
const strayNames = [
  "README",
  "README.md~",
  ".README.swp",
  "#notes#",
  ".#notes",
  "4913",
  ".DS_Store",
  "core",
  "x".repeat(255),
  "new\nline",
  "-rf",
  "%s",
  "Zeilenumbruch ü",
  "0000000000001.tmp",
  "0123456789.tmp",
];

function plantStrays(folder: string): string[] {
  for (const name of strayNames) fs.writeFileSync(path.join(folder, name), "stray");
  fs.mkdirSync(path.join(folder, "lost+found"));
  fs.symlinkSync("/etc", path.join(folder, "etc"));
  // What a broken copy of an entry looks like: its first characters only, or a few too many.
  const genuine = renderEntry({
    instant: 1,
    state: "a",
    id: "01JGFJJZ00ABCDEFGHJKMNPQRS",
    enqueuedAt: 1,
    deliveries: 0,
    priority: 2,
    failure: "n",
    segment: "0123456789",
    offset: 0,
    length: 38,
    nonce: "ABCDEFGHJK",
  });
  for (const name of [genuine.slice(0, -1), `${genuine}~`, `${genuine}.bak`, genuine.toLowerCase()]) {
    fs.writeFileSync(path.join(folder, name), "stray");
  }
  return fs.readdirSync(folder);
}

test("strays in every folder are neither delivered nor listed nor in the way of anything", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const events: BrokerEvent[] = [];
  const policy = { maxDeliveries: 2, deadLetterRetention: 60_000, retryDelay: 5_000 };
  await withMonotonicClock(async (pass) => {
    await using jobs = await openQueue(dir, { clock, policy, onEvent: (event) => events.push(event) });
    // One of everything, so that there are folders of every kind.
    await jobs.publishMany(["a", "b", "c", "d", "e"].map(bytes));
    await jobs.publishAt(bytes("later"), new Date(clock.now() + 1_000));
    await jobs.publishOnce("key", bytes("once"), 1_000);
    const [first, second] = await jobs.receive(3);
    await jobs.reject(first!.lease.receipt);
    await jobs.nack(second!.lease.receipt);

    const folders = [dir, ...states.map((state) => `${dir}/${state}`)];
    for (const state of ["ready", "delayed", "leased", "dead", "once"]) {
      folders.push(...foldersOf(dir, state).map((folder) => `${dir}/${state}/${folder}`));
    }
    assert.ok(folders.length >= 15);
    const planted = new Map(folders.map((folder) => [folder, plantStrays(folder)]));

    await using other = await openQueue(dir, { clock, policy, onEvent: (event) => events.push(event) });
    pass(1_000);
    const { ready, delayed, leased, dead } = await other.stats();
    assert.deepEqual({ ready, delayed, leased, dead }, { ready: 3, delayed: 2, leased: 1, dead: 1 });
    assert.equal((await other.messages({ max: 100 })).length, 6);
    assert.equal((await Array.fromAsync(other.allMessages())).length, 6);
    assert.equal((await other.deadLetters({ max: 100 })).length, 1);
    assert.deepEqual(textsOf(await other.receive(100)), ["d", "e", "once"]);
    clock.set(clock.now() + 30_000);
    assert.equal((await other.publishOnce("key", bytes("once again"), 1_000)).published, true);
    pass(1_000);
    assert.deepEqual((await drain(jobs)).sort(), ["b", "c", "d", "e", "later", "once", "once again"]);
    assert.equal(await jobs.replayDeadLetters({ max: 10 }), 1);
    await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
    clock.set(clock.now() + 61_000);
    pass(61_000);
    assert.deepEqual(await jobs.receive(1), []);
    assert.equal((await jobs.stats()).dead, 0, "retention");
    await jobs.publish(bytes("last"));
    assert.deepEqual(await jobs.purge(), { queued: 1, leased: 0 });
    await jobs.publish(bytes("very last"));
    assert.deepEqual(await drain(other), ["very last"]);

    assert.deepEqual(events, [], "strays are no event");
    for (const [folder, names] of planted) {
      const left = new Set(fs.readdirSync(folder));
      for (const name of names) if (strayNames.includes(name)) assert.ok(left.has(name), `${folder}/${name} stays`);
    }
  });
});

/** Writes a message as the broker does, at a path of the planter's choice. */
function plantMessage(folder: string, text: string, leased = false): void {
  const id = "01JGFJJZ00ABCDEFGHJKMNPQRS";
  const payload = bytes(text);
  const record = new Uint8Array(recordLength(new Uint8Array(0), payload));
  writeRecord(record, 0, id, new Uint8Array(0), payload);
  const name = renderEntry({
    instant: 1,
    state: leased ? "l" : "a",
    id,
    enqueuedAt: 1,
    deliveries: leased ? 1 : 0,
    priority: 2,
    failure: "n",
    segment: "ABCDEFGHJK",
    offset: 0,
    length: record.byteLength,
    nonce: "ABCDEFGHJK",
  });
  fs.writeFileSync(path.join(folder, name), record);
}

const plantings: readonly { readonly why: string; readonly plant: (folder: string, outside: string) => void }[] = [
  {
    why: "symlink",
    plant(folder, outside) {
      fs.symlinkSync(outside, folder);
    },
  },
  {
    why: "world-writable",
    plant(folder) {
      fs.mkdirSync(folder);
      fs.chmodSync(folder, 0o777);
    },
  },
  {
    why: "sticky-world-writable",
    plant(folder) {
      fs.mkdirSync(folder);
      fs.chmodSync(folder, 0o1777);
    },
  },
];

const plantedFolders = {
  ready: renderBucket(2, "0000000000000a00000000000000000000000000", "ABCDEFGHJK"),
  delayed: renderBucket(2, "0000000000000000000000000000000000000000", "ABCDEFGHJK"),
  leased: renderLeaseBucket(10, "ABCDEFGHJK"),
} as const;

for (const [state, name] of Object.entries(plantedFolders)) {
  for (const { why, plant } of plantings) {
    test(`a folder in "${state}" that is ${why} is skipped and reported once`, async () => {
      using directory = temporaryDirectory();
      const dir = `${directory.path}/queue`;
      const outside = `${directory.path}/outside`;
      fs.mkdirSync(outside);
      const clock = new ManualClock();
      const events: BrokerEvent[] = [];
      await withMonotonicClock(async (pass) => {
        await using jobs = await openQueue(dir, { clock, onEvent: (event) => events.push(event) });
        const folder = `${dir}/${state}/${name}`;
        plant(folder, outside);
        plantMessage(folder, "planted", state === "leased");
        const before = [...pathsBelow(outside), ...fs.readdirSync(folder)];
        await jobs.publish(bytes("genuine"));
        for (let round = 0; round < 3; round++) {
          const found = await jobs.receive(10);
          assert.deepEqual(textsOf(found), ["genuine"]);
          await jobs.release(found[0]!.lease.receipt);
          const { queued, leased } = await jobs.stats();
          assert.deepEqual({ queued, leased }, { queued: 1, leased: 0 });
          assert.equal((await jobs.messages({ max: 10 })).length, 1);
          clock.set(clock.now() + 60_000);
          pass(60_000);
        }
        assert.deepEqual(await jobs.purge(), { queued: 1, leased: 0 });
        assert.deepEqual(events, [{ kind: "entrySkipped", path: folder, why }]);
        assert.deepEqual([...pathsBelow(outside), ...fs.readdirSync(folder)], before, "nothing was touched");
      });
    });
  }
}

for (const { why, plant } of plantings) {
  test(`a folder of dead letters that is ${why} is neither read nor written to`, async () => {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    const outside = `${directory.path}/outside`;
    fs.mkdirSync(outside);
    const clock = new ManualClock();
    const events: BrokerEvent[] = [];
    await using jobs = await openQueue(dir, { clock, onEvent: (event) => events.push(event) });
    const { id } = await jobs.publish(bytes("dying"));
    const folder = `${dir}/dead/${id.slice(0, 6)}`;
    plant(folder, outside);
    fs.writeFileSync(`${folder}/${renderDead({ id, failedAt: 1, offset: 0, length: 5 })}`, "bytes");
    const before = fs.readdirSync(folder);
    await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
    const letters = await jobs.deadLetters({ max: 10 });
    assert.deepEqual(letters.map(({ message }) => message.id), [id], "the letter is elsewhere");
    assert.equal((await jobs.stats()).dead, 1);
    assert.deepEqual(fs.readdirSync(folder), before);
    assert.deepEqual(events, [{ kind: "entrySkipped", path: folder, why }]);
    await jobs.replayDeadLetter(id);
    assert.deepEqual(await drain(jobs), ["dying"]);
  });
}

test("a file named as a folder of messages is skipped and reported", async () => {
  using directory = temporaryDirectory();
  const events: BrokerEvent[] = [];
  await using jobs = await openQueue(directory.path, { onEvent: (event) => events.push(event) });
  for (const [state, name] of Object.entries(plantedFolders)) {
    fs.writeFileSync(`${directory.path}/${state}/${name}`, "");
  }
  await jobs.publish(bytes("genuine"));
  assert.deepEqual(await drain(jobs), ["genuine"]);
  assert.equal((await jobs.stats()).queued, 0);
  assert.deepEqual(events.map((event) => "why" in event && event.why), Array(3).fill("not-a-directory"));
});

test("unfinished files of publications are neither delivered nor counted, and go when they are old", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const aged = agedOperations((path) => path.endsWith("old"));
  await withMonotonicClock(async (pass) => {
    await using jobs = await openQueue(dir, { operations: aged });
    plantMessage(`${dir}/tmp`, "unfinished");
    fs.copyFileSync(`${dir}/tmp/${fs.readdirSync(`${dir}/tmp`).find((name) => name !== "clock")}`, `${dir}/tmp/old`);
    fs.mkdirSync(`${dir}/tmp/folder, old`);
    await jobs.publish(bytes("genuine"));
    assert.deepEqual(await drain(jobs), ["genuine"]);
    assert.equal((await jobs.stats()).queued, 0);
    assert.ok(fs.existsSync(`${dir}/tmp/old`), "not looked for yet");
    pass(60_000);
    assert.deepEqual(await jobs.receive(1), []);
    assert.equal(fs.existsSync(`${dir}/tmp/old`), false);
    assert.ok(fs.existsSync(`${dir}/tmp/folder, old`), "a folder is nobody's publication");
    assert.equal(fs.readdirSync(`${dir}/tmp`).length, 3, "what is young may be under way");
    assert.equal(entriesOf(dir, "ready").length, 0);
  });
});
