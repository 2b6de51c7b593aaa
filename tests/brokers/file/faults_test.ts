/**
 * Refuses each single file operation of every verb once, before or after it took effect, and looks at what is left.
 *
 * Not a conformance case, since only this broker does its work in operations that a file system may refuse one by one.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { isQueueError, QueueError } from "../../../src/core/error.ts";
import type { Policy } from "../../../src/core/policy.ts";
import type { Message, Receipt } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import {
  agedOperations,
  type Fault,
  faultyOperations,
  type OperationName,
  unflushedOperations,
} from "../../support/file_faults.ts";
import { mortal } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf } from "./on_disk.ts";
import { bytes, drain, openQueue, settle, textOf } from "./queue.ts";

const policy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 2, retryDelay: 1_000, deadLetterRetention: 1e9 };
const codes = ["EIO", "ENOSPC", "EDQUOT", "EMFILE", "EACCES", "EROFS", "ESTALE"];

interface Scenario {
  readonly name: string;
  /** What differs from the policy of all. */
  readonly policy?: Partial<Policy>;
  /** Which files pass for an hour older than they are. */
  readonly isOld?: (path: string) => boolean;
  /** Prepares the queue while nothing is refused; what it returns goes to `run`. */
  readonly prepare?: (jobs: FileBroker, clock: ManualClock, dir: string) => Promise<unknown>;
  readonly run: (jobs: FileBroker, prepared: never, clock: ManualClock) => Promise<unknown>;
  /** Payloads that were in the queue before, and have to be found afterwards unless the call succeeded in ending them. */
  readonly kept?: readonly string[];
  /** What a call that resolved has ended. */
  readonly ends?: readonly string[];
  /** What a call that resolved has made durable. */
  readonly makes?: readonly string[];
}

const publishAll = (jobs: FileBroker, texts: readonly string[]) => jobs.publishMany(texts.map(bytes));
const leaseOne = async (jobs: FileBroker): Promise<Receipt> => (await jobs.receive(1))[0]!.lease.receipt;
const prepareHeld = async (jobs: FileBroker) => {
  await publishAll(jobs, ["held", "waiting"]);
  return await leaseOne(jobs);
};
const prepareDead = async (jobs: FileBroker) => {
  await publishAll(jobs, ["one", "two"]);
  await jobs.reject(await leaseOne(jobs));
  await jobs.reject(await leaseOne(jobs));
  return (await jobs.deadLetters({ max: 10 })).map(({ message }) => message.id);
};

/** After how many steps a once publisher dies so that its key is reserved and its message not moved. */
let reservedAfter = 0;

const scenarios: readonly Scenario[] = [
  { name: "publish", run: (jobs) => jobs.publish(bytes("lone")), makes: ["lone"] },
  {
    name: "publishMany",
    run: (jobs, _, clock) =>
      jobs.publishMany([
        bytes("a"),
        { payload: bytes("b"), priority: 1 },
        { payload: bytes("c"), at: new Date(clock.now() + 5_000) },
        { payload: bytes("d"), at: new Date(clock.now() + 1e10) },
        { payload: bytes("e"), headers: { secret: "header" } },
      ]),
    makes: ["a", "b", "c", "d", "e"],
  },
  { name: "publishOnce", run: (jobs) => jobs.publishOnce("key", bytes("single"), 60_000), makes: ["single"] },
  {
    name: "publishOnce of a key that was reserved",
    prepare: (jobs) => jobs.publishOnce("key", bytes("earlier"), 60_000),
    run: async (jobs) => assert.equal((await jobs.publishOnce("key", bytes("never"), 60_000)).published, false),
    kept: ["earlier"],
  },
  {
    name: "publishOnce of a key whose window has ended",
    async prepare(jobs, clock) {
      await jobs.publishOnce("key", bytes("earlier"), 1_000);
      clock.set(clock.now() + 70_000);
    },
    run: async (jobs) => assert.equal((await jobs.publishOnce("key", bytes("single"), 60_000)).published, true),
    kept: ["earlier"],
    makes: ["single"],
  },
  {
    name: "receive",
    prepare: (jobs) => publishAll(jobs, ["one", "two", "three"]),
    run: (jobs) => jobs.receive(2),
    kept: ["one", "two", "three"],
  },
  { name: "ack", prepare: prepareHeld, run: (jobs, receipt) => jobs.ack(receipt), kept: ["waiting"], ends: ["held"] },
  {
    name: "ackMany",
    async prepare(jobs) {
      await publishAll(jobs, ["one", "two", "three"]);
      return (await jobs.receive(3)).map(({ lease }) => lease.receipt);
    },
    run: (jobs, receipts) => jobs.ackMany(receipts),
    ends: ["one", "two", "three"],
  },
  { name: "nack", prepare: prepareHeld, run: (jobs, receipt) => jobs.nack(receipt), kept: ["held", "waiting"] },
  {
    name: "nackAfter with no delay",
    prepare: prepareHeld,
    run: (jobs, receipt) => jobs.nackAfter(receipt, undefined, 0),
    kept: ["held", "waiting"],
  },
  { name: "reject", prepare: prepareHeld, run: (jobs, receipt) => jobs.reject(receipt), kept: ["held", "waiting"] },
  { name: "release", prepare: prepareHeld, run: (jobs, receipt) => jobs.release(receipt), kept: ["held", "waiting"] },
  {
    name: "extend",
    prepare: prepareHeld,
    run: (jobs, receipt) => jobs.extend(receipt, 60_000),
    kept: ["held", "waiting"],
  },
  {
    name: "reclaiming a lapsed lease",
    async prepare(jobs, clock) {
      await publishAll(jobs, ["one", "two"]);
      await jobs.receive(2);
      clock.set(clock.now() + 30_000);
    },
    run: (jobs) => jobs.receive(2),
    kept: ["one", "two"],
  },
  {
    name: "burying lapsed leases",
    async prepare(jobs, clock) {
      await publishAll(jobs, ["one", "two", "three"]);
      for (let attempt = 0; attempt < 2; attempt++) {
        assert.equal((await jobs.receive(3)).length, 3);
        clock.set(clock.now() + 30_000);
      }
    },
    run: (jobs) => jobs.receive(2),
    kept: ["one", "two", "three"],
  },
  {
    name: "replayDeadLetter",
    prepare: prepareDead,
    run: (jobs, ids: readonly string[]) => jobs.replayDeadLetter(ids[0]!),
    kept: ["one", "two"],
  },
  {
    name: "replayDeadLetters",
    prepare: prepareDead,
    run: (jobs) => jobs.replayDeadLetters({ max: 10 }),
    kept: ["one", "two"],
  },
  {
    name: "deleteDeadLetter",
    prepare: prepareDead,
    run: (jobs, ids: readonly string[]) => jobs.deleteDeadLetter(ids[0]!),
    kept: ["two"],
    ends: ["one"],
  },
  { name: "deadLetters", prepare: prepareDead, run: (jobs) => jobs.deadLetters({ max: 10 }), kept: ["one", "two"] },
  {
    name: "putMessage",
    run: (jobs, _, clock) =>
      jobs.putMessage({
        message: { id: "", enqueuedAt: new Date(clock.now()), payload: bytes("copied"), headers: {} },
        visibleAt: new Date(clock.now() + 10_000),
        deliveries: 1,
        leased: false,
        priority: 0,
      }),
    makes: ["copied"],
  },
  {
    name: "putDeadLetter",
    run: (jobs, _, clock) =>
      jobs.putDeadLetter({
        message: { id: "", enqueuedAt: new Date(clock.now()), payload: bytes("copied"), headers: {} },
        failedAt: new Date(clock.now()),
        reason: "NOT_RETRYABLE",
        cause: "",
        code: 0,
        deliveries: 1,
        priority: 0,
      }),
    makes: ["copied"],
  },
  {
    name: "purgeDeadLetters",
    prepare: prepareDead,
    run: (jobs, _, clock) => jobs.purgeDeadLetters({ before: new Date(clock.now() + 1), max: 1 }),
    kept: ["two"],
    ends: ["one"],
  },
  {
    name: "a nack of the last attempt",
    policy: { maxDeliveries: 1 },
    prepare: prepareHeld,
    run: (jobs, receipt) => jobs.nack(receipt, new TypeError()),
    kept: ["held", "waiting"],
  },
  {
    name: "nackAfter with a delay",
    prepare: prepareHeld,
    run: (jobs, receipt) => jobs.nackAfter(receipt, undefined, 5_000),
    kept: ["held", "waiting"],
  },
  {
    name: "release with a delay",
    prepare: prepareHeld,
    run: (jobs, receipt) => jobs.release(receipt, { delay: 5_000 }),
    kept: ["held", "waiting"],
  },
  {
    name: "burying what has grown too old",
    // So young that all ends well before the rest of the test looks for it.
    policy: { maxAge: 1_000 },
    async prepare(jobs, clock) {
      await publishAll(jobs, ["one", "two", "three"]);
      clock.set(clock.now() + 1_000);
      await jobs.publish(bytes("young"));
    },
    run: (jobs) => jobs.receive(2),
    kept: ["one", "two", "three", "young"],
  },
  {
    name: "removing dead letters that were kept long enough",
    async prepare(jobs, clock) {
      await prepareDead(jobs);
      clock.set(clock.now() + 2e9);
      await jobs.publish(bytes("waiting"));
    },
    run: (jobs) => jobs.receive(1),
    kept: ["waiting"],
    ends: ["one", "two"],
  },
  {
    name: "finding a message that is not what its name says",
    async prepare(jobs, _, dir) {
      await jobs.publish(bytes("damaged"));
      for (const { path } of entriesOf(dir, "ready")) fs.truncateSync(path);
      await publishAll(jobs, ["one", "two"]);
    },
    run: (jobs) => jobs.receive(2),
    kept: ["one", "two"],
    ends: ["damaged"],
  },
  {
    name: "finishing what a dead publisher has reserved",
    isOld: (path) => path.includes("/pending/"),
    async prepare(_, clock, dir) {
      const isReserved = () =>
        fs.readdirSync(`${dir}/pending`).some((name) => fs.statSync(`${dir}/pending/${name}`).nlink > 1);
      // As many steps as the last time, once it is known how many they are.
      for (;; reservedAfter++) {
        const process = mortal(unflushedOperations());
        const jobs = await openQueue(dir, { clock, operations: process.operations });
        process.dieAfter(reservedAfter);
        await assert.rejects(jobs.publishOnce("key", bytes("reserved"), 60_000));
        if (isReserved()) break;
      }
    },
    run: (jobs) => jobs.receive(1),
    kept: ["reserved"],
  },
  { name: "purge", prepare: prepareHeld, run: (jobs) => jobs.purge(), ends: ["held", "waiting"] },
  { name: "stats", prepare: prepareHeld, run: (jobs) => jobs.stats(), kept: ["held", "waiting"] },
  { name: "messages", prepare: prepareHeld, run: (jobs) => jobs.messages({ max: 5 }), kept: ["held", "waiting"] },
  {
    name: "allMessages",
    prepare: prepareHeld,
    run: (jobs) => Array.fromAsync(jobs.allMessages()),
    kept: ["held", "waiting"],
  },
];

/** Everything that a broker finds until long after, live or dead, by payload. */
async function findAll(jobs: FileBroker, clock: ManualClock): Promise<Set<string>> {
  const found = new Map<string, string>();
  const note = ({ id, payload }: Message) => {
    const known = found.get(id) ?? textOf(payload);
    assert.equal(known, textOf(payload), "one payload an id");
    found.set(id, known);
  };
  for (const step of [0, 60_000, 60_000, 2e10]) {
    clock.set(clock.now() + step);
    for (let batch = await jobs.receive(10); batch.length > 0; batch = await jobs.receive(10)) {
      for (const { message } of batch) note(message);
      await jobs.ackMany(batch.map(({ lease }) => lease.receipt));
    }
    if (step === 60_000) { for (const { message } of await jobs.deadLetters({ max: 100 })) note(message); }
  }
  const { queued, leased } = await jobs.stats();
  assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 }, "nothing stays out of reach");
  return new Set(found.values());
}

function assertDescribed(error: unknown, planted: Error, code: string, texts: readonly string[]): void {
  assert.ok(isQueueError(error, "QUEUE_BACKEND_FAILED"), `${error}`);
  assert.equal(error.fields.code, code);
  assert.equal(error.cause, planted, "the original is the cause");
  assert.equal(typeof error.fields.operation, "string");
  assert.equal(typeof error.fields.path, "string", `a path: ${error.message}`);
  assert.ok(error.message.includes(code) && error.message.includes(error.fields.path as string));
  const shown = error.message + JSON.stringify({ ...error.fields, path: "" });
  for (const text of texts) if (text.length > 3) assert.ok(!shown.includes(text), shown);
}

/** Runs a scenario with one refusal. */
async function runRefused(scenario: Scenario, fault: Fault): Promise<void> {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const faulty = faultyOperations(scenario.isOld && agedOperations(scenario.isOld));
  const settings = { policy: { ...policy, ...scenario.policy }, clock, operations: faulty.operations };
  await using jobs = await openQueue(directory.path, settings);
  const prepared = await scenario.prepare?.(jobs, clock, directory.path);
  const { kept = [], ends = [], makes = [] } = scenario;
  const open = faulty.open.size;
  faulty.arm(fault);
  let failure: unknown;
  try {
    await scenario.run(jobs, prepared as never, clock);
  } catch (error) {
    failure = error;
  }
  const { thrown } = faulty;
  faulty.disarm();
  if (failure !== undefined) {
    if (thrown === undefined) throw failure;
    assertDescribed(failure, thrown, fault.code, [...kept, ...ends, ...makes, "header"]);
    if (makes.length > 0 && fault.operation === "flush" && (failure as QueueError).fields.operation === "publish") {
      const { path, published } = (failure as QueueError).fields;
      if (!String(path).includes("/tmp/")) assert.equal(published, "unknown");
    }
  }
  assert.equal(faulty.open.size, open, "no descriptor is left open");
  await jobs.publish(bytes("after"));
  const found = await findAll(jobs, clock);
  const expected = [...kept, "after", ...(failure === undefined ? makes : ends.filter(() => false))];
  for (const text of expected) assert.ok(found.has(text), `"${text}" was lost`);
  for (const text of found) {
    assert.ok(["after", ...kept, ...ends, ...makes].includes(text), `"${text}" is somebody's`);
    if (failure === undefined) assert.ok(!ends.includes(text), `"${text}" came back`);
  }
}

/** How often a scenario calls each operation when nothing is refused. */
async function countCalls(scenario: Scenario): Promise<Map<OperationName, number>> {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const faulty = faultyOperations(scenario.isOld && agedOperations(scenario.isOld));
  const settings = { policy: { ...policy, ...scenario.policy }, clock, operations: faulty.operations };
  await using jobs = await openQueue(directory.path, settings);
  const prepared = await scenario.prepare?.(jobs, clock, directory.path);
  const before = new Map(faulty.calls);
  await scenario.run(jobs, prepared as never, clock);
  const counts = new Map<OperationName, number>();
  for (const [name, count] of faulty.calls) counts.set(name, count - (before.get(name) ?? 0));
  return counts;
}

const refusable: readonly OperationName[] = [
  "makeDirectory",
  "removeDirectory",
  "list",
  "rename",
  "link",
  "unlink",
  "create",
  "open",
  "write",
  "read",
  "flush",
  "status",
  "statusOf",
  "touch",
];

for (const scenario of scenarios) {
  test(`a refusal of any file operation of ${scenario.name} is told, and costs no message`, async () => {
    const counts = await countCalls(scenario);
    let turn = 0;
    for (const operation of refusable) {
      const count = counts.get(operation) ?? 0;
      for (let nth = 1; nth <= count; nth++) {
        for (const when of ["before", "after"] as const) {
          const fault: Fault = { operation, nth, when, code: codes[turn++ % codes.length]! };
          try {
            await runRefused(scenario, fault);
          } catch (error) {
            throw new Error(`With ${JSON.stringify(fault)}`, { cause: error });
          }
        }
      }
    }
    assert.ok(turn > 0, "there is something to refuse");
  });
}

test("what publishMany reports beside a refusal is exactly what is durable", async () => {
  // Three segments: 1,000 and 1,000 and 300.
  const texts = Array.from({ length: 2_300 }, (_, index) => `message ${index}`);
  const cases: readonly { readonly fault: Fault; readonly partial: number; readonly doubtful: number }[] = [
    { fault: { operation: "create", nth: 1, when: "before", code: "ENOSPC" }, partial: 0, doubtful: 0 },
    { fault: { operation: "create", nth: 2, when: "before", code: "EMFILE" }, partial: 1_000, doubtful: 0 },
    { fault: { operation: "write", nth: 3, when: "after", code: "EIO" }, partial: 2_000, doubtful: 0 },
    { fault: { operation: "link", nth: 1, when: "after", code: "EIO" }, partial: 0, doubtful: 0 },
    { fault: { operation: "link", nth: 1_777, when: "before", code: "ENOSPC" }, partial: 1_000, doubtful: 0 },
    { fault: { operation: "link", nth: 2_300, when: "after", code: "EACCES" }, partial: 2_000, doubtful: 0 },
    { fault: { operation: "makeDirectory", nth: 4, when: "before", code: "EROFS" }, partial: 1_000, doubtful: 0 },
    // The flush of a segment is followed by those of its folders.
    { fault: { operation: "flush", nth: 1, when: "after", code: "EIO" }, partial: 0, doubtful: 0 },
    { fault: { operation: "flush", nth: 2, when: "after", code: "EIO" }, partial: 0, doubtful: 1_000 },
    { fault: { operation: "flush", nth: 3, when: "before", code: "EIO" }, partial: 0, doubtful: 1_000 },
    { fault: { operation: "flush", nth: 7, when: "before", code: "ENOSPC" }, partial: 1_000, doubtful: 1_000 },
  ];
  for (const { fault, partial, doubtful } of cases) {
    using directory = temporaryDirectory();
    const faulty = faultyOperations();
    await using jobs = await openQueue(directory.path, { operations: faulty.operations });
    faulty.arm(fault);
    const what = JSON.stringify(fault);
    const failure = await jobs.publishMany(texts.map(bytes)).then(() => undefined, (error) => error);
    faulty.disarm();
    assert.ok(failure instanceof QueueError, `it is refused ${what}`);
    const reported = (failure.partial as Message[]).map(({ payload }) => textOf(payload));
    assert.deepEqual(reported, texts.slice(0, partial), what);
    assert.equal(failure.fields.published, doubtful > 0 ? "unknown" : undefined, what);
    const found = await drain(jobs);
    assert.deepEqual(found, texts.slice(0, partial + doubtful), what);
  }
});

test("callers whose publications went together each get a refusal of their own", async () => {
  using directory = temporaryDirectory();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations: faulty.operations });
  // All of one group: the third goes partly into the first segment, partly into the second.
  faulty.arm({ operation: "flush", nth: 7, when: "before", code: "EIO" });
  const outcomes = await Promise.allSettled([
    jobs.publish(bytes("first")),
    jobs.publishMany([bytes("second")]),
    jobs.publishMany(Array.from({ length: 1_500 }, (_, index) => bytes(`third ${index}`))),
    jobs.publish(bytes("fourth")),
    jobs.publishMany([bytes("fifth"), bytes("sixth")]),
  ]);
  faulty.disarm();
  const [first, second, ...others] = outcomes;
  assert.equal(first!.status, "fulfilled");
  assert.equal(second!.status, "fulfilled");
  const refusals = others.map((outcome) => (outcome as PromiseRejectedResult).reason as QueueError);
  assert.equal(new Set(refusals).size, 3, "no error is shared");
  for (const refusal of refusals) assert.equal(refusal.fields.published, "unknown");
  const [third, fourth, fifth] = refusals;
  assert.equal((third!.partial as Message[]).length, 998);
  assert.ok((third!.partial as Message[]).every(({ payload }) => textOf(payload).startsWith("third")));
  assert.equal(fourth!.partial, undefined);
  assert.deepEqual(fifth!.partial, []);
});

test("what cannot be taken back after a refusal is said to be unknown", async () => {
  using directory = temporaryDirectory();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations: faulty.operations });
  const { unlink } = faulty.operations;
  faulty.arm({ operation: "link", nth: 3, when: "before", code: "ENOSPC" });
  faulty.operations.unlink = (path) => {
    if (path.includes("/ready/")) throw Object.assign(new Error("read-only"), { code: "EROFS", path });
    unlink(path);
  };
  const failure = await jobs.publishMany(["a", "b", "c"].map(bytes)).then(() => undefined, (error) => error);
  assert.equal(failure.fields.published, "unknown");
  assert.equal(failure.fields.code, "EROFS");
  assert.deepEqual(failure.partial, []);
  faulty.operations.unlink = unlink;
  faulty.disarm();
  assert.deepEqual((await jobs.receive(5)).map(({ message }) => textOf(message.payload)), ["a", "b"]);
});

for (const failing of ["the bucket", "the folder that it lies in"]) {
  test(`a bucket is never written to again after a flush of ${failing} failed`, async () => {
    using directory = temporaryDirectory();
    const dir = directory.path;
    const faulty = faultyOperations();
    await using jobs = await openQueue(dir, { operations: faulty.operations });
    const isFailing = (path: string) => failing === "the bucket" ? path.includes("/ready/") : path.endsWith("/ready");
    const descriptors = new Map<number, string>();
    const { open } = faulty.operations;
    faulty.operations.open = (path) => {
      const descriptor = open(path);
      descriptors.set(descriptor, path);
      return descriptor;
    };
    const where = (descriptor: unknown) => isFailing(descriptors.get(descriptor as number) ?? "");
    faulty.arm({ operation: "flush", nth: 1, when: "before", code: "EIO", where });
    await assert.rejects(jobs.publish(bytes("doubtful")), (error) => {
      return isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.published === "unknown";
    });
    faulty.disarm();
    const [doubtful] = entriesOf(dir, "ready");
    await jobs.publish(bytes("second"));
    await jobs.publishMany([bytes("third"), bytes("fourth")]);
    const later = entriesOf(dir, "ready").filter(({ name }) => name !== doubtful!.name);
    assert.equal(later.length, 3);
    for (const { folder } of later) assert.notEqual(folder, doubtful!.folder);
    assert.deepEqual(await drain(jobs), ["doubtful", "second", "third", "fourth"], "it was visible, so it stays");
  });
}

test("a bucket whose own entry could not be flushed takes no message that is on the device", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const faulty = faultyOperations();
  await using jobs = await openQueue(dir, { operations: faulty.operations, policy: { retryDelay: 0 } });
  await jobs.publish(bytes("held"), { priority: 1 });
  const receipt = await leaseOne(jobs);
  await jobs.publishMany([bytes("other")]);
  await settle();
  faulty.arm({ operation: "flush", nth: 1, when: "before", code: "EIO" });
  // The front bucket is new, so it has to be flushed first.
  await assert.rejects(jobs.release(receipt), { reason: "QUEUE_BACKEND_FAILED" });
  faulty.disarm();
  const before = foldersOf(dir, "ready");
  await jobs.release(receipt);
  const { folder } = entriesOf(dir, "ready").find(({ entry }) => entry.priority === 1)!;
  assert.ok(!before.includes(folder), "another bucket was made");
});

test("a batch that was leased is handed out although a later message cannot be read", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { clock, operations: faulty.operations });
  for (const text of ["one", "two", "three"]) await jobs.publish(bytes(text));
  faulty.arm({ operation: "read", nth: 3, when: "before", code: "EIO" });
  const found = await jobs.receive(3);
  assert.deepEqual(found.map(({ message }) => textOf(message.payload)), ["one", "two"]);
  assert.ok(jobs.wake().in <= 0 && jobs.wake().scheduled, "there is more to look for at once");
  faulty.arm({ operation: "list", nth: 1, when: "before", code: "EIO", lasting: true });
  await assert.rejects(jobs.receive(3), { reason: "QUEUE_BACKEND_FAILED" });
  faulty.disarm();
  clock.set(clock.now() + 30_000);
  assert.deepEqual((await jobs.receive(3)).map(({ deliveries }) => deliveries), [2, 2, 2]);
});

test("what a refusal kept from being leased is still the next", async () => {
  using directory = temporaryDirectory();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { operations: faulty.operations });
  await jobs.publishMany(["one", "two", "three"].map(bytes));
  await jobs.publish(bytes("high"), { priority: 2 });
  for (let attempt = 0; attempt < 3; attempt++) {
    faulty.arm({ operation: "rename", nth: 1, when: "before", code: "ENOSPC" });
    await assert.rejects(jobs.receive(5), { reason: "QUEUE_BACKEND_FAILED" });
  }
  assert.deepEqual(await drain(jobs, 2), ["high", "one", "two", "three"]);
});

for (const code of ["EMFILE", "ENFILE", "ENOMEM", "EINTR", "EAGAIN"]) {
  test(`a machine that lacks something (${code}) costs no message an attempt`, async () => {
    using directory = temporaryDirectory();
    const clock = new ManualClock();
    const faulty = faultyOperations();
    const { operations } = faulty;
    await using jobs = await openQueue(directory.path, { clock, operations, policy: { maxDeliveries: 2 } });
    for (const text of ["one", "two", "three"]) await jobs.publish(bytes(text));
    await jobs.publishAt(bytes("delayed"), new Date(clock.now() + 1));
    clock.set(clock.now() + 1);
    for (const operation of ["open", "read", "statusOf"] as const) {
      for (let attempt = 0; attempt < 3; attempt++) {
        const where = (path: unknown) => typeof path !== "string" || path.includes("/leased/");
        faulty.arm({ operation, nth: 1, when: "before", code, where });
        const found = await jobs.receive(4).catch((error) => {
          assert.ok(isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === code);
          return [];
        });
        assert.equal(found.length === 0, faulty.thrown !== undefined, "the first one is refused");
        for (const { lease } of found) await jobs.release(lease.receipt);
      }
    }
    faulty.disarm();
    const found = await jobs.receive(5);
    assert.deepEqual(found.map(({ message }) => textOf(message.payload)), ["one", "two", "three", "delayed"]);
    assert.deepEqual(found.map(({ deliveries }) => deliveries), [1, 1, 1, 1]);
  });
}

test("a message that the device does not give back is in nobody's way, and stays", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  const faulty = faultyOperations();
  await using jobs = await openQueue(directory.path, { clock, operations: faulty.operations, policy });
  const { id } = await jobs.publish(bytes("unreadable"));
  for (const text of ["one", "two"]) await jobs.publish(bytes(text));
  const where = (path: unknown) => String(path).includes("/leased/") && String(path).includes(id);
  faulty.arm({ operation: "open", nth: 1, when: "before", code: "EIO", where, lasting: true });
  await assert.rejects(jobs.receive(1), { reason: "QUEUE_BACKEND_FAILED" });
  assert.deepEqual(await drain(jobs), ["one", "two"]);
  for (let lapse = 0; lapse < 5; lapse++) {
    clock.set(clock.now() + 30_000);
    await jobs.publish(bytes("next"));
    const texts = await drain(jobs).catch((error) => assert.ok(isQueueError(error, "QUEUE_BACKEND_FAILED")));
    assert.deepEqual(texts ?? await drain(jobs), ["next"], "the others are handled");
  }
  assert.equal((await jobs.stats()).leased, 1);
  faulty.disarm();
  clock.set(clock.now() + 30_000);
  assert.deepEqual(await jobs.receive(1), []);
  const [letter] = await jobs.deadLetters({ max: 1 });
  assert.equal(textOf(letter!.message.payload), "unreadable");
});

test("a refused burial leaves the lease with its holder, who may try again", async () => {
  let told = 0;
  for (const operation of ["create", "write", "flush", "link", "rename", "makeDirectory"] as const) {
    for (const when of ["before", "after"] as const) {
      using directory = temporaryDirectory();
      const clock = new ManualClock();
      const faulty = faultyOperations();
      await using jobs = await openQueue(directory.path, {
        clock,
        operations: faulty.operations,
        policy: { maxDeliveries: 1 },
      });
      await jobs.publishMany(["rejected", "nacked", "acknowledged", "left"].map(bytes));
      const [rejected, nacked, acknowledged] = (await jobs.receive(4)).map(({ lease }) => lease.receipt);
      const bury = [
        () => jobs.reject(rejected!, new RangeError()),
        () => jobs.nack(nacked!, new TypeError()),
        () => jobs.reject(acknowledged!),
      ];
      const inside = ["tmp/", "dead/"].map((folder) => `${directory.path}/${folder}`);
      const where = (path: unknown) => {
        return typeof path !== "string" || inside.some((folder) => path.startsWith(folder));
      };
      let struck = 0;
      for (const call of bury) {
        faulty.arm({ operation, nth: 1, when, code: "ENOSPC", where });
        const failure = await call().then(() => undefined, (error) => error);
        if (failure === undefined) continue;
        assert.ok(isQueueError(failure, "QUEUE_BACKEND_FAILED"), String(failure));
        struck++;
      }
      told += struck;
      faulty.disarm();
      if (struck < bury.length) continue;
      await jobs.ack(acknowledged!);
      await bury[1]!();
      await bury[0]!();
      const letters = await jobs.deadLetters({ max: 5 });
      assert.deepEqual(letters.map(({ cause }) => cause), ["RangeError", "TypeError"], `${operation} ${when}`);
      await assert.rejects(bury[0]!(), { reason: "LEASE_EXPIRED" });
      clock.set(clock.now() + 30_000);
      assert.deepEqual(await jobs.receive(5), []);
      const { leased, dead } = await jobs.stats();
      assert.deepEqual({ leased, dead }, { leased: 0, dead: 3 }, "and lapses as it would have");
    }
  }
  assert.ok(told >= 24, `${told} refusals were told`);
});

for (const code of ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]) {
  test(`without hard links (${code}) every message has a file of its own, and all goes on`, async () => {
    using directory = temporaryDirectory();
    const clock = new ManualClock();
    const faulty = faultyOperations();
    await using jobs = await openQueue(directory.path, {
      clock,
      operations: faulty.operations,
      policy: { maxDeliveries: 1 },
    });
    faulty.arm({ operation: "link", nth: 1, when: "before", code, lasting: true });
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`);
    await jobs.publishMany(texts.slice(0, 10).map(bytes));
    await Promise.all(texts.slice(10).map((text) => jobs.publish(bytes(text))));
    assert.equal(faulty.calls.get("link"), 1, "found out once");
    assert.deepEqual(await drain(jobs), texts);
    const racing = await Promise.all(Array.from({ length: 5 }, () => jobs.publishOnce("key", bytes("single"), 1_000)));
    assert.equal(racing.filter(({ published }) => published).length, 1);
    await jobs.publishMany(texts.slice(0, 3).map(bytes));
    assert.equal((await jobs.receive(10)).length, 4);
    clock.set(clock.now() + 30_000);
    assert.deepEqual(await jobs.receive(10), []);
    assert.equal((await jobs.deadLetters({ max: 10 })).length, 4, "buried together");
  });

  test(`without hard links (${code}) the report beside a refusal is exact too`, async () => {
    using directory = temporaryDirectory();
    const faulty = faultyOperations();
    const { operations } = faulty;
    operations.link = () => {
      throw Object.assign(new Error("no hard links"), { code });
    };
    await using jobs = await openQueue(directory.path, { operations });
    await jobs.publishMany(["found", "out"].map(bytes));
    faulty.arm({ operation: "rename", nth: 4, when: "before", code: "ENOSPC" });
    const failure = await jobs.publishMany(["a", "b", "c", "d", "e"].map(bytes)).then(
      () => undefined,
      (error) => error,
    );
    assert.deepEqual((failure.partial as Message[]).map(({ payload }) => textOf(payload)), ["a", "b", "c"]);
    assert.deepEqual(await drain(jobs), ["found", "out", "a", "b", "c"]);
  });
}
