import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import type { BrokerEvent } from "../../../src/core/capabilities/wake.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf, type FoundEntry, onlyEntry } from "./on_disk.ts";
import { bytes, drain, openQueue, textsOf } from "./queue.ts";

/** Ways to spoil the file behind an entry. */
const damages: readonly { readonly what: string; readonly spoil: (found: FoundEntry) => void }[] = [
  { what: "is empty", spoil: ({ path }) => fs.writeFileSync(path, "") },
  { what: "is cut short", spoil: ({ path }) => fs.truncateSync(path, 40) },
  { what: "was never written", spoil: ({ path }) => fs.writeFileSync(path, new Uint8Array(45)) },
  {
    what: "holds another message",
    spoil({ path, entry }) {
      const record = fs.readFileSync(path);
      record.write(entry.id.replace(/.$/, (last) => last === "0" ? "1" : "0"), 12, "latin1");
      fs.writeFileSync(path, record);
    },
  },
  { what: "is text from an editor", spoil: ({ path }) => fs.writeFileSync(path, "hello\n".repeat(20)) },
  {
    what: "is a link to a file outside",
    spoil({ path: entry }) {
      fs.renameSync(entry, `${path.dirname(entry)}/../../../outside`);
      fs.symlinkSync("../../../outside", entry);
    },
  },
  {
    what: "is a link to nothing",
    spoil({ path }) {
      fs.unlinkSync(path);
      fs.symlinkSync("nowhere", path);
    },
  },
  {
    what: "is a folder",
    spoil({ path }) {
      fs.unlinkSync(path);
      fs.mkdirSync(path);
    },
  },
  {
    what: "is a named pipe",
    spoil({ path }) {
      fs.unlinkSync(path);
      execFileSync("mkfifo", [path]);
    },
  },
  {
    what: "is named as longer than memory",
    spoil({ path, name }) {
      fs.renameSync(path, path.replace(name, name.replace(/-\d+-(\w{10})$/, "-9999999999-$1")));
    },
  },
];

for (const { what, spoil } of damages) {
  test(`an entry whose file ${what} is set aside, reported once, and in the way of nothing`, async () => {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    const events: BrokerEvent[] = [];
    const clock = new ManualClock();
    await using jobs = await openQueue(dir, { clock, onEvent: (event) => events.push(event) });
    await jobs.publish(bytes("spoiled"));
    spoil(onlyEntry(dir, "ready"));
    await jobs.publish(bytes("good"));
    assert.deepEqual(textsOf(await jobs.receive(10)), ["good"]);
    clock.set(clock.now() + 30_000);
    assert.deepEqual(await drain(jobs), ["good"], "and again after the lease");
    const [damaged, ...others] = foldersOf(dir, "damaged");
    assert.deepEqual(others, []);
    assert.deepEqual(events, [{ kind: "entrySkipped", path: `${dir}/damaged/${damaged}`, why: "damaged" }]);
    const { queued, leased, dead } = await jobs.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
    if (what.includes("outside")) assert.ok(fs.existsSync(`${directory.path}/outside`), "what lies outside stays");
  });
}

test("an entry that is damaged does not cost its neighbours, nor is one listed", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  await jobs.publish(bytes("one"));
  await jobs.publish(bytes("two"));
  await jobs.publish(bytes("three"));
  fs.truncateSync(entriesOf(directory.path, "ready")[1]!.path, 20);
  assert.deepEqual((await jobs.messages({ max: 10 })).length, 2);
  assert.deepEqual(await drain(jobs), ["one", "three"]);
});

test("an entry that names another message's place in a shared file is damaged too", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  await jobs.publishMany(["one", "two", "three", "four"].map(bytes));
  const { path, name, entry } = entriesOf(directory.path, "ready")[2]!;
  // The last in order, so that it is read from the file that its neighbours have brought into memory.
  const other = entry.id.replace(/.$/, (last) => last === "Z" ? "Y" : "Z");
  fs.renameSync(path, path.replace(name, name.replace(entry.id, other)));
  assert.deepEqual((await drain(jobs)).sort(), ["four", "one", "two"]);
  assert.equal(foldersOf(directory.path, "damaged").length, 1);
});

test("a damaged message out of attempts does not hold up the burial of others", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 1 } });
  for (const text of ["one", "two", "three"]) await jobs.publish(bytes(text));
  assert.equal((await jobs.receive(10)).length, 3);
  clock.set(clock.now() + 30_000);
  fs.writeFileSync(entriesOf(directory.path, "leased")[0]!.path, "");
  assert.deepEqual(await jobs.receive(10), []);
  assert.equal((await jobs.deadLetters({ max: 10 })).length, 2);
  assert.equal(foldersOf(directory.path, "damaged").length, 1);
  assert.equal((await jobs.stats()).leased, 0);
});

test("a dead letter whose file is damaged is passed over; the others are listed, replayed and deleted", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  for (const text of ["one", "two", "three", "four"]) {
    await jobs.publish(bytes(text));
    await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
  }
  const letters = await jobs.deadLetters({ max: 10 });
  assert.equal(letters.length, 4);
  const folder = `${directory.path}/dead/${foldersOf(directory.path, "dead")[0]}`;
  const fileOf = (index: number) =>
    `${folder}/${fs.readdirSync(folder).find((name) => name.startsWith(letters[index]!.message.id))}`;
  fs.truncateSync(fileOf(0), 30);
  const third = fileOf(2);
  fs.unlinkSync(third);
  fs.mkdirSync(third);
  assert.deepEqual((await jobs.deadLetters({ max: 10 })).map(({ message }) => message.id), [
    letters[1]!.message.id,
    letters[3]!.message.id,
  ]);
  await assert.rejects(jobs.replayDeadLetter(letters[0]!.message.id), { reason: "DEAD_LETTER_NOT_FOUND" });
  assert.equal(await jobs.replayDeadLetters({ max: 10 }), 2);
  assert.deepEqual(await drain(jobs), ["two", "four"]);
  await jobs.deleteDeadLetter(letters[0]!.message.id);
});

test("a dead letter with a spoiled field loses only that field, and is replayed all the same", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  const write = async (change: (footer: Record<string, unknown>) => void) => {
    await jobs.publish(bytes("payload"), { priority: 1 });
    const [delivery] = await jobs.receive(1);
    await jobs.reject(delivery!.lease.receipt, new RangeError("secret"));
    const folder = `${directory.path}/dead/${foldersOf(directory.path, "dead")[0]}`;
    const [name] = fs.readdirSync(folder);
    const file = fs.readFileSync(`${folder}/${name}`);
    const length = file.readUInt32LE(file.byteLength - 8);
    const start = file.byteLength - 8 - length;
    const footer = JSON.parse(file.subarray(start, file.byteLength - 8).toString());
    change(footer);
    const json = Buffer.from(JSON.stringify(footer));
    const end = Buffer.alloc(8);
    end.writeUInt32LE(json.byteLength, 0);
    end.write("QEND", 4, "latin1");
    const whole = Buffer.concat([file.subarray(0, start), json, end]);
    fs.unlinkSync(`${folder}/${name}`);
    fs.writeFileSync(`${folder}/${name!.replace(/-\d+$/, `-${whole.byteLength}`)}`, whole);
    const [letter] = await jobs.deadLetters({ max: 1 });
    return letter!;
  };
  const spoils: readonly (readonly [string, readonly unknown[]])[] = [
    ["priority", [7, -3, 1.5, "high", null]],
    ["deliveries", [-1, 1e20, "one", {}]],
    ["enqueuedAt", [-1, 1e20, NaN, "then", 9_999_999_999_999]],
    ["code", [-1, 2 ** 32, 0.5, "code"]],
    ["reason", [5, null]],
    ["cause", [[], {}]],
    ["trail", ["trail", [-1, "x", 2 ** 40]]],
  ];
  for (const [field, values] of spoils) {
    for (const value of values) {
      const letter = await write((footer) => footer[field] = value);
      assert.equal(letter.deliveries, field === "deliveries" ? 0 : 1);
      assert.equal(letter.priority, field === "priority" ? 0 : 1, `${field} ${value}`);
      assert.equal(letter.cause, field === "cause" ? "" : "RangeError");
      assert.ok(!Number.isNaN(letter.message.enqueuedAt.getTime()));
      await jobs.replayDeadLetter(letter.message.id);
      const [again] = await jobs.receive(1);
      assert.equal(again?.message.id, letter.message.id, `${field} ${value} does not cost the message`);
      await jobs.ack(again!.lease.receipt);
    }
  }
});
