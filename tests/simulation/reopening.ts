/**
 * Opens a queue after a crash and takes everything out of it: what the broker shows and hands out must be what lies there,
 * and all of it must come.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { parseFailure } from "../../src/brokers/file/names.ts";
import { openFile } from "../../src/brokers/file/new_file.ts";
import type { QueueSizes } from "../../src/brokers/file/queue_directory.ts";
import type { Delivery } from "../../src/core/values.ts";
import { type Contents, type LiveEntry, queueRoot, readContents } from "./contents.ts";
import { type Disk, sha256 } from "./disk.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { checkContents } from "./rules.ts";

/** A disk after a crash, and what must be true of it. */
export interface Crash {
  readonly disk: Disk;
  readonly ledger: Ledger;
  readonly now: number;
  /** Whether the processes died and the disk lost nothing. */
  readonly lossless: boolean;
  readonly sizes: QueueSizes;
  /** Draws how closely it is looked at. */
  readonly random: Random;
}

/** Longer than a reserved message lies until it is taken to be left behind, in ms. */
const pendingWait = 6_000;

/** Longer than a leftover lies, in ms. */
const leftoverWait = 700_000;

/**
 * Checks a disk as it lies there, and through a broker.
 *
 * @param seen Disks that a broker was opened on before: what it does there depends on nothing but the instant.
 */
export async function checkCrash(crash: Crash, seen: Set<string>): Promise<void> {
  const { disk, ledger, now, lossless } = crash;
  checkContents(ledger, readContents(disk), now, lossless);
  const print = `${now} ${disk.print()}`;
  if (seen.has(print)) return;
  seen.add(print);
  await new Reopening(crash).run();
}

class Reopening {
  readonly #crash: Crash;
  #now: number;
  #jobs!: FileBroker;
  /** What has still to come, by id. */
  readonly #expected = new Map<string, LiveEntry[]>();
  /** Messages that may be dead by now, with the reasons. */
  readonly #doomed = new Map<string, string[]>();

  constructor(crash: Crash) {
    this.#crash = crash;
    this.#now = crash.now;
  }

  async run(): Promise<void> {
    const { disk, ledger, sizes, random } = this.#crash;
    // What is dead is to stay, so that all of it can be counted.
    const policy = { ...ledger.policy, deadLetterRetention: 0 };
    const clock = { now: () => this.#now };
    this.#jobs = await openFile({ dir: queueRoot, policy, clock }, disk.process(), sizes);
    const contents = readContents(disk);
    for (const [id, entries] of contents.live) this.#expected.set(id, [...entries]);
    await this.#checkListing(contents);
    let latest = this.#now;
    for (const entries of contents.live.values()) {
      for (const { entry } of entries) latest = Math.max(latest, entry.instant);
    }
    await this.#drain();
    this.#checkNothingDue();
    this.#pass(latest - this.#now + pendingWait);
    await this.#drain();
    await this.#checkDead(contents);
    if (random.chance(0.1)) await this.#probeKeys(contents);
    if (random.chance(0.1)) await this.#checkLeftovers();
    await this.#jobs.close();
  }

  #pass(time: number): void {
    this.#now += time;
    this.#crash.disk.now += time;
  }

  async #checkListing({ live, dead }: Contents): Promise<void> {
    const shown = new Set<string>();
    for (const message of await this.#jobs.messages({ max: 10_000 })) {
      const { payload } = this.#crash.ledger.identify(message.message, message.priority);
      const known = live.get(message.message.id)?.some(({ entry, state }) =>
        entry.instant === message.visibleAt.getTime() && entry.deliveries === message.deliveries &&
        (state === "leased") === message.leased
      );
      assert.ok(known, `${payload} is shown with another state`);
      shown.add(message.message.id);
    }
    const count = { queued: 0, leased: 0, dead: 0 };
    for (const [id, entries] of live) {
      for (const { state } of entries) {
        if (state === "pending") continue;
        assert.ok(shown.has(id), `${id} is not shown`);
        count[state === "leased" ? "leased" : "queued"]++;
      }
    }
    for (const letters of dead.values()) count.dead += letters.length;
    const stats = await this.#jobs.stats();
    assert.deepEqual({ queued: stats.queued, leased: stats.leased, dead: stats.dead }, count, "the counts are wrong");
  }

  async #drain(): Promise<void> {
    for (;;) {
      const deliveries = await this.#jobs.receive(50);
      if (deliveries.length === 0) return;
      for (const delivery of deliveries) this.#take(delivery);
      await this.#jobs.ackMany(deliveries.map(({ lease }) => lease.receipt));
    }
  }

  /** What comes is one of the entries that lay there, no earlier than its name says, with the count that follows. */
  #take({ message, priority, deliveries, lastFailure }: Delivery): void {
    const { ledger } = this.#crash;
    const fact = ledger.identify(message, priority);
    const { maxAge } = ledger.policy;
    assert.ok(this.#now >= fact.notBefore, `${fact.payload} was handed out before its time`);
    assert.ok(maxAge === 0 || this.#now - fact.enqueuedAt < maxAge, `${fact.payload} was handed out past its age`);
    const entries = this.#expected.get(message.id) ?? [];
    const index = entries.findIndex(({ state, entry }) => {
      const failure = state === "leased" ? parseFailure("l") : parseFailure(entry.failure);
      return entry.instant <= this.#now && entry.deliveries + 1 === deliveries &&
        failure?.reason === lastFailure?.reason;
    });
    assert.ok(
      index >= 0,
      `${fact.payload} came with the count ${deliveries} and the failure ${lastFailure?.reason}, expected ` +
        (entries.map(({ entry }) => `${entry.instant - this.#now} ${entry.deliveries} ${entry.failure}`).join(", ") ||
          "nothing"),
    );
    entries.splice(index, 1);
  }

  /** What was due has come, or is on its way to the dead letters. */
  #checkNothingDue(): void {
    for (const [id, entries] of this.#expected) {
      const due = entries.find(({ state, entry }) => state !== "pending" && entry.instant <= this.#now);
      if (due !== undefined) this.#expectLetter(id, due);
    }
  }

  /** Why an entry that does not come must be dead. */
  #expectLetter(id: string, { state, entry }: LiveEntry): void {
    const { maxAge, maxDeliveries } = this.#crash.ledger.policy;
    const expired = maxAge > 0 && this.#now - entry.enqueuedAt >= maxAge;
    const spent = state === "leased" && entry.deliveries >= maxDeliveries;
    assert.ok(expired || spent, `out of reach: ${this.#crash.ledger.byId.get(id)?.payload}, which lay in ${state}`);
    const reasons = this.#doomed.get(id) ?? [];
    this.#doomed.set(id, [...reasons, spent ? "LEASE_EXPIRED" : "MESSAGE_EXPIRED"]);
  }

  async #checkDead({ dead }: Contents): Promise<void> {
    for (const [id, entries] of this.#expected) for (const entry of entries) this.#expectLetter(id, entry);
    const { queued, leased } = await this.#jobs.stats();
    assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 }, "something stays out of reach");
    const ids = new Set<string>();
    for (const { message, priority, reason } of await this.#jobs.deadLetters({ max: 10_000 })) {
      const { payload } = this.#crash.ledger.identify(message, priority);
      ids.add(message.id);
      const before = dead.get(message.id)?.map(({ footer }) => footer.reason) ?? [];
      const reasons = [...before, ...this.#doomed.get(message.id) ?? []];
      assert.ok(reasons.includes(reason), `the letter of ${payload} has the reason ${reason}`);
    }
    for (const id of [...dead.keys(), ...this.#doomed.keys()]) {
      assert.ok(ids.has(id), `lost: ${this.#crash.ledger.byId.get(id)?.payload}, which is to be dead`);
    }
  }

  /** A key is refused for as long as it is reserved. */
  async #probeKeys({ reservations }: Contents): Promise<void> {
    for (let number = 0; number < 5; number++) {
      const key = `key ${number}`;
      const { end } = reservations.get(sha256(key)) ?? { end: 0 };
      const { published } = await this.#jobs.publishOnce(key, new Uint8Array(0), 1_000);
      assert.equal(published, end <= this.#now, `${key} is ${published ? "free" : "reserved"}`);
    }
  }

  /** What dead processes left is removed in the end. */
  async #checkLeftovers(): Promise<void> {
    const { disk } = this.#crash;
    this.#pass(leftoverWait);
    await this.#jobs.receive(1);
    assert.deepEqual(disk.names(`${queueRoot}/pending`), [], "something is left in pending/");
    const left = disk.names(`${queueRoot}/tmp`).filter((name) => name !== "clock");
    assert.deepEqual(left, [], "something is left in tmp/");
  }
}
