/**
 * Watches the leases that are held: ends handlers at the margin, renews, gives back what waits too long.
 *
 * @module
 */

import { isLeaseExtender, type LeaseExtender } from "../core/capabilities/lease.ts";
import { hasCode, QueueError } from "../core/error.ts";
import type { Lease } from "../core/values.ts";
import { Attempt, leaseMargin, type LeaseRenewer } from "./attempt.ts";
import type { Session } from "./session.ts";
import { isTransient, waitAfterFailure } from "./storage_patience.ts";
import type { Waiting } from "./waiting.ts";

/** Promise reactions without any progress after which handlers count as waiting for something from outside. */
const patienceForProgress = 32;

/** The share of its lease for which a message that was leased ahead may wait. */
export const aheadShare: number = 1 / 20;

/** Whose leases are watched, and what becomes of them. */
export interface LeaseHolders {
  /** Deliveries that were not started. */
  readonly waiting: Waiting;
  /** Deliveries whose handlers run. */
  running(): Iterable<Attempt>;
  /** Hands back a delivery that will not be started. */
  release(attempt: Attempt, why: "lease" | "ahead"): void;
  /** A message that was leased ahead waited for longer than was thought. */
  waitedTooLong(wait: number): void;
}

/**
 * One timer for all leases. It is set late: not before handlers are seen to wait for something, so that those that end
 * within the turn cost none; and once set it stays, whoever's deadline it was, and looks at who is there when it fires.
 */
export class Leases implements LeaseRenewer {
  readonly #session: Session;
  readonly #holders: LeaseHolders;
  readonly #extender: LeaseExtender | undefined;
  readonly #settleTimeout: number;
  readonly #renews: boolean;
  #armedFor = Infinity;
  #cancel: (() => void) | undefined;
  #looking = false;
  #progress = 0;
  #drained = false;

  constructor(session: Session, holders: LeaseHolders) {
    this.#session = session;
    this.#holders = holders;
    this.#settleTimeout = session.options.settleTimeout;
    this.#extender = isLeaseExtender(session.broker) ? session.broker : undefined;
    this.#renews = session.options.autoExtend && this.#extender !== undefined;
  }

  /** A received delivery as an attempt. */
  attempt(delivery: Attempt["delivery"], now: number): Attempt {
    return new Attempt(delivery, now, this.#settleTimeout, this.#renews, this);
  }

  /** Says that something moved on, so that the timer can wait a little longer. */
  progress(): void {
    this.#progress++;
  }

  /** Says that somebody holds a lease for now: sees to it that the timer is set if it stays so. */
  watch(due: number): void {
    if (due < this.#armedFor && !this.#looking) {
      this.#looking = true;
      void this.#armOnceStill();
    }
  }

  /** When something must be done about a running handler's lease. */
  dueOf(attempt: Attempt): number {
    const renewsAt = attempt.renewal === undefined && !this.#drained ? attempt.renewsAt : Infinity;
    return Math.min(renewsAt, attempt.cut === undefined ? attempt.endsAt : Infinity);
  }

  /** When something must be done about a lease that waits for its turn. */
  dueOfWaiting(attempt: Attempt, ahead: boolean): number {
    if (attempt.lost || attempt.renewal !== undefined) return Infinity;
    return ahead ? Math.min(attempt.endsAt, attempt.receivedAt + attempt.leaseLength * aheadShare) : attempt.endsAt;
  }

  /** Whether a delivery whose turn has come needs its lease renewed first. */
  needsRenewal(attempt: Attempt, now: number): boolean {
    return now >= attempt.renewsAt;
  }

  /** Whether a delivery's lease is too near its end to start its handler. */
  isTooLate(attempt: Attempt, now: number): boolean {
    return now >= attempt.endsAt;
  }

  /** No automatic renewal from now on: the drain is over. */
  stopRenewing(): void {
    this.#drained = true;
  }

  /** Sets the timer at once; called before the engine lets others run. */
  arm(): void {
    const due = this.#earliest();
    if (due >= this.#armedFor) return;
    this.#cancel?.();
    this.#armedFor = due;
    this.#cancel = this.#session.clock.setTimer(
      Math.max(0, Math.ceil(due - this.#session.clock.now())),
      () => this.#check(),
    );
  }

  /** Takes the timer away if nobody holds a lease. */
  rest(): void {
    if (this.#cancel !== undefined && this.#earliest() === Infinity) this.close();
  }

  /** Takes the timer away. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = Infinity;
  }

  /** Renews to the length that was first granted, unless the lease ends later already. Never rejects. */
  renew(attempt: Attempt): Promise<void> {
    if (attempt.renewal !== undefined) return attempt.renewal;
    const now = this.#session.clock.now();
    const length = attempt.leaseLength;
    if (attempt.lease.expiresAt.getTime() >= now + length) {
      attempt.renewsAt = now + length / 3;
      return Promise.resolve();
    }
    return attempt.renewal = this.#renewWithin(attempt, now);
  }

  async extend(attempt: Attempt, by: number): Promise<Lease> {
    if (this.#extender === undefined) {
      throw new QueueError("QUEUE_MISCONFIGURED", "Cannot extend the lease: the broker has no extend", {
        fields: { field: "extend", value: by },
      });
    }
    while (attempt.renewal !== undefined) await attempt.renewal;
    if (attempt.over || attempt.takenOver) {
      throw new QueueError("LEASE_EXPIRED", "Cannot extend the lease: it is not the handler's any more");
    }
    const now = this.#session.clock.now();
    const call = this.#extender.extend(attempt.lease.receipt, by, this.#session.calls);
    attempt.renewal = this.#bound(call.then((lease) => this.#adopt(attempt, lease, now)))
      .catch(() => {})
      .then(() => void (attempt.renewal = undefined));
    return await call;
  }

  async #renewWithin(attempt: Attempt, now: number): Promise<void> {
    try {
      const call = this.#extender!.extend(attempt.lease.receipt, attempt.leaseLength, this.#session.calls)
        .then((lease) => this.#adopt(attempt, lease, now));
      await this.#bound(call);
    } catch (error) {
      this.#refused(attempt, error);
    } finally {
      attempt.renewal = undefined;
      if (!attempt.over) this.watch(this.dueOf(attempt));
    }
  }

  /** Waits for a renewal for as long as a settlement may take. One that comes later is adopted all the same. */
  async #bound(call: Promise<void>): Promise<void> {
    let cancel = () => {};
    const late = new Promise<never>((_resolve, reject) => {
      cancel = this.#session.clock.setTimer(this.#settleTimeout, () => {
        reject(new QueueError("QUEUE_BACKEND_FAILED", 'Cannot renew the lease: it took longer than "settleTimeout"'));
      });
    });
    try {
      await Promise.race([call, late]);
    } finally {
      cancel();
      call.catch(() => {});
    }
  }

  #adopt(attempt: Attempt, lease: Lease, now: number): void {
    const length = lease.expiresAt.getTime() - now;
    attempt.lease = lease;
    attempt.renewalFailures = 0;
    attempt.endsAt = length > 0 ? now + length - leaseMargin(length, this.#settleTimeout) : Infinity;
    if (attempt.renewsAt !== Infinity) attempt.renewsAt = now + Math.min(length, attempt.leaseLength) / 3;
    if (!attempt.over) this.watch(this.dueOf(attempt));
  }

  #refused(attempt: Attempt, error: unknown): void {
    const session = this.#session;
    if (session.ended || attempt.over) return;
    attempt.renewsAt = Infinity;
    if (hasCode(error, "LEASE_EXPIRED")) {
      attempt.lost = true;
      session.reporter.tellOf(attempt.delivery, { kind: "leaseLost", operation: "extend", error });
    } else if (hasCode(error, "QUEUE_CLOSED")) {
      session.stop("closed", error);
      return;
    } else {
      const wait = waitAfterFailure(++attempt.renewalFailures);
      const now = session.clock.now();
      const again = isTransient(error) && !attempt.takenOver && now + wait < attempt.endsAt;
      const retryIn = again ? { retryIn: wait } : {};
      session.reporter.tell({ kind: "storageFailure", operation: "extend", error, ...retryIn });
      if (again) {
        attempt.renewsAt = now + wait;
        return;
      }
    }
    attempt.end("renewal", error);
  }

  /** Looks whether anything moves on by itself within this turn; sets the timer once it does not. */
  async #armOnceStill(): Promise<void> {
    let seen: number;
    do {
      seen = this.#progress;
      for (let reaction = 0; reaction < patienceForProgress; reaction++) await undefined;
    } while (seen !== this.#progress && !this.#session.ended);
    this.#looking = false;
    if (!this.#session.ended) this.arm();
  }

  #earliest(): number {
    let earliest = Infinity;
    for (const attempt of this.#holders.running()) earliest = Math.min(earliest, this.dueOf(attempt));
    this.#holders.waiting.forEach((attempt, ahead) => {
      earliest = Math.min(earliest, this.dueOfWaiting(attempt, ahead));
    });
    return earliest;
  }

  #check(): void {
    this.#cancel = undefined;
    this.#armedFor = Infinity;
    if (this.#session.ended) return;
    const now = this.#session.clock.now();
    for (const attempt of this.#holders.running()) this.#checkRunning(attempt, now);
    this.#checkWaiting(now);
    this.arm();
  }

  #checkRunning(attempt: Attempt, now: number): void {
    if (now >= attempt.renewsAt && attempt.renewal === undefined && !this.#drained) {
      void this.renew(attempt);
    } else if (now >= attempt.endsAt && attempt.cut === undefined) {
      attempt.end("lease", new QueueError("LEASE_EXPIRED", "Cannot go on: the lease of the message is about to end"));
    }
  }

  #checkWaiting(now: number): void {
    const { waiting } = this.#holders;
    const isDue = (ahead: boolean) => (attempt: Attempt) => now >= this.dueOfWaiting(attempt, ahead);
    for (const attempt of waiting.removeAhead(isDue(true))) {
      this.#holders.waitedTooLong(now - attempt.receivedAt);
      this.#holders.release(attempt, "ahead");
    }
    if (this.#renews) {
      waiting.forEach((attempt, ahead) => {
        if (!ahead && now >= this.dueOfWaiting(attempt, ahead)) void this.renew(attempt);
      });
    } else {
      for (const attempt of waiting.removeBatched(isDue(false))) this.#holders.release(attempt, "lease");
    }
  }
}
