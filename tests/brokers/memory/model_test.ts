// Not conformance cases: they compare the memory broker with a reference over thousands of random calls, stepping clock
// included, in an order that the contract leaves to each broker.

import assert from "node:assert/strict";
import { isQueueError, normalizePolicy, type Policy, type Priority, QueueError } from "../../../src/core/mod.ts";
import { type MemoryBroker, newMemory } from "../../../src/brokers/memory/mod.ts";
import { ManualClock } from "../../../src/testing/mod.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";
import { byId, type ReferenceMessage, ReferenceQueue } from "./reference_queue.ts";

const start = Date.UTC(2026, 0, 1);

/** Payloads are filled with one byte: their length, and what bytes they hold. */
function show(payload: Uint8Array): string {
  return `${payload.length} of ${[...new Set(payload)]}`;
}

/** One random run: every call is made on both, and their answers are compared. */
class Run {
  readonly random: SeededRandom;
  readonly clock = new ManualClock(start);
  readonly policy: Policy;
  readonly model: ReferenceQueue;
  readonly broker: MemoryBroker;
  /** Every receipt ever seen, latest last. */
  receipts: string[] = [];

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    const { random } = this;
    this.policy = {
      visibilityTimeout: 1 + random.below(2_000),
      maxDeliveries: 1 + random.below(4),
      retryDelay: random.pick([0, 0, 50, 1_000]),
      maxAge: random.pick([0, 2_000, 5_000, 60_000]),
      deadLetterRetention: random.pick([0, 30_000]),
    };
    this.model = new ReferenceQueue(normalizePolicy(this.policy));
    this.broker = newMemory({ policy: this.policy, clock: this.clock });
  }

  get now(): number {
    return this.clock.now();
  }

  payload(): Uint8Array {
    const { random } = this;
    const size = random.pick([0, 1, 7, 64, 64, 65, 200, 1_000, 1_030, 5_000])!;
    return new Uint8Array(size).fill(random.below(256));
  }

  receipt(): string {
    const { random, receipts } = this;
    const recent = receipts.slice(-40);
    return random.oneIn(20) ? "nonsense" : random.pick(random.oneIn(10) ? receipts : recent) ?? "none";
  }

  priority(): Priority {
    return this.random.oneIn(2) ? 0 : (this.random.below(5) - 2) as Priority;
  }

  /** Makes a call that takes a receipt; compares how it is refused, and returns the holder and the answer. */
  async settle<T>(receipt: string, call: () => Promise<T>): Promise<[ReferenceMessage, T] | undefined> {
    const holder = this.model.holder(receipt, this.now);
    if (holder !== undefined) return [holder, await call()];
    const expected = this.receipts.includes(receipt) ? "LEASE_EXPIRED" : "UNKNOWN_RECEIPT";
    await assert.rejects(call, (error) => isQueueError(error, expected));
    return undefined;
  }

  async publish(): Promise<void> {
    const { broker, model, now, random } = this;
    const payload = this.payload();
    const priority = this.priority();
    const visibleAt = random.oneIn(3) ? now + random.below(3_000) : now;
    const options = { priority, at: visibleAt === now && random.oneIn(2) ? undefined : new Date(visibleAt) };
    const refused = model.policy.maxAge > 0 && visibleAt - now >= model.policy.maxAge;
    if (refused) return await assert.rejects(broker.publish(payload, options));
    const { id, enqueuedAt } = await broker.publish(payload, options);
    assert.equal(enqueuedAt.getTime(), now);
    const kept = payload.slice();
    model.add({ id, enqueuedAt: now, payload: kept, priority, visibleAt, visible: true, deliveries: 0 }, now);
    payload.fill(255);
  }

  async publishMany(): Promise<void> {
    const { broker, model, now, random } = this;
    const payloads = Array.from({ length: random.below(30) }, () => this.payload());
    const messages = await broker.publishMany(payloads);
    assert.equal(messages.length, payloads.length);
    for (const [at, { id }] of messages.entries()) {
      const payload = payloads[at]!;
      model.add({ id, enqueuedAt: now, payload, priority: 0, visibleAt: now, visible: true, deliveries: 0 }, now);
    }
  }

  async publishOnce(): Promise<void> {
    const { broker, model, now, random } = this;
    const key = `key ${random.below(5)}`;
    const window = 1 + random.below(3_000);
    const payload = this.payload();
    const result = await broker.publishOnce(key, payload, window);
    assert.equal(result.published, !((model.onceKeys.get(key) ?? 0) > now));
    if (!result.published) return;
    model.reserve(key, now + window, now);
    const { id } = result.message;
    model.add({ id, enqueuedAt: now, payload, priority: 0, visibleAt: now, visible: true, deliveries: 0 }, now);
  }

  async putMessage(): Promise<void> {
    const { broker, model, now, random } = this;
    const enqueuedAt = now - random.below(10_000) + 2_000;
    const visibleAt = now - 2_000 + random.below(4_000);
    const deliveries = random.below(4);
    const payload = this.payload();
    const message = { id: "", enqueuedAt: new Date(enqueuedAt), payload, headers: {} };
    const priority = this.priority();
    const live = { message, visibleAt: new Date(visibleAt), deliveries, leased: false, priority };
    const id = await broker.putMessage(live);
    model.add({ id, enqueuedAt, payload, priority, visibleAt, visible: true, deliveries }, now);
  }

  async putDeadLetter(): Promise<void> {
    const { broker, model, now, random } = this;
    const enqueuedAt = now - random.below(10_000);
    const failedAt = now - random.below(90_000);
    const payload = this.payload();
    const dead = { failedAt: new Date(failedAt), reason: "MOVED", cause: "by hand", code: 7, trail: [], deliveries: 2 };
    const message = { id: "", enqueuedAt: new Date(enqueuedAt), payload, headers: {} };
    const id = await broker.putDeadLetter({ ...dead, message, priority: 1 });
    model.dead.push({
      id,
      enqueuedAt,
      payload,
      priority: 1,
      deliveries: 2,
      failedAt,
      reason: "MOVED",
      code: 7,
      trail: [],
    });
  }

  async receive(): Promise<void> {
    const { broker, model, now, random } = this;
    const max = 1 + random.below(random.oneIn(4) ? 300 : 8);
    const deliveries = await broker.receive(max);
    const expected = model.receive(max, now);
    assert.deepEqual(
      deliveries.map(({ message, deliveries, priority, lastFailure, lease }) => ({
        id: message.id,
        enqueuedAt: message.enqueuedAt.getTime(),
        payload: show(message.payload),
        deliveries,
        priority,
        lastFailure: lastFailure && { ...lastFailure },
        expiresAt: lease.expiresAt.getTime(),
      })),
      expected.map(({ id, enqueuedAt, payload, deliveries, priority, lastFailure, lease }) => ({
        id,
        enqueuedAt,
        payload: show(payload),
        deliveries,
        priority,
        lastFailure,
        expiresAt: lease!.deadline,
      })),
    );
    for (const [at, { lease, message }] of deliveries.entries()) {
      expected[at]!.lease!.receipt = lease.receipt;
      this.receipts.push(lease.receipt);
      message.payload.fill(254);
    }
  }

  async ack(): Promise<void> {
    const receipt = this.receipt();
    const settled = await this.settle(receipt, () => this.broker.ack(receipt as never));
    if (settled !== undefined) this.model.remove(settled[0]);
  }

  async ackMany(): Promise<void> {
    const { broker, model, now, random } = this;
    const receipts = Array.from({ length: random.below(20) }, () => this.receipt());
    const outcomes = await broker.ackMany(receipts as never[]);
    const expected = receipts.map((receipt) => {
      const holder = model.holder(receipt, now);
      if (holder !== undefined) model.remove(holder);
      return holder !== undefined ? 1 : this.receipts.includes(receipt) ? 2 : 3;
    });
    assert.deepEqual(outcomes, expected);
  }

  async nack(): Promise<void> {
    const { broker, model, now, random } = this;
    const receipt = this.receipt();
    const named = random.oneIn(2) ? random.below(500) - 100 : undefined;
    const cause = random.oneIn(2) ? new QueueError("TASK_TIMEOUT") : undefined;
    const settled = await this.settle(receipt, () => {
      return named === undefined
        ? broker.nack(receipt as never, cause)
        : broker.nackAfter(receipt as never, cause, named);
    });
    if (settled === undefined) return;
    const [holder, result] = settled;
    const delay = Math.max(0, named ?? model.policy.retryDelay);
    const { deliveries } = holder;
    const deadLettered = cause === undefined
      ? model.fail(holder, "UNREPORTED", 0, delay, now)
      : model.fail(holder, cause.reason, cause.code, delay, now);
    const verdict = deadLettered
      ? { deliveries, deadLettered }
      : { deliveries, deadLettered, visibleAt: new Date(now + delay) };
    assert.deepEqual(result, verdict);
  }

  async reject(): Promise<void> {
    const receipt = this.receipt();
    const settled = await this.settle(receipt, () => this.broker.reject(receipt as never, new RangeError("secret")));
    if (settled !== undefined) this.model.bury(settled[0], "UNCLASSIFIED", 0, [], this.now);
  }

  async release(): Promise<void> {
    const receipt = this.receipt();
    const delay = this.random.oneIn(2) ? 0 : this.random.below(500);
    const settled = await this.settle(receipt, () => this.broker.release(receipt as never, { delay }));
    if (settled !== undefined) this.model.release(settled[0], delay, this.now);
  }

  async extend(): Promise<void> {
    const receipt = this.receipt();
    const by = 1 + this.random.below(4_000);
    const settled = await this.settle(receipt, () => this.broker.extend(receipt as never, by));
    if (settled === undefined) return;
    const [holder, lease] = settled;
    assert.equal(lease.expiresAt.getTime(), this.now + by);
    assert.notEqual(lease.receipt, receipt);
    holder.lease = { receipt: lease.receipt, deadline: this.now + by };
    this.receipts.push(lease.receipt);
  }

  async replayOne(): Promise<void> {
    const { broker, model, now, random } = this;
    const dead = random.pick(model.dead);
    if (dead === undefined) {
      return await assert.rejects(broker.replayDeadLetter("x"), (e) => isQueueError(e, "DEAD_LETTER_NOT_FOUND"));
    }
    if (model.isExpired(dead, now)) {
      return await assert.rejects(broker.replayDeadLetter(dead.id), (e) => isQueueError(e, "MESSAGE_EXPIRED"));
    }
    await broker.replayDeadLetter(dead.id);
    model.replay(dead, now);
  }

  async replayMany(): Promise<void> {
    const { broker, model, now, random } = this;
    const max = 1 + random.below(5);
    const expected = byId(model.dead).filter((dead) => !model.isExpired(dead, now)).slice(0, max);
    assert.equal(await broker.replayDeadLetters({ max }), expected.length);
    for (const dead of expected) model.replay(dead, now);
  }

  async deleteDead(): Promise<void> {
    const { broker, model, now, random } = this;
    const dead = random.pick(model.dead);
    if (random.oneIn(2) && dead !== undefined) {
      await broker.deleteDeadLetter(dead.id);
      model.dead.splice(model.dead.indexOf(dead), 1);
      return;
    }
    const before = now - random.below(60_000);
    const expected = byId(model.dead).filter(({ failedAt }) => failedAt < before).slice(0, 3);
    assert.equal(await broker.purgeDeadLetters({ before: new Date(before), max: 3 }), expected.length);
    for (const one of expected) model.dead.splice(model.dead.indexOf(one), 1);
  }

  async purge(): Promise<void> {
    if (!this.random.oneIn(20)) return;
    const leased = this.model.live.filter(({ lease }) => lease !== undefined).length;
    assert.deepEqual(await this.broker.purge(), { queued: this.model.live.length - leased, leased });
    this.model.live = [];
  }

  async look(): Promise<void> {
    const { broker, model, now, random } = this;
    const wait = model.untilReceivable(now);
    const wake = broker.wake();
    assert.deepEqual([wake.scheduled, wake.in], [wait !== undefined, wait ?? 0]);
    const after = random.oneIn(2) ? "" : random.pick(model.live)?.id ?? "";
    const live = byId(model.live).filter(({ id }) => id > after).slice(0, 10);
    assert.deepEqual(
      (await broker.messages({ after, max: 10 })).map(({ message, visibleAt, deliveries, leased }) => {
        return [message.id, show(message.payload), visibleAt.getTime(), deliveries, leased];
      }),
      live.map(({ id, payload, visibleAt, deliveries, lease }) => {
        return [id, show(payload), lease?.deadline ?? visibleAt, deliveries, lease !== undefined];
      }),
    );
    const dead = byId(model.dead).filter(({ id }) => id > after).slice(0, 10);
    assert.deepEqual(
      (await broker.deadLettersAfter({ after, max: 10 })).map((one) => {
        const { message, failedAt, deliveries, reason, code, trail = [], priority } = one;
        return [message.id, show(message.payload), failedAt.getTime(), deliveries, reason, code, trail, priority];
      }),
      dead.map(({ id, payload, failedAt, deliveries, reason, code, trail, priority }) => {
        return [id, show(payload), failedAt, deliveries, reason, code, trail, priority];
      }),
    );
    await this.compareStats();
  }

  async compareStats(): Promise<void> {
    const { broker, model, now } = this;
    model.see(now);
    const waiting = model.live.filter(({ lease }) => lease === undefined);
    const ready = waiting.filter(({ visible }) => visible).length;
    const least = (instants: number[]) => instants.length === 0 ? undefined : Math.min(...instants);
    const { oldestEnqueuedAt, nextDueAt, ...counts } = await broker.stats();
    assert.deepEqual(counts, {
      ready,
      delayed: waiting.length - ready,
      queued: waiting.length,
      leased: model.live.length - waiting.length,
      dead: model.dead.length,
    });
    assert.equal(oldestEnqueuedAt?.getTime(), least(model.live.map(({ enqueuedAt }) => enqueuedAt)));
    assert.equal(nextDueAt?.getTime(), least(waiting.map(({ visibleAt }) => visibleAt)));
  }

  passTime(): void {
    const { clock, now, random } = this;
    const { live } = this.model;
    const instants = live.map(({ lease, visibleAt }) => lease?.deadline ?? visibleAt).filter((instant) =>
      instant > now
    );
    if (random.oneIn(12)) clock.set(Math.max(start, now - random.below(3_000)));
    else if (random.oneIn(3) && instants.length > 0) clock.set(random.pick(instants)!);
    else clock.set(now + random.pick([0, 1, 1, 20, 300, 2_500, 20_000])!);
  }

  async step(): Promise<void> {
    const { random } = this;
    const calls: [weight: number, call: () => void | Promise<void>][] = [
      [8, () => this.publish()],
      [1, () => this.publishMany()],
      [2, () => this.publishOnce()],
      [1, () => this.putMessage()],
      [1, () => this.putDeadLetter()],
      [6, () => this.receive()],
      [4, () => this.ack()],
      [2, () => this.ackMany()],
      [4, () => this.nack()],
      [1, () => this.reject()],
      [2, () => this.release()],
      [2, () => this.extend()],
      [1, () => this.replayOne()],
      [1, () => this.replayMany()],
      [1, () => this.deleteDead()],
      [1, () => this.purge()],
      [3, () => this.look()],
      [6, () => this.passTime()],
    ];
    let at = random.below(calls.reduce((sum, [weight]) => sum + weight, 0));
    const [, call] = calls.find(([weight]) => (at -= weight) < 0)!;
    await call();
  }
}

test("newMemory() behaves as the reference over random calls", async () => {
  await withSeeds([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], async (seed) => {
    const run = new Run(seed);
    for (let call = 0; call < 800; call++) await run.step();
    await run.look();
    await run.broker.close();
  });
});
