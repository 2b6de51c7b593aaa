/**
 * Receiving: takes what is due under a lease, reclaims what lapsed, and buries what may not be delivered any more.
 *
 * @module
 */

import type { NormalizedPolicy } from "../../core/policy.ts";
import { expiredFailure, lapsedFailure, type RecordedFailure } from "../../core/failure.ts";
import { maxDeliveryCount, maxInstant } from "../../core/limits.ts";
import type { Delivery, Receipt } from "../../core/values.ts";
import { type Burial, makeDeadRecord } from "./dead_store.ts";
import { type LeaseBucket, sharedLeaseBucket } from "./lease_index.ts";
import { type Entry, parseEntry, parseFailure, renderEntry } from "./names.ts";
import { attempt, systemCode, tidyUp } from "./operations.ts";
import type { QueueDirectory, Taken } from "./queue_directory.ts";
import type { StoredRecord } from "./records.ts";
import type { ReadResult } from "./segment_reader.ts";

/** The most messages that one receive buries, and the most lapsed leases that it reclaims. */
const buriedPerReceive = 100;
const reclaimedPerReceive = 256;

/**
 * The shortest lease of a message on its way to the dead letters, in ms: with one of the policy's that is shorter than a
 * flush takes, a rival would take the message back, and it would be dead and alive.
 */
const shortestBurialLease = 30_000;

/** What a read answers for want of something that has nothing to do with the message. */
const shortages = ["EMFILE", "ENFILE", "ENOMEM", "EINTR", "EAGAIN"];

/** A leased entry: where it lies and what its name says. */
export interface HeldEntry {
  readonly bucket: LeaseBucket;
  readonly name: string;
  readonly path: string;
  readonly entry: Entry;
}

interface Doomed {
  readonly held: HeldEntry;
  readonly failure: RecordedFailure;
}

/** Leases messages of one directory under one policy. */
export class Leasing {
  readonly #directory: QueueDirectory;
  readonly #policy: NormalizedPolicy;
  /** Whether the last receive stopped at its bound of burials or reclaims, so that the next one has work at once. */
  #cutShort = false;

  constructor(directory: QueueDirectory, policy: NormalizedPolicy) {
    this.#directory = directory;
    this.#policy = policy;
  }

  /** Whether the last receive left work that it did not get to. */
  get cutShort(): boolean {
    return this.#cutShort;
  }

  /** Leases up to `max` messages until `deadline`. */
  async receive(max: number, now: number, deadline: number): Promise<Delivery[]> {
    this.#cutShort = false;
    const refreshed = await this.#directory.refresh(false, now);
    const doomed: Doomed[] = await this.#reclaim(now);
    const deliveries: Delivery[] = [];
    try {
      await this.#fill(deliveries, doomed, { max, now, deadline, refreshed });
      await this.bury(doomed, now);
    } catch (error) {
      if (deliveries.length === 0 || systemCode(error) === "") throw error;
      // What is leased is handed out; a refusal that lasts meets the next call, which comes at once.
      this.#cutShort = true;
    }
    return deliveries;
  }

  /** Leases what is due into `deliveries`; what has expired goes to `doomed`. */
  async #fill(
    deliveries: Delivery[],
    doomed: Doomed[],
    { max, now, deadline, refreshed }: { max: number; now: number; deadline: number; refreshed: boolean },
  ): Promise<void> {
    const { slices } = this.#directory;
    while (deliveries.length < max) {
      if (slices.isOver) await slices.giveWay();
      const taken = this.#directory.take(now);
      if (taken === "turn") {
        await this.#directory.turn();
        continue;
      }
      if (taken === undefined) {
        if (refreshed) break;
        refreshed = true;
        await this.#directory.refresh(true, now);
        if (doomed.length < buriedPerReceive) doomed.push(...await this.#reclaim(now));
        continue;
      }
      const entry = parseEntry(taken.name);
      if (entry === undefined) continue;
      const expired = this.#policy.maxAge > 0 && now - entry.enqueuedAt >= this.#policy.maxAge;
      if (expired && doomed.length >= buriedPerReceive) {
        this.#directory.giveBack(taken);
        this.#cutShort = true;
        break;
      }
      const count = expired ? entry.deliveries : Math.min(entry.deliveries + 1, maxDeliveryCount);
      const instant = expired ? this.burialDeadline(now) : deadline;
      const held = this.#lease(taken, { ...entry, instant, state: "l", deliveries: count });
      if (held === undefined) {
        taken.index.noteLoss(taken.bucket);
        continue;
      }
      if (expired) doomed.push({ held, failure: expiredFailure(parseFailure(entry.failure)?.code ?? 0) });
      else {
        const reading = this.#readTaken(taken, entry, held);
        const record = reading instanceof Promise ? await reading : reading;
        if (record !== undefined) deliveries.push(makeDelivery(held, record));
      }
    }
  }

  /** Until when a message that is being buried is out of everybody's reach. */
  burialDeadline(now: number): number {
    return Math.min(maxInstant, now + Math.max(this.#policy.visibilityTimeout, shortestBurialLease));
  }

  /**
   * Moves entries to the dead letters; each is removed from the leases once its letter is on the device.
   *
   * @returns How many were still there: a purge may have been quicker.
   */
  async bury(doomed: readonly Doomed[], now: number): Promise<number> {
    if (doomed.length === 0) return 0;
    let purged = 0;
    const { dead, operations, leases, slices } = this.#directory;
    const burials: Burial[] = [];
    const buried: HeldEntry[] = [];
    for (const { held, failure } of doomed) {
      if (slices.isOver) await slices.giveWay();
      const record = await this.#read(held);
      if (record === undefined) {
        if (!this.#isSetAside(held)) purged++;
        continue;
      }
      burials.push({ id: held.entry.id, record: makeDeadRecord(record, held.entry, failure, now) });
      buried.push(held);
    }
    await dead.bury(burials);
    for (const { path, bucket } of buried) {
      attempt(() => operations.unlink(path), "ENOENT");
      leases.settle(bucket.name);
    }
    return doomed.length - purged;
  }

  /**
   * Replaces a leased entry by one under a fresh name, which is what makes it this call's alone; `undefined` when the
   * lease had ended.
   */
  renew(path: string, bucketName: string, entry: Entry, deadline: number): HeldEntry | undefined {
    const renewed = this.#moveToLeases(path, { ...entry, instant: deadline });
    if (renewed !== undefined) this.#directory.leases.settle(bucketName);
    return renewed;
  }

  /** Leases what was taken from the waiting entries, or leaves it the next of them. */
  #lease(taken: Taken, entry: Entry): HeldEntry | undefined {
    try {
      return this.#moveToLeases(taken.path, entry);
    } catch (error) {
      this.#directory.giveBack(taken);
      throw error;
    }
  }

  /** Reads what was leased. Where the machine lacks something, the message waits again and no attempt is counted. */
  #readTaken(taken: Taken, waiting: Entry, held: HeldEntry): ReadResult | Promise<ReadResult> {
    const fail = (error: unknown): never => {
      if (shortages.includes(systemCode(error))) this.#putBack(taken, waiting, held);
      throw error;
    };
    try {
      const reading = this.#read(held);
      return reading instanceof Promise ? reading.catch(fail) : reading;
    } catch (error) {
      return fail(error);
    }
  }

  /** Undoes a lease that nobody was told of. Where that is refused too, it lapses. */
  #putBack(taken: Taken, waiting: Entry, held: HeldEntry): void {
    const { operations, leases, nonces } = this.#directory;
    const name = renderEntry({ ...waiting, nonce: nonces.next() });
    const path = `${taken.path.slice(0, taken.path.lastIndexOf("/"))}/${name}`;
    tidyUp(() => {
      operations.rename(held.path, path);
      leases.settle(held.bucket.name);
      this.#directory.giveBack({ ...taken, name, path });
    });
  }

  /** Moves a file to the leases under a fresh name; `undefined` when it was gone. */
  #moveToLeases(from: string, entry: Entry): HeldEntry | undefined {
    const { operations, leases, nonces } = this.#directory;
    const bucket = leases.bucketFor(entry.instant);
    const named = { ...entry, nonce: nonces.next() };
    const name = renderEntry(named);
    const path = `${bucket.path}/${name}`;
    if (attempt(() => operations.rename(from, path), "ENOENT")) {
      leases.hold(bucket, entry.instant);
      return { bucket, name, path, entry: named };
    }
    if (attempt(() => void operations.status(bucket.path), "ENOENT")) return undefined;
    if (bucket.name === sharedLeaseBucket) operations.status(bucket.path);
    leases.abandon(bucket);
    return this.#moveToLeases(from, entry);
  }

  /** Hands lapsed leases back to the waiting entries; those out of attempts are returned for burial. */
  async #reclaim(now: number): Promise<Doomed[]> {
    const { leases, ready, slices } = this.#directory;
    const doomed: Doomed[] = [];
    let found = 0;
    for (const { bucket, name } of leases.lapsed(now, reclaimedPerReceive)) {
      if (++found === reclaimedPerReceive) this.#cutShort = true;
      if (slices.isOver) await slices.giveWay();
      const entry = parseEntry(name)!;
      const path = `${bucket.path}/${name}`;
      if (entry.deliveries >= this.#policy.maxDeliveries) {
        if (doomed.length === buriedPerReceive) {
          this.#cutShort = true;
          bucket.earliest = Math.min(bucket.earliest, entry.instant);
          continue;
        }
        const held = this.renew(path, bucket.name, entry, this.burialDeadline(now));
        if (held !== undefined) doomed.push({ held, failure: lapsedFailure });
      } else {
        const waiting: Entry = { ...entry, instant: now, state: entry.deliveries === 0 ? "a" : "b", failure: "l" };
        if (await this.#directory.shelve(path, waiting, ready)) leases.settle(bucket.name);
      }
    }
    return doomed;
  }

  /** The record of a held entry; sets the entry aside when its file does not hold that message. */
  #read(held: HeldEntry): ReadResult | Promise<ReadResult> {
    const read = this.#directory.reader.read(held.path, held.entry);
    if (read instanceof Promise) return read.then((record) => record ?? this.#setAside(held));
    return read ?? this.#setAside(held);
  }

  #isSetAside({ name }: HeldEntry): boolean {
    const { operations } = this.#directory;
    return attempt(() => void operations.status(`${this.#directory.pathOf("damaged")}/${name}`), "ENOENT");
  }

  #setAside(held: HeldEntry): undefined {
    this.#directory.setAside(held.path, held.name);
    this.#directory.leases.settle(held.bucket.name);
  }
}

function makeDelivery({ entry, bucket, name }: HeldEntry, record: StoredRecord): Delivery {
  const lastFailure = parseFailure(entry.failure);
  return {
    lease: { receipt: `${bucket.name}.${name}` as Receipt, expiresAt: new Date(entry.instant) },
    message: {
      id: entry.id,
      enqueuedAt: new Date(entry.enqueuedAt),
      payload: record.payload,
      headers: record.headers,
    },
    deliveries: entry.deliveries,
    priority: entry.priority,
    ...(lastFailure === undefined ? {} : { lastFailure }),
  };
}
