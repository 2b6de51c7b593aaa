/**
 * The verbs of a program: each makes a call of a broker, checks what comes back, and notes what the call may do and has done.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { parseFailure, parseReceipt } from "../../src/brokers/file/names.ts";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { isQueueError } from "../../src/core/error.ts";
import { recordFailure } from "../../src/core/failure.ts";
import type { Priority } from "../../src/core/priority.ts";
import { AckOutcome, type DeadLetter, type Delivery, type Message, type Receipt } from "../../src/core/values.ts";
import { readContents } from "./contents.ts";
import { type Disk, sha256 } from "./disk.ts";
import type { Birth, Fact, Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { quiet } from "./scheduler.ts";

/** A broker of a program. */
export interface OpenBroker {
  readonly jobs: FileBroker;
  /** The process that it is open in. */
  readonly operations: FileOperations;
  /** How many of its calls are under way. */
  running: number;
  /** Whether its `close` was called. */
  closing: boolean;
}

/** What verbs work on. */
export interface VerbSetup {
  readonly random: Random;
  readonly ledger: Ledger;
  readonly disk: Disk;
  readonly now: () => number;
  readonly brokers: readonly OpenBroker[];
  /** What was received, whoever received it. */
  readonly held: Delivery[];
  /** Opens one more broker. */
  readonly open: () => Promise<void>;
  /** Numbers messages. */
  readonly number: () => number;
}

const encoder = new TextEncoder();
/** The windows of once keys. */
const windows = [2_000, 3_600_000] as const;
const causes = [undefined, new RangeError("secret")] as const;

/** Whether two texts, counts or codes are as one record has them. */
function checkLetter(letter: DeadLetter, expected: Partial<DeadLetter>, payload: string): void {
  for (const [field, value] of Object.entries(expected)) {
    assert.deepEqual(letter[field as keyof DeadLetter], value, `the letter of ${payload} has another "${field}"`);
  }
}

/** Draws verbs and runs them. */
export class Verbs {
  readonly #setup: VerbSetup;
  readonly #random: Random;
  readonly #ledger: Ledger;
  /** How many verbs began since all was quiet. */
  #begun = 0;

  constructor(setup: VerbSetup) {
    this.#setup = setup;
    this.#random = setup.random;
    this.#ledger = setup.ledger;
  }

  /** Starts so many verbs at once. */
  start(width: number): Promise<void>[] {
    this.#begun = width;
    return Array.from({ length: width }, () => this.#draw(this.#random.pick(this.#setup.brokers)));
  }

  /** Starts a verb in another process than the one that is between two steps; nothing where there is no other. */
  startBetween(process: FileOperations): Promise<void> | undefined {
    const others = this.#setup.brokers.filter(({ operations }) => operations !== process);
    if (others.length === 0) return undefined;
    this.#begun++;
    const broker = this.#random.pick(others);
    return this.#random.chance(0.5) ? this.#call(broker, (jobs) => this.#settle(jobs)) : this.#draw(broker);
  }

  #draw(broker: OpenBroker): Promise<void> {
    const random = this.#random;
    const luck = random.below(100);
    if (luck < 14) return this.#call(broker, (jobs) => this.#publish(jobs));
    if (luck < 22) return this.#call(broker, (jobs) => this.#publishMany(jobs));
    if (luck < 30) return this.#call(broker, (jobs) => this.#publishOnce(jobs));
    if (luck < 32) {
      return this.#call(broker, (jobs) => random.chance(0.5) ? this.#putMessage(jobs) : this.#putDeadLetter(jobs));
    }
    if (luck < 56) return this.#call(broker, (jobs) => this.#receive(jobs));
    if (luck < 80) return this.#call(broker, (jobs) => this.#settle(jobs));
    if (luck < 88) return this.#call(broker, (jobs) => this.#manageDead(jobs));
    if (luck < 94) return this.#call(broker, (jobs) => this.#look(jobs), false);
    if (luck < 95) return this.#call(broker, (jobs) => this.#purge(jobs));
    if (luck < 98) return this.#close(broker);
    return this.#setup.open();
  }

  /** Makes a call of a broker, which its `close` waits for unless it iterates; one that is being closed may refuse it. */
  async #call(broker: OpenBroker, run: (jobs: FileBroker) => Promise<void>, awaited = true): Promise<void> {
    const weight = awaited && !broker.closing ? 1 : 0;
    broker.running += weight;
    try {
      await run(broker.jobs);
    } catch (error) {
      if (!(broker.closing && isQueueError(error, "QUEUE_CLOSED"))) throw error;
    } finally {
      broker.running -= weight;
    }
  }

  async #close(broker: OpenBroker): Promise<void> {
    broker.closing = true;
    await broker.jobs.close();
    // Who made the calls hears of their ends a few reactions later.
    await quiet();
    assert.equal(broker.running, 0, "close() resolved before its calls had");
  }

  // Publishing.

  #birth(more: Partial<Birth> = {}): Birth {
    const random = this.#random;
    const now = this.#setup.now();
    const number = this.#setup.number();
    const headers: readonly Record<string, string>[] = [
      {},
      { about: `message ${number}` },
      { about: `message ${number}`, "x-trace": "y".repeat(random.below(30)) },
    ];
    return {
      payload: `message ${number} ${"x".repeat(random.below(40))}`,
      headers: random.pick(headers),
      priority: (random.chance(0.4) ? random.below(5) - 2 : 0) as Priority,
      enqueuedAt: now,
      notBefore: now + (random.chance(0.2) ? random.pick([1_000, 40_000]) : 0),
      ...more,
    };
  }

  /** Publishes a message in one of the ways there are for it. */
  #publish(jobs: FileBroker): Promise<void> {
    const fact = this.#ledger.add(this.#birth());
    const { headers, priority } = fact;
    const payload = encoder.encode(fact.payload);
    const at = new Date(fact.notBefore);
    return this.#arrive([fact], async () => {
      const ways = [() => jobs.publish(payload, { headers, priority, at })];
      ways.push(() => jobs.publishAt(payload, at, { headers, priority }));
      ways.push(() => jobs.publishPriority(payload, priority, { headers, at }));
      this.#land(fact, await this.#random.pick(ways)());
    });
  }

  #publishMany(jobs: FileBroker): Promise<void> {
    const count = this.#random.chance(0.1) ? 8 + this.#random.below(16) : 2 + this.#random.below(5);
    const facts = Array.from({ length: count }, () => this.#ledger.add(this.#birth()));
    return this.#arrive(facts, async () => {
      const messages = await jobs.publishMany(facts.map(({ payload, headers, priority, notBefore }) => ({
        payload: encoder.encode(payload),
        headers,
        priority,
        at: new Date(notBefore),
      })));
      facts.forEach((fact, index) => this.#land(fact, messages[index]!));
    });
  }

  #publishOnce(jobs: FileBroker): Promise<void> {
    const key = `key ${this.#random.below(5)}`;
    const window = this.#random.pick(windows);
    const now = this.#setup.now();
    const fact = this.#ledger.add(this.#birth({ key: sha256(key), keyEnd: now + window }));
    const { headers, priority } = fact;
    const options = { headers, priority, at: new Date(fact.notBefore) };
    return this.#arrive([fact], async () => {
      const result = await jobs.publishOnce(key, encoder.encode(fact.payload), window, options);
      if (result.published) {
        for (const other of this.#ledger.byPayload.values()) {
          const twice = other.key === fact.key && other.keyHeld && other.keyEnd! > now;
          assert.ok(!twice, `${fact.payload} was published under the key of ${other.payload}`);
        }
        this.#land(fact, result.message);
        fact.keyHeld = true;
        return;
      }
      this.#ledger.forget(fact);
      const reservation = readContents(this.#setup.disk).reservations.get(fact.key!);
      assert.ok(reservation !== undefined && reservation.end > now, `${key} is not reserved`);
      // The answer says that its message is published, so it is on the device.
      const holder = this.#ledger.byId.get(reservation.id);
      if (holder !== undefined && holder.live > 0) holder.liveIsDurable = true;
    });
  }

  async #putMessage(jobs: FileBroker): Promise<void> {
    const now = this.#setup.now();
    const deliveries = this.#random.below(this.#ledger.policy.maxDeliveries);
    const fact = this.#ledger.add(this.#birth({ enqueuedAt: now - 5_000, deliveries }));
    await this.#arrive([fact], async () => {
      const id = await jobs.putMessage({
        message: this.#messageOf(fact),
        visibleAt: new Date(fact.notBefore),
        deliveries,
        leased: false,
        priority: fact.priority,
      });
      this.#ledger.land(fact, id);
    });
  }

  async #putDeadLetter(jobs: FileBroker): Promise<void> {
    const now = this.#setup.now();
    const failedAt = now - this.#random.below(3_000);
    const fact = this.#ledger.add(this.#birth({ enqueuedAt: now - 5_000, notBefore: now, letter: true }));
    if (failedAt < this.#ledger.clearedBefore) fact.clearing++;
    const rest = { failedAt: new Date(failedAt), reason: "ELSEWHERE", cause: "", code: 7, deliveries: 2 };
    await this.#arrive([fact], async () => {
      const id = await jobs.putDeadLetter({ message: this.#messageOf(fact), priority: fact.priority, ...rest });
      this.#ledger.land(fact, id);
    });
  }

  #messageOf({ payload, headers, enqueuedAt }: Fact): Message {
    return { id: "", payload: encoder.encode(payload), headers, enqueuedAt: new Date(enqueuedAt) };
  }

  /** Runs a publication; one that was refused by a closed broker has left nothing. */
  async #arrive(facts: readonly Fact[], run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      if (isQueueError(error, "QUEUE_CLOSED")) { for (const fact of facts) this.#ledger.forget(fact); }
      throw error;
    }
  }

  #land(fact: Fact, message: Message): void {
    assert.equal(message.enqueuedAt.getTime(), fact.enqueuedAt, `${fact.payload} has another enqueuedAt`);
    assert.deepEqual({ ...message.headers }, { ...fact.headers }, `${fact.payload} has other headers`);
    this.#ledger.land(fact, message.id);
  }

  // Receiving and settling.

  async #receive(jobs: FileBroker): Promise<void> {
    const now = this.#setup.now();
    const max = this.#random.chance(0.1) ? 20 : 1 + this.#random.below(4);
    this.#ledger.beginReceive(now);
    const deliveries = await jobs.receive(max);
    assert.ok(deliveries.length <= max, "more deliveries than were asked for");
    for (const delivery of deliveries) {
      this.#checkDelivery(delivery, now);
      this.#ledger.leases.add(delivery.lease.receipt);
      this.#setup.held.push(delivery);
    }
  }

  #checkDelivery({ message, priority, deliveries, lastFailure, lease }: Delivery, now: number): void {
    const ledger = this.#ledger;
    const { maxAge, maxDeliveries, visibilityTimeout } = ledger.policy;
    const fact = ledger.identify(message, priority);
    const { payload } = fact;
    assert.ok(now >= fact.notBefore, `${payload} was handed out before its time`);
    assert.ok(maxAge === 0 || now - fact.enqueuedAt < maxAge, `${payload} was handed out past its greatest age`);
    assert.ok(deliveries <= maxDeliveries, `${payload} was handed out ${deliveries} times`);
    assert.equal(lease.expiresAt.getTime(), now + visibilityTimeout, `${payload} has another lease`);
    assert.ok(++fact.delivered <= ledger.available(fact, now), `${payload} was handed to two at once`);
    assert.ok(deliveries > ledger.leastCount(fact), `${payload} came with the lower count ${deliveries}`);
    assert.ok(deliveries <= ledger.greatestCount(fact), `${payload} came with the higher count ${deliveries}`);
    if (fact.settling > 0 || fact.arriving > 0 || ledger.replays(fact) > 0) return;
    const known = fact.entries.some(({ state, entry }) => {
      const failure = state === "leased" ? parseFailure("l") : parseFailure(entry.failure);
      return entry.instant <= now && entry.deliveries + 1 === deliveries && failure?.reason === lastFailure?.reason;
    });
    assert.ok(known, `${payload} came with the count ${deliveries} and the failure ${lastFailure?.reason}`);
  }

  async #settle(jobs: FileBroker): Promise<void> {
    const { held } = this.#setup;
    if (held.length === 0) return await this.#receive(jobs);
    if (this.#random.chance(0.2)) return await this.#ackMany(jobs);
    const delivery = this.#takeHeld();
    const outcomes = [this.#ack, this.#ack, this.#nack, this.#nackAfter, this.#release, this.#reject, this.#extend];
    await this.#random.pick(outcomes).call(this, jobs, delivery);
  }

  /** Something that was received; now and then it is used again later. */
  #takeHeld(): Delivery {
    const { held } = this.#setup;
    const index = this.#random.below(held.length);
    const delivery = held[index]!;
    if (this.#random.chance(0.9)) held.splice(index, 1);
    return delivery;
  }

  /** Runs a call with a receipt; whether the lease was held. It must be when nobody else can have ended it. */
  async #withReceipt(delivery: Delivery, run: (fact: Fact) => Promise<void>, ownRemovals = 0): Promise<boolean> {
    const fact = this.#ledger.byId.get(delivery.message.id)!;
    const { receipt } = delivery.lease;
    const held = this.#holds(fact, receipt);
    fact.settling++;
    try {
      await run(fact);
    } catch (error) {
      if (!isQueueError(error, "LEASE_EXPIRED")) throw error;
      this.#checkRefusal(fact, held, ownRemovals);
      return false;
    }
    assert.ok(held, `${fact.payload} was settled under a lease that had ended`);
    return true;
  }

  #holds(fact: Fact, receipt: Receipt): boolean {
    const { bucket, name, entry } = parseReceipt(receipt)!;
    return entry.instant > this.#setup.now() && (this.#ledger.leases.has(receipt) ||
      fact.entries.some((lying) => lying.bucket === bucket && lying.name === name));
  }

  #checkRefusal(fact: Fact, held: boolean, ownRemovals: number): void {
    assert.ok(
      !held || fact.settling > 1 || fact.removing > ownRemovals,
      `the lease of ${fact.payload} ended by itself`,
    );
  }

  async #ack(jobs: FileBroker, delivery: Delivery): Promise<void> {
    const fact = this.#ledger.byId.get(delivery.message.id)!;
    fact.removing++;
    if (await this.#withReceipt(delivery, () => jobs.ack(delivery.lease.receipt), 1)) fact.removed++;
    else fact.removing--;
  }

  async #ackMany(jobs: FileBroker): Promise<void> {
    const count = 1 + this.#random.below(Math.min(5, this.#setup.held.length));
    const deliveries = new Set(Array.from({ length: count }, () => this.#random.pick(this.#setup.held)));
    for (const delivery of deliveries) this.#setup.held.splice(this.#setup.held.indexOf(delivery), 1);
    const acked = [...deliveries].map((delivery) => {
      const fact = this.#ledger.byId.get(delivery.message.id)!;
      fact.removing++;
      fact.settling++;
      return { fact, receipt: delivery.lease.receipt, held: this.#holds(fact, delivery.lease.receipt) };
    });
    const outcomes = await jobs.ackMany(acked.map(({ receipt }) => receipt));
    for (const [index, { fact, held }] of acked.entries()) {
      if (outcomes[index] === AckOutcome.acknowledged) {
        assert.ok(held, `${fact.payload} was acknowledged under a lease that had ended`);
        fact.removed++;
      } else {
        assert.equal(outcomes[index], AckOutcome.leaseExpired);
        this.#checkRefusal(fact, held, 1);
        fact.removing--;
      }
    }
  }

  #nack(jobs: FileBroker, delivery: Delivery): Promise<void> {
    const cause = this.#random.pick(causes);
    return this.#handBack(
      delivery,
      cause,
      this.#ledger.policy.retryDelay,
      () => jobs.nack(delivery.lease.receipt, cause),
    );
  }

  #nackAfter(jobs: FileBroker, delivery: Delivery): Promise<void> {
    const cause = this.#random.pick(causes);
    const delay = this.#random.pick([0, 2_000]);
    return this.#handBack(delivery, cause, delay, () => jobs.nackAfter(delivery.lease.receipt, cause, delay));
  }

  async #handBack(
    delivery: Delivery,
    cause: unknown,
    delay: number,
    run: () => ReturnType<FileBroker["nack"]>,
  ): Promise<void> {
    const fact = this.#ledger.byId.get(delivery.message.id)!;
    const last = delivery.deliveries >= this.#ledger.policy.maxDeliveries;
    if (last) fact.burying++;
    else fact.handing++;
    const done = await this.#withReceipt(delivery, async () => {
      const result = await run();
      assert.equal(result.deliveries, delivery.deliveries);
      assert.equal(result.deadLettered, last);
      if (last) this.#checkBurial(fact, delivery, cause);
      else assert.equal(result.visibleAt?.getTime(), this.#setup.now() + delay);
    });
    if (done) return;
    if (last) fact.burying--;
    else fact.handing--;
  }

  async #release(jobs: FileBroker, delivery: Delivery): Promise<void> {
    const fact = this.#ledger.byId.get(delivery.message.id)!;
    const delay = this.#random.chance(0.4) ? 3_000 : undefined;
    fact.handing++;
    fact.releasing++;
    if (await this.#withReceipt(delivery, () => jobs.release(delivery.lease.receipt, { delay }))) return;
    fact.handing--;
    fact.releasing--;
  }

  async #reject(jobs: FileBroker, delivery: Delivery): Promise<void> {
    const cause = this.#random.pick(causes);
    const fact = this.#ledger.byId.get(delivery.message.id)!;
    fact.burying++;
    const done = await this.#withReceipt(delivery, async () => {
      await jobs.reject(delivery.lease.receipt, cause);
      this.#checkBurial(fact, delivery, cause);
    });
    if (!done) fact.burying--;
  }

  /** What a burial wrote that resolved just now. */
  #checkBurial(fact: Fact, { deliveries }: Delivery, cause: unknown): void {
    fact.buried++;
    fact.deadIsDurable = true;
    if (fact.letters.length > 0 || fact.burying > 1 || fact.clearing + this.#ledger.replays(fact) > 0) return;
    const [letter, ...others] = readContents(this.#setup.disk).dead.get(fact.id!) ?? [];
    assert.ok(letter !== undefined && others.length === 0, `${fact.payload} has not one letter`);
    const { reason, code } = recordFailure(cause);
    const { name, footer } = letter;
    assert.deepEqual(
      [name.failedAt, footer.reason, footer.code, footer.deliveries],
      [this.#setup.now(), reason, code, deliveries],
      `the letter of ${fact.payload} tells of another failure`,
    );
  }

  async #extend(jobs: FileBroker, delivery: Delivery): Promise<void> {
    await this.#withReceipt(delivery, async () => {
      const lease = await jobs.extend(delivery.lease.receipt, 60_000);
      assert.equal(lease.expiresAt.getTime(), this.#setup.now() + 60_000);
      this.#ledger.leases.add(lease.receipt);
      this.#setup.held.push({ ...delivery, lease });
    });
  }

  // Dead letters.

  async #manageDead(jobs: FileBroker): Promise<void> {
    const letters = await this.#readDead(jobs);
    if (letters.length === 0) return;
    const fact = this.#ledger.byId.get(this.#random.pick(letters).message.id)!;
    const ways = [this.#replay, this.#replay, this.#delete, this.#replayMany, this.#purgeDead];
    await this.#random.pick(ways).call(this, jobs, fact);
  }

  async #readDead(jobs: FileBroker): Promise<DeadLetter[]> {
    const letters: DeadLetter[] = [];
    const max = this.#random.pick([3, 100]);
    for (let after = "";;) {
      const page = await jobs.deadLettersAfter({ after, max });
      for (const letter of page) {
        const fact = this.#ledger.identify(letter.message, letter.priority);
        if (fact.letter && letter.code === 7) checkLetter(letter, { reason: "ELSEWHERE", deliveries: 2 }, fact.payload);
        assert.ok(letter.message.id > after, "a page out of order");
        after = letter.message.id;
      }
      letters.push(...page);
      if (page.length < max || max === 3) return letters;
    }
  }

  async #replay(jobs: FileBroker, fact: Fact): Promise<void> {
    const { maxAge } = this.#ledger.policy;
    const expired = maxAge > 0 && this.#setup.now() - fact.enqueuedAt >= maxAge;
    fact.replaying++;
    try {
      await jobs.replayDeadLetter(fact.id!);
    } catch (error) {
      fact.replaying--;
      if (expired && isQueueError(error, "MESSAGE_EXPIRED")) return;
      this.#checkNoLetter(fact, error);
      return;
    }
    assert.ok(!expired, `${fact.payload} was replayed past its greatest age`);
    fact.live++;
    fact.liveIsDurable = true;
    fact.cleared++;
  }

  async #delete(jobs: FileBroker, fact: Fact): Promise<void> {
    fact.clearing++;
    try {
      await jobs.deleteDeadLetter(fact.id!);
    } catch (error) {
      fact.clearing--;
      this.#checkNoLetter(fact, error);
      return;
    }
    fact.cleared++;
  }

  /** A letter may be missing only when another call took it. */
  #checkNoLetter(fact: Fact, error: unknown): void {
    if (!isQueueError(error, "DEAD_LETTER_NOT_FOUND")) throw error;
    const taken = fact.clearing > 0 || this.#ledger.replays(fact) > 0 || fact.cleared > 0;
    assert.ok(fact.letters.length === 0 || taken, `the letter of ${fact.payload} was not found`);
  }

  async #replayMany(jobs: FileBroker): Promise<void> {
    this.#ledger.bulkReplays++;
    const max = 1 + this.#random.below(4);
    const count = await jobs.replayDeadLetters({ max });
    assert.ok(count <= max, "more letters were replayed than were asked for");
  }

  async #purgeDead(jobs: FileBroker): Promise<void> {
    const before = this.#setup.now() - this.#random.pick([-1, 0, 5_000]);
    const max = 1 + this.#random.below(4);
    this.#ledger.clearedBefore = Math.max(this.#ledger.clearedBefore, before);
    for (const fact of this.#ledger.byPayload.values()) {
      const arrives = fact.letter && fact.arriving > 0;
      const isOld = fact.letters.some(({ name }) => name.failedAt < before);
      if (isOld || arrives || before > this.#setup.now()) fact.clearing++;
    }
    const count = await jobs.purgeDeadLetters({ before: new Date(before), max });
    assert.ok(count <= max, "more letters were purged than were asked for");
  }

  // The whole queue.

  async #purge(jobs: FileBroker): Promise<void> {
    const end = this.#ledger.beginPurge();
    const { queued, leased } = await jobs.purge();
    end();
    if (this.#begun > 1) return;
    let found = 0;
    for (const { entries } of this.#ledger.byPayload.values()) {
      found += entries.filter(({ state }) => state !== "pending").length;
    }
    assert.equal(queued + leased, found, "the purge counted something else");
    for (const [id, entries] of readContents(this.#setup.disk).live) {
      for (const { state } of entries) assert.equal(state, "pending", `${id} outlived a purge`);
    }
  }

  async #look(jobs: FileBroker): Promise<void> {
    if (this.#random.chance(0.3)) await this.#readDead(jobs);
    const seen = new Set<string>();
    if (this.#random.chance(0.5)) {
      for await (const { message, priority } of jobs.allMessages()) {
        this.#ledger.identify(message, priority);
        seen.add(message.id);
      }
    } else {
      for (let after = "";;) {
        const page = await jobs.messages({ after, max: 7 });
        for (const { message, priority } of page) {
          this.#ledger.identify(message, priority);
          seen.add(after = message.id);
        }
        if (page.length < 7) break;
      }
    }
    const stats = await jobs.stats();
    if (this.#begun > 1) return;
    const count = { queued: 0, leased: 0, dead: 0 };
    for (const { id, entries, letters, payload } of this.#ledger.byPayload.values()) {
      const shown = entries.filter(({ state }) => state !== "pending");
      assert.equal(seen.has(id!), shown.length > 0, `the listing is wrong about ${payload}`);
      for (const { state } of shown) count[state === "leased" ? "leased" : "queued"]++;
      count.dead += letters.length;
    }
    assert.deepEqual({ queued: stats.queued, leased: stats.leased, dead: stats.dead }, count, "the counts are wrong");
  }
}
