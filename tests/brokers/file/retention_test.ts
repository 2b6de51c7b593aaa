import assert from "node:assert/strict";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, openQueue } from "./queue.ts";

const retention = 600_000;

async function bury(jobs: FileBroker, count: number): Promise<void> {
  await jobs.publishMany(Array.from({ length: count }, () => bytes("x")));
  for (const { lease } of await jobs.receive(count)) await jobs.reject(lease.receipt);
}

const putDead = (jobs: FileBroker, failedAt: number) =>
  jobs.putDeadLetter({
    message: { id: "", enqueuedAt: new Date(0), payload: bytes("x"), headers: {} },
    failedAt: new Date(failedAt),
    reason: "UNREPORTED",
    cause: "",
    code: 0,
    deliveries: 0,
    priority: 0,
  });

const deadOf = async (jobs: FileBroker) => (await jobs.stats()).dead;

test("a receive removes at most a hundred letters that are too old, and the next ones go on", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { deadLetterRetention: retention } });
  await bury(jobs, 250);
  clock.set(clock.now() + retention);
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 250, "kept for exactly as long as the policy says");
  clock.set(clock.now() + 60_000);
  for (const left of [150, 50, 0]) {
    await jobs.receive(1);
    assert.equal(await deadOf(jobs), left);
  }
  assert.deepEqual(foldersOf(directory.path, "dead"), [], "no folder stays");
});

test("there is at most one look a minute, by the broker's clock", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { deadLetterRetention: retention } });
  await bury(jobs, 1);
  const start = clock.now();
  clock.set(start + retention + 1);
  await using other = await openQueue(directory.path, { clock, policy: { deadLetterRetention: 0 } });
  await other.receive(1);
  assert.equal(await deadOf(jobs), 1, "the policy of this one keeps them for good");
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 0);
  clock.set(start);
  await bury(other, 1);
  clock.set(start + retention + 60_000);
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 1, "looked less than a minute ago");
  clock.set(start + retention + 60_001);
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 0);
});

test("a clock that steps back does not put the next look off", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { deadLetterRetention: retention } });
  await jobs.receive(1);
  clock.set(clock.now() - 3_600_000);
  await putDead(jobs, clock.now() - retention - 1);
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 0);
});

test("a letter that was replayed or deleted meanwhile is no trouble, and what died again is young", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { deadLetterRetention: retention } });
  await using other = await openQueue(directory.path, { clock });
  await bury(jobs, 150);
  clock.set(clock.now() + retention + 60_001);
  await jobs.receive(1);
  assert.equal(await deadOf(jobs), 50, "the others are known to be too old");
  const [first, second] = await other.deadLetters({ max: 2 });
  await other.replayDeadLetter(first!.message.id);
  await other.deleteDeadLetter(second!.message.id);
  await other.reject((await other.receive(1))[0]!.lease.receipt);
  await jobs.receive(1);
  const left = await jobs.deadLetters({ max: 9 });
  assert.deepEqual(left.map(({ message }) => message.id), [first!.message.id], "it died anew a moment ago");
});

test("letters written elsewhere go by their own instant", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { deadLetterRetention: retention } });
  await putDead(jobs, 0);
  const kept = await putDead(jobs, clock.now() - retention);
  await putDead(jobs, clock.now() - retention - 1);
  await jobs.receive(1);
  assert.deepEqual((await jobs.deadLetters({ max: 9 })).map(({ message }) => message.id), [kept]);
});

test("hundreds that have reached their greatest age are buried over several calls, which come at once", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock, policy: { maxAge: 1_000 } });
  await jobs.publishMany(Array.from({ length: 250 }, () => bytes("old")));
  clock.set(clock.now() + 1_000);
  await jobs.publish(bytes("young"));
  for (const dead of [100, 200]) {
    assert.deepEqual(await jobs.receive(1), []);
    assert.equal(await deadOf(jobs), dead);
    assert.ok(jobs.wake().scheduled && jobs.wake().in <= 0, "there is work at once");
  }
  const [delivery] = await jobs.receive(1);
  assert.ok(delivery, "what is young comes when the old are out of the way");
  assert.equal(await deadOf(jobs), 250);
  for (const { reason, deliveries } of await jobs.deadLetters({ max: 300 })) {
    assert.deepEqual([reason, deliveries], ["MESSAGE_EXPIRED", 0]);
  }
});
