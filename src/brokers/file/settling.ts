/**
 * Settling: what becomes of a leased message, each outcome one rename or unlink that only the lease's holder can make.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { type RecordedFailure, recordFailure } from "../../core/failure.ts";
import { instantAfter, readClock } from "../../core/instants.ts";
import type { TimeSource } from "../../core/clock.ts";
import type { NormalizedPolicy } from "../../core/policy.ts";
import { AckOutcome, type Lease, type NackResult, type Receipt } from "../../core/values.ts";
import { describeFileError } from "./failures.ts";
import type { HeldEntry, Leasing } from "./leasing.ts";
import { type Entry, parseReceipt, renderFailure } from "./names.ts";
import { attempt, tidyUp } from "./operations.ts";
import type { QueueDirectory } from "./queue_directory.ts";

interface Leased {
  readonly path: string;
  readonly bucket: string;
  readonly entry: Entry;
}

function leaseExpired(): never {
  throw new QueueError("LEASE_EXPIRED");
}

/** Settles leases of one directory under one policy. */
export class Settling {
  readonly #directory: QueueDirectory;
  readonly #policy: NormalizedPolicy;
  readonly #clock: TimeSource;
  readonly #leasing: Leasing;

  constructor(directory: QueueDirectory, policy: NormalizedPolicy, clock: TimeSource, leasing: Leasing) {
    this.#directory = directory;
    this.#policy = policy;
    this.#clock = clock;
    this.#leasing = leasing;
  }

  /** Removes a leased message. */
  ack(receipt: Receipt): void {
    const { path, bucket } = this.#find(receipt, readClock(this.#clock));
    if (!attempt(() => this.#directory.operations.unlink(path), "ENOENT")) this.#gone(bucket);
    this.#directory.leases.settle(bucket);
  }

  /** Removes many; an outcome a receipt. */
  async ackMany(receipts: readonly Receipt[]): Promise<AckOutcome[]> {
    const outcomes = new Array<AckOutcome>(receipts.length).fill(AckOutcome.notAttempted);
    const { slices } = this.#directory;
    for (const [index, receipt] of receipts.entries()) {
      // Once begun it runs to its end, aborted or not: a bare reason could not say what was acknowledged.
      if (index > 0 && slices.isOver) await slices.giveWay();
      try {
        outcomes[index] = this.#tryAck(receipt);
      } catch (error) {
        throw describeFileError(error, "acknowledge", outcomes);
      }
    }
    return outcomes;
  }

  /** Hands back after `delay` ms, or buries a message out of attempts. */
  async nack(receipt: Receipt, cause: unknown, delayOf: (deliveries: number) => number): Promise<NackResult> {
    const now = readClock(this.#clock);
    const leased = this.#find(receipt, now);
    const { deliveries } = leased.entry;
    const failure = recordFailure(cause);
    if (deliveries >= this.#policy.maxDeliveries) {
      await this.#bury(leased, failure, now);
      return { deliveries, deadLettered: true };
    }
    const visibleAt = instantAfter(now, delayOf(deliveries), "delay");
    const entry: Entry = { ...leased.entry, instant: visibleAt, state: "b", failure: renderFailure(failure) };
    await this.#handBack(leased, entry, visibleAt > now, false);
    return { deliveries, visibleAt: new Date(visibleAt), deadLettered: false };
  }

  /** Moves to the dead letters. */
  async reject(receipt: Receipt, cause: unknown): Promise<void> {
    const now = readClock(this.#clock);
    await this.#bury(this.#find(receipt, now), recordFailure(cause), now);
  }

  /** Hands back uncounted. */
  async release(receipt: Receipt, delay: number): Promise<void> {
    const now = readClock(this.#clock);
    const visibleAt = instantAfter(now, delay, "delay");
    const leased = this.#find(receipt, now);
    const deliveries = leased.entry.deliveries - 1;
    const later = visibleAt > now;
    const instant = later ? visibleAt : leased.entry.enqueuedAt;
    await this.#handBack(
      leased,
      { ...leased.entry, instant, state: deliveries === 0 ? "a" : "b", deliveries },
      later,
      !later,
    );
  }

  /** Replaces the lease by one that ends `by` ms from now. */
  extend(receipt: Receipt, by: number): Lease {
    const now = readClock(this.#clock);
    const deadline = instantAfter(now, by, "by");
    const { path, bucket, entry } = this.#find(receipt, now);
    const held = this.#leasing.renew(path, bucket, entry, deadline) ?? this.#gone(bucket);
    return { receipt: `${held.bucket.name}.${held.name}` as Receipt, expiresAt: new Date(deadline) };
  }

  #tryAck(receipt: Receipt): AckOutcome {
    try {
      this.ack(receipt);
      return AckOutcome.acknowledged;
    } catch (error) {
      if (!(error instanceof QueueError)) throw error;
      if (error.reason === "LEASE_EXPIRED") return AckOutcome.leaseExpired;
      if (error.reason === "UNKNOWN_RECEIPT") return AckOutcome.unknownReceipt;
      throw error;
    }
  }

  /** Where a receipt's lease lies, while the clock says that it is held. */
  #find(receipt: Receipt, now: number): Leased {
    const parsed = parseReceipt(receipt);
    if (parsed === undefined) throw new QueueError("UNKNOWN_RECEIPT");
    const { bucket, name, entry } = parsed;
    if (entry.instant <= now) leaseExpired();
    return { path: `${this.#directory.pathOf("leased")}/${bucket}/${name}`, bucket, entry };
  }

  #gone(bucket: string): never {
    // A queue whose folder is gone has not merely lost a lease.
    this.#directory.operations.status(this.#directory.pathOf("leased"));
    this.#directory.leases.settle(bucket);
    leaseExpired();
  }

  async #handBack(leased: Leased, entry: Entry, later: boolean, front: boolean): Promise<void> {
    const { delayed, ready, leases } = this.#directory;
    const moved = await this.#directory.shelve(leased.path, entry, later ? delayed : ready, front);
    if (!moved) this.#gone(leased.bucket);
    leases.settle(leased.bucket);
    this.#directory.announce();
  }

  async #bury(leased: Leased, failure: RecordedFailure, now: number): Promise<void> {
    // A fresh lease first: nobody may take the message while its letter is on the way to the device.
    const deadline = this.#leasing.burialDeadline(now);
    const held = this.#leasing.renew(leased.path, leased.bucket, leased.entry, deadline) ??
      this.#gone(leased.bucket);
    let buried: number;
    try {
      buried = await this.#leasing.bury([{ held, failure }], now);
    } catch (error) {
      this.#giveBack(leased, held);
      throw error;
    }
    if (buried === 0) leaseExpired();
  }

  /** Puts a lease back under its name after a refusal, so that whoever holds its receipt can try again. */
  #giveBack({ path, bucket, entry }: Leased, held: HeldEntry): void {
    const { operations, leases } = this.#directory;
    tidyUp(() => {
      operations.rename(held.path, path);
      leases.settle(held.bucket.name);
      leases.restore(bucket, entry.instant);
    });
  }
}
