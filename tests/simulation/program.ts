/**
 * A random program of verbs over several brokers on one disk that loses power, and what must be true after it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { openFile } from "../../src/brokers/file/new_file.ts";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { isQueueError } from "../../src/core/error.ts";
import type { Policy } from "../../src/core/policy.ts";
import { Priority } from "../../src/core/priority.ts";
import type { Delivery } from "../../src/core/values.ts";
import { Disk } from "./disk.ts";
import { Random, seedPlatform } from "./random.ts";
import { Scheduler } from "./scheduler.ts";

const policy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 3, retryDelay: 1_000 };
const start = Date.UTC(2026, 0, 1);
const onceWindow = 3_600_000;

/** What is known of a message that a program published. */
interface Fact {
  readonly payload: string;
  /** The publish resolved, so the message is on the device. */
  resolved: boolean;
  /** Somebody tried to end it (ack, purge, delete), so it may be gone. */
  mayBeGone: boolean;
  /** Its id, once known. */
  id?: string;
  /** Its once key, when it was published under one. */
  key?: string;
}

/** How a program is run. */
export interface ProgramOptions {
  readonly seed: number;
  /** How many verbs. */
  readonly verbs: number;
  /** The chance that the disk is looked at as it would be after a power cut, at each step. */
  readonly cuts: number;
  /** Breaks the broker on purpose: puts something between it and the disk. */
  readonly sabotage?: (operations: FileOperations) => FileOperations;
}

/** What a run has seen. */
export interface ProgramReport {
  /** Steps of the disk. */
  readonly steps: number;
  /** Power cuts that were looked at. */
  readonly cuts: number;
}

const text = (payload: Uint8Array) => new TextDecoder().decode(payload);

/** Runs one program; throws, naming the seed, when something was lost, torn or mixed up. */
export async function runProgram(options: ProgramOptions): Promise<ProgramReport> {
  const restore = seedPlatform(new Random(options.seed ^ 0x5eed));
  try {
    return await new Program(options).run();
  } catch (error) {
    throw new Error(`Seed ${options.seed} (${options.verbs} verbs) broke the queue: ${(error as Error).message}`, {
      cause: error,
    });
  } finally {
    restore();
  }
}

class Program {
  readonly #options: ProgramOptions;
  readonly #random: Random;
  readonly #scheduler: Scheduler;
  readonly #clock = { time: start, now: () => this.#clock.time };
  readonly #facts = new Map<string, Fact>();
  #disk: Disk = new Disk();
  #brokers: FileBroker[] = [];
  #held: { broker: FileBroker; delivery: Delivery }[] = [];
  #payloads = 0;
  #steps = 0;
  #cuts = 0;
  #checks: (() => Promise<void>)[] = [];

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
    this.#scheduler = new Scheduler(this.#random);
  }

  async run(): Promise<ProgramReport> {
    await this.#boot(this.#disk);
    for (let verb = 0; verb < this.#options.verbs; verb++) {
      const width = this.#random.chance(0.3) ? 1 + this.#random.below(3) : 1;
      const calls = Array.from({ length: width }, () => this.#verb());
      await this.#scheduler.settle(calls);
      for (const call of calls) await call;
      await this.#runChecks();
      if (this.#random.chance(0.2)) this.#pass(this.#random.pick([500, 1_000, 5_000, 30_000, 60_000]));
      if (this.#random.chance(0.05)) await this.#reboot();
    }
    await this.#checkAfter(this.#disk.cutPower(this.#random, 1), this.#snapshot());
    return { steps: this.#steps, cuts: this.#cuts };
  }

  #pass(time: number): void {
    this.#clock.time += time;
    this.#disk.now += time;
  }

  async #boot(disk: Disk): Promise<void> {
    this.#disk = disk;
    disk.park = () => this.#scheduler.park();
    disk.beforeStep = () => this.#step();
    this.#held = [];
    this.#brokers = [];
    const opening = Array.from({ length: 1 + this.#random.below(3) }, async () => {
      const operations = this.#options.sabotage?.(disk.process()) ?? disk.process();
      this.#brokers.push(await openFile({ dir: "/queue", policy, clock: this.#clock }, operations));
    });
    await this.#scheduler.settle(opening);
    for (const call of opening) await call;
  }

  /** The power goes, or only the processes die; the program goes on with what is left. */
  async #reboot(): Promise<void> {
    const kept = this.#random.pick([0, 0.5, 0.9, 1]);
    const next = this.#disk.cutPower(this.#random, kept);
    await this.#checkAfter(next.cutPower(this.#random, 1), this.#snapshot());
    await this.#boot(next);
  }

  /** Before every step of the disk: now and then, what would be if the power went here? */
  #step(): void {
    this.#steps++;
    if (!this.#random.chance(this.#options.cuts)) return;
    this.#cuts++;
    const after = this.#disk.cutPower(this.#random, this.#random.pick([0, 0.3, 0.7, 1]));
    const facts = this.#snapshot();
    this.#checks.push(() => this.#checkAfter(after, facts));
  }

  async #runChecks(): Promise<void> {
    for (const check of this.#checks.splice(0)) await check();
  }

  #snapshot(): ReadonlyMap<string, Fact> {
    return new Map([...this.#facts].map(([payload, fact]) => [payload, { ...fact }]));
  }

  // The verbs.

  #verb(): Promise<unknown> {
    const broker = this.#random.pick(this.#brokers);
    const verbs: readonly (() => Promise<unknown>)[] = [
      () => this.#publish(broker, 1),
      () => this.#publish(broker, 1),
      () => this.#publish(broker, 2 + this.#random.below(6)),
      () => this.#publishOnce(broker),
      () => this.#receive(broker),
      () => this.#receive(broker),
      () => this.#receive(broker),
      () => this.#settle(),
      () => this.#settle(),
      () => this.#settle(),
      () => this.#dead(broker),
      () => this.#random.chance(0.1) ? this.#purge(broker) : this.#receive(broker),
    ];
    return this.#random.pick(verbs)();
  }

  #newFact(key?: string): Fact {
    const payload = `message ${this.#payloads++} ${"x".repeat(this.#random.below(40))}`;
    const fact: Fact = { payload, resolved: false, mayBeGone: false, ...(key === undefined ? {} : { key }) };
    this.#facts.set(payload, fact);
    return fact;
  }

  #publishOptions(): { at?: Date; priority?: Priority; headers: Record<string, string> } {
    return {
      ...(this.#random.chance(0.2) ? { at: new Date(this.#clock.time + this.#random.pick([1_000, 40_000])) } : {}),
      ...(this.#random.chance(0.3) ? { priority: (this.#random.below(5) - 2) as Priority } : {}),
      headers: this.#random.chance(0.3) ? { about: "this" } : {},
    };
  }

  async #publish(broker: FileBroker, count: number): Promise<void> {
    const facts = Array.from({ length: count }, () => this.#newFact());
    const items = facts.map(({ payload }) => ({
      payload: new TextEncoder().encode(payload),
      ...this.#publishOptions(),
    }));
    const messages = count === 1
      ? [await broker.publish(items[0]!.payload, items[0])]
      : await broker.publishMany(items);
    facts.forEach((fact, index) => {
      fact.resolved = true;
      fact.id = messages[index]!.id;
    });
  }

  async #publishOnce(broker: FileBroker): Promise<void> {
    const key = `key ${this.#random.below(6)}`;
    const fact = this.#newFact(key);
    const result = await broker.publishOnce(key, new TextEncoder().encode(fact.payload), onceWindow);
    if (!result.published) {
      this.#facts.delete(fact.payload);
      return;
    }
    fact.resolved = true;
    fact.id = result.message.id;
  }

  async #receive(broker: FileBroker): Promise<void> {
    for (const delivery of await broker.receive(1 + this.#random.below(4))) {
      this.#checkMessage(delivery.message.id, text(delivery.message.payload), this.#facts);
      this.#held.push({ broker, delivery });
    }
  }

  async #settle(): Promise<void> {
    if (this.#held.length === 0) return;
    const { delivery } = this.#held.splice(this.#random.below(this.#held.length), 1)[0]!;
    // Any broker may settle another's lease.
    const broker = this.#random.pick(this.#brokers);
    const { receipt } = delivery.lease;
    const fact = this.#facts.get(text(delivery.message.payload))!;
    const outcomes: readonly (() => Promise<unknown>)[] = [
      () => {
        fact.mayBeGone = true;
        return broker.ack(receipt);
      },
      () => {
        fact.mayBeGone = true;
        return broker.ackMany([receipt]);
      },
      () => broker.nack(receipt, new Error("again")),
      () => broker.nackAfter(receipt, undefined, this.#random.pick([0, 2_000])),
      () => broker.release(receipt),
      () => broker.reject(receipt, new Error("no")),
      async () => {
        const lease = await broker.extend(receipt, 60_000);
        this.#held.push({ broker, delivery: { ...delivery, lease } });
      },
    ];
    try {
      await this.#random.pick(outcomes)();
    } catch (error) {
      if (!isQueueError(error, "LEASE_EXPIRED")) throw error;
    }
  }

  async #dead(broker: FileBroker): Promise<void> {
    const letters = await broker.deadLetters({ max: 5 });
    if (letters.length === 0) return;
    const { message } = this.#random.pick(letters);
    try {
      if (this.#random.chance(0.3)) {
        const fact = this.#facts.get(text(message.payload))!;
        fact.mayBeGone = true;
        await broker.deleteDeadLetter(message.id);
      } else if (this.#random.chance(0.5)) await broker.replayDeadLetter(message.id);
      else await broker.replayDeadLetters({ max: 3 });
    } catch (error) {
      if (!isQueueError(error, "DEAD_LETTER_NOT_FOUND")) throw error;
    }
  }

  async #purge(broker: FileBroker): Promise<void> {
    for (const fact of this.#facts.values()) fact.mayBeGone = true;
    await broker.purge();
  }

  // What must be true.

  #checkMessage(id: string, payload: string, facts: ReadonlyMap<string, Fact>): Fact {
    const fact = facts.get(payload);
    assert.ok(fact !== undefined, `a payload that nobody published: ${JSON.stringify(payload)}`);
    assert.ok(fact.id === undefined || fact.id === id, `${payload} came under another id`);
    return fact;
  }

  /** Opens the disk as it is after a power cut and looks for everything that must be there. */
  async #checkAfter(disk: Disk, facts: ReadonlyMap<string, Fact>): Promise<void> {
    const clock = { time: this.#clock.time, now: () => clock.time };
    const jobs = await openFile({ dir: "/queue", policy, clock }, disk.process());
    const found = new Map<string, string>();
    const note = (id: string, payload: string) => {
      this.#checkMessage(id, payload, facts);
      const known = found.get(id);
      assert.ok(known === undefined || known === payload, `one id with two payloads: ${known} and ${payload}`);
      found.set(id, payload);
    };
    for (const { message } of await jobs.messages({ max: 1_000 })) note(message.id, text(message.payload));
    for (let round = 0; round < 4; round++) {
      clock.time += 60_000;
      disk.now += 60_000;
      for (let batch = await jobs.receive(50); batch.length > 0; batch = await jobs.receive(50)) {
        for (const { message, lease } of batch) {
          note(message.id, text(message.payload));
          await jobs.ack(lease.receipt);
        }
      }
    }
    for (const { message } of await jobs.deadLetters({ max: 1_000 })) note(message.id, text(message.payload));
    const { queued, leased } = await jobs.stats();
    assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 }, "something stays out of reach");
    const payloads = new Set(found.values());
    for (const fact of facts.values()) {
      if (fact.resolved && !fact.mayBeGone) assert.ok(payloads.has(fact.payload), `lost: ${fact.payload}`);
    }
    await this.#checkKeys(jobs, facts, payloads);
    await jobs.close();
  }

  /** A key that is reserved has not cost its message. */
  async #checkKeys(jobs: FileBroker, facts: ReadonlyMap<string, Fact>, payloads: ReadonlySet<string>): Promise<void> {
    for (const key of new Set([...facts.values()].flatMap(({ key }) => key ?? []))) {
      const { published } = await jobs.publishOnce(key, new TextEncoder().encode(`probe of ${key}`), onceWindow);
      if (published) continue;
      const reserved = [...facts.values()].filter((fact) => fact.key === key);
      assert.ok(
        reserved.some((fact) => payloads.has(fact.payload) || fact.mayBeGone),
        `${key} is reserved, and its message is nowhere`,
      );
    }
  }
}
