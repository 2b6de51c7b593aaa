/**
 * Many callers of several processes at once, whose steps interleave: nothing is lost, nothing comes back after its
 * acknowledgement, no payload is another's.
 */

import assert from "node:assert/strict";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { isQueueError } from "../../../src/core/error.ts";
import type { Priority } from "../../../src/core/priority.ts";
import type { Delivery, Message } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "../memory/random.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, openQueue, textOf } from "./queue.ts";

const policy = { visibilityTimeout: 150, maxDeliveries: 1_000, retryDelay: 5 };

class Crowd {
  readonly random: SeededRandom;
  readonly clock: ManualClock = new ManualClock();
  readonly brokers: FileBroker[] = [];
  readonly published: Map<string, string> = new Map();
  readonly acknowledged: Set<string> = new Set();
  #texts = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
  }

  async open(dir: string): Promise<void> {
    for (let process = 0; process < 4; process++) {
      const inner = unflushedOperations();
      const operations = {
        ...inner,
        // A device takes its time, and others their turn.
        flush: async () => {
          for (let turns = this.random.below(4); turns > 0; turns--) await inner.pause();
        },
      };
      this.brokers.push(await openQueue(dir, { policy, clock: this.clock, operations }));
    }
  }

  #broker(): FileBroker {
    return this.random.pick(this.brokers)!;
  }

  #payload(): Uint8Array {
    return bytes(`message ${this.#texts++}`);
  }

  #note({ id, payload }: Message): void {
    this.published.set(id, textOf(payload));
  }

  async act(): Promise<void> {
    this.clock.set(this.clock.now() + this.random.below(8));
    const jobs = this.#broker();
    const priority = this.random.below(5) - 2 as Priority;
    switch (this.random.below(9)) {
      case 0:
        return this.#note(await jobs.publish(this.#payload(), { priority }));
      case 1: {
        const at = new Date(this.clock.now() + this.random.below(100));
        return this.#note(await jobs.publish(this.#payload(), { priority, at }));
      }
      case 2: {
        const payloads = Array.from({ length: this.random.below(150) }, () => this.#payload());
        return (await jobs.publishMany(payloads)).forEach((message) => this.#note(message));
      }
      case 3: {
        const outcome = await jobs.publishOnce(`key ${this.random.below(20)}`, this.#payload(), 50);
        return outcome.published ? this.#note(outcome.message) : undefined;
      }
      case 4: {
        for (const { message } of await jobs.deadLetters({ max: 3 })) await this.#replay(message.id);
        return;
      }
      default:
        for (const delivery of await jobs.receive(1 + this.random.below(20))) await this.#settle(delivery);
    }
  }

  async #replay(id: string): Promise<void> {
    await this.#broker().replayDeadLetter(id).catch((error) => {
      assert.ok(isQueueError(error, "DEAD_LETTER_NOT_FOUND"), "a rival replayed it");
    });
  }

  async #settle({ message, lease }: Delivery): Promise<void> {
    // A lease that has ended by now says nothing: others may have had the message since.
    const held = lease.expiresAt.getTime() > this.clock.now();
    assert.ok(!held || !this.acknowledged.has(message.id), `${message.id} came back after its acknowledgement`);
    const known = this.published.get(message.id);
    assert.ok(known === undefined || known === textOf(message.payload), "a payload is its message's own");
    const jobs = this.#broker();
    try {
      switch (this.random.below(10)) {
        case 0:
          return void await jobs.nack(lease.receipt);
        case 1:
          return await jobs.release(lease.receipt, { delay: this.random.below(2) * 40 });
        case 2:
          return await jobs.reject(lease.receipt);
        case 3:
          // A consumer that died.
          return;
        case 4: {
          const { receipt } = await jobs.extend(lease.receipt, 300);
          await jobs.ack(receipt);
          break;
        }
        default:
          await jobs.ack(lease.receipt);
      }
      this.acknowledged.add(message.id);
    } catch (error) {
      assert.ok(isQueueError(error, "LEASE_EXPIRED"), `nothing else may happen to a lease: ${error}`);
    }
  }

  /** Everything that is left, live or dead. */
  async findRest(): Promise<Set<string>> {
    const [jobs] = this.brokers;
    const found = new Set<string>();
    for (let round = 0; round < 3; round++) {
      this.clock.set(this.clock.now() + 10_000);
      await jobs!.replayDeadLetters({ max: 100_000 });
      for (let batch = await jobs!.receive(200); batch.length > 0; batch = await jobs!.receive(200)) {
        for (const { message } of batch) found.add(message.id);
        await jobs!.ackMany(batch.map(({ lease }) => lease.receipt));
      }
    }
    return found;
  }
}

test("callers of four processes that interleave lose nothing and see nothing again that was acknowledged", async () => {
  await withSeeds([1, 2], async (seed) => {
    using directory = temporaryDirectory();
    const crowd = new Crowd(seed);
    await crowd.open(directory.path);
    await Promise.all(Array.from({ length: 12 }, async () => {
      for (let step = 0; step < 40; step++) await crowd.act();
    }));
    const rest = await crowd.findRest();
    assert.ok(crowd.acknowledged.size > 100 && crowd.published.size > 500);
    for (const [id, text] of crowd.published) {
      assert.ok(crowd.acknowledged.has(id) || rest.has(id), `"${text}" was lost`);
    }
    for (const id of rest) assert.ok(!crowd.acknowledged.has(id), `${id} came back after its acknowledgement`);
    const { queued, leased, dead } = await crowd.brokers[3]!.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
    assert.deepEqual(foldersOf(directory.path, "damaged"), []);
    assert.deepEqual(foldersOf(directory.path, "pending"), []);
    for (const jobs of crowd.brokers) await jobs.close();
  });
});
