/**
 * Kills a process before each single file operation of every verb, then looks at the queue from another process.
 *
 * Not a conformance case, since only this broker does its work in steps that a kill can part.
 */

import assert from "node:assert/strict";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { openFile } from "../../../src/brokers/file/new_file.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { Priority } from "../../../src/core/priority.ts";
import type { Receipt } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { freshOperations, mortal, openAsProcess, ProcessDied } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

const policy: Policy = {
  visibilityTimeout: 30_000,
  maxDeliveries: 2,
  retryDelay: 1_000,
  deadLetterRetention: 3_600_000,
};

/** What a scenario promises about the messages it deals with, by their payload. */
interface Ledger {
  /** Payloads that must be found afterwards, live or dead. */
  readonly kept: Set<string>;
  /** Payloads that may be found. */
  readonly allowed: Set<string>;
  /** Payloads that must not be found once the call had resolved. */
  readonly ended: Set<string>;
}

interface Scenario {
  readonly name: string;
  /** Prepares the queue in a process that is not killed. */
  readonly prepare?: (jobs: FileBroker, ledger: Ledger, clock: ManualClock) => Promise<unknown>;
  /** The process that may be killed at any step; `prepared` is what `prepare` returned. */
  readonly run: (jobs: FileBroker, ledger: Ledger, prepared: never, clock: ManualClock) => Promise<void>;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (payload: Uint8Array) => new TextDecoder().decode(payload);

/** Publishes and notes that the message must survive from the moment the call resolved. */
async function publish(jobs: FileBroker, ledger: Ledger, ...payloads: string[]): Promise<void> {
  for (const payload of payloads) ledger.allowed.add(payload);
  await jobs.publishMany(payloads.map(bytes));
  for (const payload of payloads) ledger.kept.add(payload);
}

async function leaseOne(jobs: FileBroker): Promise<Receipt> {
  const [delivery] = await jobs.receive(1);
  assert.ok(delivery, "there was something to lease");
  return delivery.lease.receipt;
}

const prepareLeased = async (jobs: FileBroker, ledger: Ledger) => {
  await publish(jobs, ledger, "held", "waiting");
  return await leaseOne(jobs);
};

const prepareLastAttempt = async (jobs: FileBroker, ledger: Ledger, clock: ManualClock) => {
  await publish(jobs, ledger, "held");
  await jobs.nack(await leaseOne(jobs), new Error("first"));
  clock.set(clock.now() + 1_000);
  return await leaseOne(jobs);
};

const prepareDead = async (jobs: FileBroker, ledger: Ledger) => {
  await publish(jobs, ledger, "one", "two");
  await jobs.reject(await leaseOne(jobs), new Error("first"));
  await jobs.reject(await leaseOne(jobs), new Error("second"));
  return (await jobs.deadLetters({ max: 10 })).map(({ message }) => message.id);
};

const scenarios: readonly Scenario[] = [
  { name: "publish", run: (jobs, ledger) => publish(jobs, ledger, "lone") },
  { name: "publishMany", run: (jobs, ledger) => publish(jobs, ledger, ..."abcdefgh") },
  {
    name: "publishMany at every level and instant",
    async run(jobs, ledger, _, clock) {
      const at = new Date(clock.now() + 5_000);
      for (const payload of ["low", "high", "later", "lowest", "highest"]) ledger.allowed.add(payload);
      await jobs.publishMany([
        { payload: bytes("low"), priority: Priority.low },
        { payload: bytes("high"), priority: Priority.high },
        { payload: bytes("later"), at },
        { payload: bytes("lowest"), priority: Priority.lowest, at },
        { payload: bytes("highest"), priority: Priority.highest },
      ]);
      for (const payload of ["low", "high", "later", "lowest", "highest"]) ledger.kept.add(payload);
    },
  },
  {
    name: "concurrent publishes",
    async run(jobs, ledger) {
      const outcomes = await Promise.allSettled([..."abc"].map((payload) => publish(jobs, ledger, payload)));
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    },
  },
  {
    name: "publishOnce",
    async run(jobs, ledger) {
      ledger.allowed.add("once");
      await jobs.publishOnce("key", bytes("once"), 60_000);
      ledger.kept.add("once");
    },
  },
  {
    name: "publishOnce of a key whose window has ended",
    async prepare(jobs, ledger, clock) {
      await jobs.publishOnce("key", bytes("earlier"), 1_000);
      ledger.kept.add("earlier");
      clock.set(clock.now() + 1_000);
    },
    async run(jobs, ledger) {
      ledger.allowed.add("once");
      const { published } = await jobs.publishOnce("key", bytes("once"), 60_000);
      assert.equal(published, true);
      ledger.kept.add("once");
    },
  },
  {
    name: "receive",
    prepare: (jobs, ledger) => publish(jobs, ledger, "one", "two", "three"),
    async run(jobs) {
      await jobs.receive(2);
      await jobs.receive(2);
    },
  },
  {
    name: "ack",
    prepare: prepareLeased,
    async run(jobs, ledger, receipt) {
      ledger.kept.delete("held");
      ledger.allowed.add("held");
      await jobs.ack(receipt);
      ledger.ended.add("held");
    },
  },
  {
    name: "ackMany",
    async prepare(jobs, ledger) {
      await publish(jobs, ledger, "one", "two", "three");
      return (await jobs.receive(3)).map(({ lease }) => lease.receipt);
    },
    async run(jobs, ledger, receipts) {
      for (const payload of ["one", "two", "three"]) ledger.kept.delete(payload);
      await jobs.ackMany(receipts);
      for (const payload of ["one", "two", "three"]) ledger.ended.add(payload);
    },
  },
  {
    name: "nack",
    prepare: prepareLeased,
    run: async (jobs, _, receipt) => void await jobs.nack(receipt, new Error("again")),
  },
  {
    name: "nack with no delay",
    prepare: prepareLeased,
    run: async (jobs, _, receipt) => void await jobs.nackAfter(receipt, new Error("again"), 0),
  },
  {
    name: "nack of the last attempt",
    prepare: prepareLastAttempt,
    async run(jobs, _, receipt) {
      assert.equal((await jobs.nack(receipt, new Error("last"))).deadLettered, true);
    },
  },
  { name: "reject", prepare: prepareLeased, run: (jobs, _, receipt) => jobs.reject(receipt, new Error("no")) },
  { name: "release", prepare: prepareLeased, run: (jobs, _, receipt) => jobs.release(receipt) },
  {
    name: "release with a delay",
    prepare: prepareLeased,
    run: (jobs, _, receipt) => jobs.release(receipt, { delay: 5_000 }),
  },
  { name: "extend", prepare: prepareLeased, run: async (jobs, _, receipt) => void await jobs.extend(receipt, 60_000) },
  {
    name: "reclaiming a lapsed lease",
    async prepare(jobs, ledger, clock) {
      await publish(jobs, ledger, "held", "waiting");
      await jobs.receive(2);
      clock.set(clock.now() + 30_000);
    },
    run: async (jobs) => void await jobs.receive(2),
  },
  {
    name: "burying a lapsed lease",
    async prepare(jobs, ledger, clock) {
      await prepareLastAttempt(jobs, ledger, clock);
      clock.set(clock.now() + 30_000);
    },
    run: async (jobs) => assert.deepEqual(await jobs.receive(2), []),
  },
  {
    name: "replayDeadLetter",
    prepare: prepareDead,
    run: async (jobs, _, ids: readonly string[]) => await jobs.replayDeadLetter(ids[0]!),
  },
  {
    name: "replayDeadLetters",
    prepare: prepareDead,
    run: async (jobs) => assert.equal(await jobs.replayDeadLetters({ max: 10 }), 2),
  },
  {
    name: "deleteDeadLetter",
    prepare: prepareDead,
    async run(jobs, ledger, ids: readonly string[]) {
      ledger.kept.delete("one");
      await jobs.deleteDeadLetter(ids[0]!);
      ledger.ended.add("one");
    },
  },
  {
    name: "putMessage",
    async run(jobs, ledger, _, clock) {
      ledger.allowed.add("copied");
      await jobs.putMessage({
        message: { id: "", enqueuedAt: new Date(clock.now()), payload: bytes("copied"), headers: {} },
        visibleAt: new Date(clock.now()),
        deliveries: 1,
        leased: false,
        priority: 0,
      });
      ledger.kept.add("copied");
    },
  },
  {
    name: "putDeadLetter",
    async run(jobs, ledger, _, clock) {
      ledger.allowed.add("copied");
      await jobs.putDeadLetter({
        message: { id: "", enqueuedAt: new Date(clock.now()), payload: bytes("copied"), headers: {} },
        failedAt: new Date(clock.now()),
        reason: "NOT_RETRYABLE",
        cause: "",
        code: 0,
        deliveries: 1,
        priority: 0,
      });
      ledger.kept.add("copied");
    },
  },
  {
    name: "purge",
    prepare: prepareLeased,
    async run(jobs, ledger) {
      for (const payload of ["held", "waiting"]) ledger.kept.delete(payload);
      await jobs.purge();
      for (const payload of ["held", "waiting"]) ledger.ended.add(payload);
    },
  },
];

/** Everything that another process finds later: live messages by receiving them, dead ones by reading them. */
async function findAll(dir: string, clock: ManualClock): Promise<Map<string, string>> {
  await using jobs = await openAsProcess({ dir, policy, clock });
  const found = new Map<string, string>();
  const note = (id: string, payload: Uint8Array) => {
    const known = found.get(id);
    assert.ok(known === undefined || known === text(payload), `one payload an id: ${known} and ${text(payload)}`);
    found.set(id, text(payload));
  };
  // Past every lease and delay that the dead process left, more than once, so that what was reclaimed is seen too.
  for (let round = 0; round < 4; round++) {
    clock.set(clock.now() + 60_000);
    for (let batch = await jobs.receive(10); batch.length > 0; batch = await jobs.receive(10)) {
      for (const { message, lease } of batch) {
        note(message.id, message.payload);
        await jobs.ack(lease.receipt);
      }
    }
  }
  for (const { message } of await jobs.deadLetters({ max: 100 })) note(message.id, message.payload);
  const { queued, leased } = await jobs.stats();
  assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 }, "nothing stays out of reach");
  return found;
}

/** Runs a scenario in a process killed after so many file operations; whether it died. */
async function runKilled(scenario: Scenario, calls: number): Promise<boolean> {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const clock = new ManualClock();
  const ledger: Ledger = { kept: new Set(), allowed: new Set(), ended: new Set() };
  const process = mortal(freshOperations());
  const jobs = await openFile({ dir, policy, clock }, process.operations);
  const prepared = await scenario.prepare?.(jobs, ledger, clock);
  process.dieAfter(calls);
  try {
    await scenario.run(jobs, ledger, prepared as never, clock);
  } catch (error) {
    let cause: unknown = error;
    while (cause instanceof Error && !(cause instanceof ProcessDied)) cause = cause.cause;
    if (!(cause instanceof ProcessDied)) throw error;
  }
  process.dieAfter(0);
  const died = process.dead;
  const found = [...(await findAll(dir, clock)).values()];
  for (const payload of ledger.kept) assert.ok(found.includes(payload), `"${payload}" was lost`);
  for (const payload of found) {
    assert.ok(ledger.kept.has(payload) || ledger.allowed.has(payload), `"${payload}" is somebody's message`);
    assert.ok(!ledger.ended.has(payload), `"${payload}" came back`);
  }
  return died;
}

for (const scenario of scenarios) {
  test(`a process killed at any step of ${scenario.name} loses nothing`, async () => {
    let calls = 0;
    while (await runKilled(scenario, calls)) {
      calls++;
      assert.ok(calls < 1_000, "the scenario ends");
    }
    assert.ok(calls > 0, "the scenario has steps");
  });
}
