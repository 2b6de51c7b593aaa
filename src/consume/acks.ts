/**
 * Acknowledges what was handled, as many at a time as have gathered.
 *
 * @module
 */

import { type Acker, isAcker } from "../core/capabilities/ack.ts";
import { isQueueError, QueueError } from "../core/error.ts";
import { AckOutcome, type Receipt } from "../core/values.ts";
import type { Attempt } from "./attempt.ts";
import { isHeld, isLostLease, retries, tellLost } from "./refused_outcome.ts";
import type { Session } from "./session.ts";
import { StoragePatience } from "./storage_patience.ts";

/**
 * One acknowledging call is under way at a time, and what is handled meanwhile rides in the next one. A broker that
 * cannot acknowledge in batches gets a call for each message, side by side.
 */
export class Acks {
  readonly #session: Session;
  readonly #acker: Acker | undefined;
  readonly #settled: (count: number) => void;
  readonly #patience: StoragePatience;
  #pending: Attempt[] = [];
  #underWay: readonly Attempt[] = [];
  readonly #single = new Set<Attempt>();
  #pumping = false;

  constructor(session: Session, settled: (count: number) => void) {
    this.#session = session;
    this.#acker = isAcker(session.broker) ? session.broker : undefined;
    this.#settled = settled;
    this.#patience = new StoragePatience(session.options.storagePatience);
  }

  /** Sends an acknowledgement on its way. */
  push(attempt: Attempt): void {
    if (attempt.renewal !== undefined) void this.#afterRenewal(attempt);
    else this.#send(attempt);
  }

  /** Visits those that are not recorded yet. */
  forEachOutstanding(visit: (attempt: Attempt) => void): void {
    this.#underWay.forEach(visit);
    this.#pending.forEach(visit);
    this.#single.forEach(visit);
  }

  async #afterRenewal(attempt: Attempt): Promise<void> {
    this.#single.add(attempt);
    while (attempt.renewal !== undefined) await attempt.renewal;
    this.#single.delete(attempt);
    this.#send(attempt);
  }

  #send(attempt: Attempt): void {
    if (this.#acker === undefined) {
      void this.#ackOne(attempt);
      return;
    }
    this.#pending.push(attempt);
    if (this.#pumping) return;
    this.#pumping = true;
    void this.#pump(this.#acker);
  }

  async #ackOne(attempt: Attempt): Promise<void> {
    const session = this.#session;
    const patience = new StoragePatience(session.options.storagePatience);
    this.#single.add(attempt);
    for (let done = false; !done && !session.ended;) {
      try {
        await session.broker.ack(attempt.lease.receipt, session.calls);
        this.#tell(attempt);
        done = true;
      } catch (error) {
        done = !(await retries(session, attempt, "ack", error, patience));
      }
    }
    this.#single.delete(attempt);
    this.#settled(1);
  }

  async #pump(acker: Acker): Promise<void> {
    // What is handled within the same reactions goes out together.
    await undefined;
    while (this.#pending.length > 0 && !this.#session.ended) {
      const attempts = this.#pending;
      this.#pending = [];
      this.#underWay = attempts;
      const receipts = new Array<Receipt>(attempts.length);
      for (let index = 0; index < attempts.length; index++) receipts[index] = attempts[index]!.lease.receipt;
      try {
        const outcomes = await acker.ackMany(receipts, this.#session.calls);
        this.#patience.afterSuccess();
        this.#underWay = [];
        this.#conclude(attempts, outcomes, undefined);
      } catch (error) {
        await this.#failed(attempts, error);
      }
      this.#underWay = [];
    }
    this.#pumping = false;
  }

  /** Records what became of each receipt; returns those that were not attempted. */
  #conclude(attempts: readonly Attempt[], outcomes: readonly AckOutcome[], failure: unknown): Attempt[] {
    const { reporter } = this.#session;
    const left: Attempt[] = [];
    for (let index = 0; index < attempts.length; index++) {
      const attempt = attempts[index]!;
      switch (outcomes[index]) {
        case AckOutcome.acknowledged:
          if (reporter.listening) this.#tell(attempt);
          break;
        case AckOutcome.leaseExpired:
          tellLost(this.#session, attempt, "ack", new QueueError("LEASE_EXPIRED"));
          break;
        case AckOutcome.unknownReceipt:
          this.#giveUp(attempt, new QueueError("UNKNOWN_RECEIPT"));
          break;
        default:
          left.push(attempt);
      }
    }
    if (failure === undefined && left.length > 0) {
      const error = new QueueError("QUEUE_BACKEND_FAILED", "Cannot acknowledge: the broker left receipts unattempted");
      for (const attempt of left) this.#giveUp(attempt, error);
      left.length = 0;
    }
    if (!this.#session.ended) this.#settled(attempts.length - left.length);
    return left;
  }

  async #failed(attempts: readonly Attempt[], error: unknown): Promise<void> {
    const session = this.#session;
    if (session.ended) return;
    const partial = isQueueError(error) && Array.isArray(error.partial) ? error.partial as AckOutcome[] : [];
    const left = this.#conclude(attempts, partial, error);
    this.#underWay = left;
    if (left.length === 0) return;
    if (isLostLease(error)) {
      for (const attempt of left) tellLost(session, attempt, "ack", error);
      this.#settled(left.length);
      return;
    }
    const verdict = session.judge("ack", error, this.#patience);
    if (typeof verdict === "object") {
      await session.pause(verdict.retryIn);
      this.#retry(left, error);
      return;
    }
    for (const attempt of left) {
      session.reporter.tellOf(attempt.delivery, { kind: "unsettled", operation: "ack", error });
    }
    if (verdict === "final") session.fail(error);
    this.#settled(left.length);
  }

  /** Puts back to the front what is still leased; the rest comes back by itself. */
  #retry(left: readonly Attempt[], error: unknown): void {
    const session = this.#session;
    const held = left.filter((attempt) => {
      if (session.ended || isHeld(session, attempt)) return true;
      tellLost(session, attempt, "ack", error);
      return false;
    });
    this.#underWay = [];
    this.#pending = [...held, ...this.#pending];
    if (held.length < left.length) this.#settled(left.length - held.length);
  }

  #giveUp(attempt: Attempt, error: QueueError): void {
    this.#session.reporter.tellOf(attempt.delivery, { kind: "unsettled", operation: "ack", error });
    this.#session.fail(error);
  }

  #tell(attempt: Attempt): void {
    const by = attempt.handledBefore ? "window" : "consumer";
    this.#session.reporter.tellOf(attempt.delivery, { kind: "acknowledged", by });
  }
}
