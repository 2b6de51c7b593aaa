/**
 * Random programs over one to three processes on one directory, against plain lists.
 *
 * Allowed to differ: with more than one process the order inside a level, since rivals that met pick entries near the head
 * instead of the head itself.
 */

import assert from "node:assert/strict";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { isQueueError, QueueError } from "../../../src/core/error.ts";
import { type Policy, resolvePolicy } from "../../../src/core/policy.ts";
import type { Priority } from "../../../src/core/priority.ts";
import { AckOutcome, type LastFailure, type Receipt } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "../memory/random.ts";
import { type NaiveMessage, NaiveQueue, type Settled } from "./naive_queue.ts";
import { bytes, openQueue, textOf } from "./queue.ts";

/** Seeds that failed once. */
const failedSeeds: readonly number[] = [];

const policies: readonly Policy[] = [
  { visibilityTimeout: 5_000, maxDeliveries: 2 },
  { visibilityTimeout: 1_000, maxDeliveries: 3, retryDelay: 700, maxRetryDelay: 2_000, maxAge: 20_000 },
  { visibilityTimeout: 30_000, maxDeliveries: 1, retryDelay: 100, deadLetterRetention: 10_000 },
];

const failures: readonly { readonly cause: unknown; readonly recorded: LastFailure }[] = [
  { cause: undefined, recorded: { reason: "UNREPORTED", code: 0 } },
  { cause: new RangeError("secret"), recorded: { reason: "UNCLASSIFIED", code: 0 } },
  { cause: new QueueError("NOT_RETRYABLE"), recorded: { reason: "NOT_RETRYABLE", code: 136966 } },
];

class Program {
  readonly #random: SeededRandom;
  readonly #dir: string;
  readonly #policy: Policy;
  readonly #clock = new ManualClock(1e12);
  readonly #naive: NaiveQueue;
  readonly #brokers: FileBroker[] = [];
  readonly #lastSweeps: number[] = [];
  readonly #receipts: string[] = [];
  #published = 0;
  /** Between two operations the monotonic clock moves far enough that no look is put off. */
  #uptime = 0;

  constructor(random: SeededRandom, dir: string) {
    this.#random = random;
    this.#dir = dir;
    this.#policy = random.pick(policies)!;
    this.#naive = new NaiveQueue(resolvePolicy(this.#policy));
  }

  async run(operations: number): Promise<void> {
    const processes = 1 + this.#random.below(3);
    for (let index = 0; index < processes; index++) await this.#open(index);
    const history: string[] = [];
    try {
      for (let step = 0; step < operations; step++) {
        const [name, verb] = this.#random.pick(this.#verbs)!;
        history.push(name);
        this.#uptime += 1_000 + this.#random.below(8_000);
        await verb.call(this);
        await this.#checkStats();
      }
      await this.#checkLists();
      for (const jobs of this.#brokers) await jobs.close();
    } catch (error) {
      throw new Error(`${processes} processes, after ${history.join(", ")}`, { cause: error });
    }
  }

  async #open(index: number): Promise<void> {
    const operations = { ...unflushedOperations(), uptime: () => this.#uptime };
    this.#brokers[index] = await openQueue(this.#dir, { clock: this.#clock, policy: this.#policy, operations });
    this.#lastSweeps[index] = -Infinity;
  }

  readonly #verbs: readonly (readonly [string, (this: Program) => unknown])[] = [
    ["publish", this.#publish],
    ["publish", this.#publish],
    ["publishMany", this.#publishMany],
    ["publishOnce", this.#publishOnce],
    ["receive", this.#receive],
    ["receive", this.#receive],
    ["receive", this.#receive],
    ["ack", () => this.#settle((jobs, receipt) => jobs.ack(receipt), (receipt, now) => this.#naive.ack(receipt, now))],
    ["ackMany", this.#ackMany],
    ["nack", this.#nack],
    ["nack", this.#nack],
    ["reject", this.#reject],
    ["release", this.#release],
    ["extend", this.#extend],
    ["advance", this.#advance],
    ["advance", this.#advance],
    ["stepBack", () => this.#clock.set(this.#clock.now() - this.#random.below(3_000))],
    ["replay", this.#replay],
    ["replayMany", this.#replayMany],
    ["delete", this.#delete],
    ["purgeDead", this.#purgeDead],
    ["putMessage", this.#putMessage],
    ["putDeadLetter", this.#putDeadLetter],
    ["lists", this.#checkLists],
    ["reopen", this.#reopen],
    ["purge", () => this.#random.oneIn(4) ? this.#purge() : undefined],
  ];

  get #now(): number {
    return this.#clock.now();
  }

  #pickBroker(): FileBroker {
    return this.#random.pick(this.#brokers)!;
  }

  #level(): Priority {
    return this.#random.oneIn(3) ? this.#random.below(5) - 2 as Priority : 0;
  }

  #instant(): Date | undefined {
    return this.#random.oneIn(3) ? new Date(this.#now + this.#random.below(6_000) - 1_000) : undefined;
  }

  #isTooLate(at: Date | undefined): boolean {
    const { maxAge } = this.#naive.policy;
    return maxAge > 0 && at !== undefined && at.getTime() - this.#now >= maxAge;
  }

  #add(id: string, text: string, at: Date | undefined, priority: Priority): void {
    const visibleAt = Math.max(this.#now, at?.getTime() ?? 0);
    this.#naive.add({ id, text, enqueuedAt: this.#now, visibleAt, priority, deliveries: 0 }, this.#now);
  }

  async #publish(): Promise<void> {
    const text = `message ${this.#published++}`;
    const at = this.#instant();
    const priority = this.#level();
    if (this.#isTooLate(at)) return;
    const { id } = await this.#pickBroker().publish(bytes(text), { ...(at && { at }), priority });
    this.#add(id, text, at, priority);
  }

  async #publishMany(): Promise<void> {
    const items = Array.from({ length: this.#random.below(5) }, () => {
      return { text: `message ${this.#published++}`, at: this.#instant(), priority: this.#level() };
    }).filter(({ at }) => !this.#isTooLate(at));
    const messages = await this.#pickBroker().publishMany(items.map(({ text, at, priority }) => {
      return { payload: bytes(text), ...(at && { at }), priority };
    }));
    for (const [index, { text, at, priority }] of items.entries()) this.#add(messages[index]!.id, text, at, priority);
  }

  async #publishOnce(): Promise<void> {
    const key = this.#random.pick(["a", "b", "c"])!;
    const window = 1 + this.#random.below(4_000);
    const text = `message ${this.#published++}`;
    const outcome = await this.#pickBroker().publishOnce(key, bytes(text), window);
    assert.equal(outcome.published, this.#naive.reserve(key, window, this.#now), `key ${key}`);
    if (outcome.published) this.#add(outcome.message.id, text, undefined, 0);
  }

  async #receive(): Promise<void> {
    const max = 1 + this.#random.below(4);
    const index = this.#random.below(this.#brokers.length);
    const now = this.#now;
    const { deadLetterRetention } = this.#naive.policy;
    const since = now - this.#lastSweeps[index]!;
    if (deadLetterRetention > 0 && (since < 0 || since >= 60_000)) {
      this.#naive.sweep(now);
      this.#lastSweeps[index] = now;
    }
    const found = await this.#brokers[index]!.receive(max);
    this.#naive.reclaim(now);
    const due = this.#naive.due(now);
    const good = due.filter((message) => !this.#naive.isExpired(message, now));
    const expected = good.slice(0, max);
    assert.equal(found.length, expected.length, "how many are due");
    // Rivals may take another of the same level; the levels themselves are strict.
    assert.deepEqual(found.map(({ priority }) => priority), expected.map(({ priority }) => priority));
    const rivals = this.#brokers.length > 1;
    if (!rivals) assert.deepEqual(found.map(({ message }) => message.id), expected.map(({ id }) => id));
    await this.#expire(due, rivals ? undefined : expected.length === max ? expected.at(-1) : due.at(-1));
    for (const { message, lease, deliveries, priority, lastFailure } of found) {
      assert.ok(good.some(({ id }) => id === message.id), `${message.id} is due`);
      const known = this.#naive.lease(message.id, lease.receipt, now);
      assert.deepEqual(
        [textOf(message.payload), message.enqueuedAt.getTime(), deliveries, priority, lastFailure],
        [known.text, known.enqueuedAt, known.deliveries, known.priority, known.lastFailure],
      );
      assert.equal(lease.expiresAt.getTime(), known.lease!.deadline);
      this.#receipts.push(lease.receipt);
    }
  }

  /** Buries what has expired: all that comes before the last message taken, or what rivals' picks happened to meet. */
  async #expire(due: readonly NaiveMessage[], last: NaiveMessage | undefined): Promise<void> {
    const expired = due.filter((message) => this.#naive.isExpired(message, this.#now));
    if (expired.length === 0) return;
    const met = last === undefined
      ? new Set((await this.#pickBroker().deadLetters({ max: 1_000 })).map(({ message }) => message.id))
      : new Set(due.slice(0, due.indexOf(last) + 1).map(({ id }) => id));
    for (const message of expired) if (met.has(message.id)) this.#naive.expire(message, this.#now);
  }

  /** A receipt: mostly one that may still be good. */
  #receipt(): string | undefined {
    if (this.#random.oneIn(4)) return this.#random.pick(this.#receipts);
    return this.#random.pick(this.#naive.live.flatMap(({ lease }) => lease === undefined ? [] : [lease.receipt]));
  }

  async #settle(
    act: (jobs: FileBroker, receipt: Receipt) => Promise<unknown>,
    expect: (receipt: string, now: number) => Settled,
  ): Promise<void> {
    const receipt = this.#receipt();
    if (receipt === undefined) return;
    const outcome = await outcomeOf(act(this.#pickBroker(), receipt as Receipt));
    assert.equal(outcome, expect(receipt, this.#now));
  }

  async #ackMany(): Promise<void> {
    const receipts = Array.from({ length: this.#random.below(4) }, () => this.#receipt()).filter((one) =>
      one !== undefined
    );
    const outcomes = await this.#pickBroker().ackMany(receipts as Receipt[]);
    const expected = receipts.map((receipt) => {
      return this.#naive.ack(receipt, this.#now) === "ok" ? AckOutcome.acknowledged : AckOutcome.leaseExpired;
    });
    assert.deepEqual(outcomes, expected);
  }

  async #nack(): Promise<void> {
    const { cause, recorded } = this.#random.pick(failures)!;
    const delay = this.#random.oneIn(2) ? this.#random.below(2_000) : undefined;
    await this.#settle(
      (jobs, receipt) => delay === undefined ? jobs.nack(receipt, cause) : jobs.nackAfter(receipt, cause, delay),
      (receipt, now) => this.#naive.nack(receipt, recorded, now, delay),
    );
  }

  async #reject(): Promise<void> {
    const { cause, recorded } = this.#random.pick(failures)!;
    await this.#settle(
      (jobs, receipt) => jobs.reject(receipt, cause),
      (receipt, now) => this.#naive.reject(receipt, recorded, now),
    );
  }

  async #release(): Promise<void> {
    const delay = this.#random.oneIn(2) ? this.#random.below(2_000) : 0;
    await this.#settle(
      (jobs, receipt) => jobs.release(receipt, { delay }),
      (receipt, now) => this.#naive.release(receipt, delay, now),
    );
  }

  async #extend(): Promise<void> {
    const by = 1 + this.#random.below(20_000);
    let renewed = "";
    await this.#settle(
      async (jobs, receipt) => renewed = (await jobs.extend(receipt, by)).receipt,
      (receipt, now) => this.#naive.extend(receipt, () => renewed, by, now),
    );
    if (renewed !== "") this.#receipts.push(renewed);
  }

  #advance(): void {
    const deadlines = this.#naive.live.flatMap(({ lease }) => lease === undefined ? [] : [lease.deadline]);
    const exact = this.#random.pick([...deadlines, ...this.#naive.live.map(({ visibleAt }) => visibleAt)]);
    const later = this.#random.oneIn(2) && exact !== undefined && exact > this.#now;
    this.#clock.set(later ? exact - this.#random.below(2) : this.#now + this.#random.below(4_000));
  }

  #someDead(): string {
    return this.#random.pick(this.#naive.dead)?.id ?? "0".repeat(26);
  }

  async #replay(): Promise<void> {
    const id = this.#someDead();
    assert.equal(await outcomeOf(this.#pickBroker().replayDeadLetter(id)), this.#naive.replay(id, this.#now));
  }

  async #replayMany(): Promise<void> {
    const max = 1 + this.#random.below(3);
    assert.equal(await this.#pickBroker().replayDeadLetters({ max }), this.#naive.replayMany(max, this.#now));
  }

  async #delete(): Promise<void> {
    const id = this.#someDead();
    assert.equal(await outcomeOf(this.#pickBroker().deleteDeadLetter(id)), this.#naive.delete(id));
  }

  async #purgeDead(): Promise<void> {
    const before = this.#now - this.#random.below(5_000);
    const max = 1 + this.#random.below(3);
    const purged = await this.#pickBroker().purgeDeadLetters({ before: new Date(before), max });
    assert.equal(purged, this.#naive.purgeDead(before, max));
  }

  async #putMessage(): Promise<void> {
    const text = `message ${this.#published++}`;
    const enqueuedAt = this.#now - this.#random.below(10_000);
    const visibleAt = this.#now + this.#random.below(4_000) - 2_000;
    const deliveries = this.#random.below(3);
    const priority = this.#level();
    const id = await this.#pickBroker().putMessage({
      message: { id: "", enqueuedAt: new Date(enqueuedAt), payload: bytes(text), headers: {} },
      visibleAt: new Date(visibleAt),
      deliveries,
      leased: false,
      priority,
    });
    this.#naive.add({ id, text, enqueuedAt, visibleAt, priority, deliveries }, this.#now);
  }

  async #putDeadLetter(): Promise<void> {
    const text = `message ${this.#published++}`;
    const enqueuedAt = this.#now - this.#random.below(10_000);
    const failedAt = this.#now - this.#random.below(10_000);
    const priority = this.#level();
    const id = await this.#pickBroker().putDeadLetter({
      message: { id: "", enqueuedAt: new Date(enqueuedAt), payload: bytes(text), headers: {} },
      failedAt: new Date(failedAt),
      reason: "ELSEWHERE",
      cause: "",
      code: 7,
      deliveries: 2,
      priority,
    });
    this.#naive.dead.push({ id, text, enqueuedAt, failedAt, priority, deliveries: 2, reason: "ELSEWHERE", code: 7 });
  }

  async #purge(): Promise<void> {
    assert.deepEqual(await this.#pickBroker().purge(), this.#naive.purge());
  }

  async #reopen(): Promise<void> {
    const index = this.#random.below(this.#brokers.length);
    await this.#brokers[index]!.close();
    await this.#open(index);
  }

  async #checkStats(): Promise<void> {
    const stats = await this.#pickBroker().stats();
    const expected = this.#naive.stats(this.#now);
    assert.deepEqual({ oldestEnqueuedAt: undefined, nextDueAt: undefined, ...stats }, expected);
  }

  async #checkLists(): Promise<void> {
    const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1;
    const jobs = this.#pickBroker();
    const live = await Array.fromAsync(jobs.allMessages());
    assert.deepEqual(
      live.map(({ message, visibleAt, deliveries, leased, priority }) => ({
        id: message.id,
        text: textOf(message.payload),
        enqueuedAt: message.enqueuedAt.getTime(),
        instant: visibleAt.getTime(),
        deliveries,
        leased,
        priority,
      })),
      this.#naive.live.toSorted(byId).map(({ id, text, enqueuedAt, visibleAt, deliveries, lease, priority }) => ({
        id,
        text,
        enqueuedAt,
        instant: lease?.deadline ?? visibleAt,
        deliveries,
        leased: lease !== undefined,
        priority,
      })),
    );
    const letters = await jobs.deadLetters({ max: 1_000 });
    assert.deepEqual(
      letters.map(({ message, failedAt, reason, code, deliveries, priority }) => ({
        id: message.id,
        text: textOf(message.payload),
        enqueuedAt: message.enqueuedAt.getTime(),
        priority,
        deliveries,
        failedAt: failedAt.getTime(),
        reason,
        code,
      })),
      this.#naive.dead.toSorted(byId),
    );
  }
}

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (isQueueError(error)) return error.reason;
    throw error;
  }
}

test("random programs over one to three processes do what plain lists do", async () => {
  const seeds = [...failedSeeds, ...Array.from({ length: 250 }, (_, index) => index + 1)];
  await withSeeds(seeds, async (seed) => {
    using directory = temporaryDirectory();
    await new Program(new SeededRandom(seed), directory.path).run(40);
  });
});
