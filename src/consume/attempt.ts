/**
 * One delivery in this process: its lease, and whether its handler was told to end.
 *
 * @module
 */

import type { Delivery, Lease, Receipt } from "../core/values.ts";
import type { HandlerContext } from "./handler.ts";

/** Why a handler was told to end. */
export type Cut = "stop" | "lease" | "renewal";

/** How an attempt's lease is renewed on its handler's behalf. */
export interface LeaseRenewer {
  /** Renews by `by` ms. */
  extend(attempt: Attempt, by: number): Promise<Lease>;
}

/**
 * A delivery from receipt to settlement; handlers see it as their context. There is one a message, so its fields are only
 * declared: defining each before the constructor sets it costs more than all the rest.
 */
export class Attempt implements HandlerContext {
  declare readonly delivery: Delivery;
  declare lease: Lease;
  /** When it was received, on the consumer's clock. */
  declare readonly receivedAt: number;
  /** The lease's length when it was received, in ms; 0 or less when the clocks disagree so much that it tells nothing. */
  declare readonly leaseLength: number;
  /** When its handler must end, on the consumer's clock: the lease's end less the margin. */
  declare endsAt: number;
  /** When its lease is to be renewed, on the consumer's clock. */
  declare renewsAt: number;
  /** Settles when the renewal that is under way does; never rejects. */
  declare renewal: Promise<void> | undefined;
  /** Renewals that failed in a row. */
  declare renewalFailures: number;
  /** Whether the handler took the lease over. */
  declare takenOver: boolean;
  /** Whether the handler has ended. */
  declare over: boolean;
  /** Whether this process had handled the message before, so that only its acknowledgement is sent. */
  declare handledBefore: boolean;
  /** Whether the lease is known to be lost, and was reported so. */
  declare lost: boolean;
  /** Why the handler was told to end; `undefined` while it was not. */
  declare cut: Cut | undefined;
  /** What its signal aborted with, or would have. */
  declare cutReason: unknown;
  readonly #renewer: LeaseRenewer;
  #controller: AbortController | undefined = undefined;

  constructor(delivery: Delivery, now: number, settleTimeout: number, renews: boolean, renewer: LeaseRenewer) {
    this.delivery = delivery;
    this.lease = delivery.lease;
    this.receivedAt = now;
    const length = delivery.lease.expiresAt.getTime() - now;
    this.leaseLength = length;
    // A lease that had ended at receipt says that the clocks disagree, so it bounds nothing.
    this.endsAt = length > 0 ? now + length - leaseMargin(length, settleTimeout) : Infinity;
    this.renewsAt = renews && length > 0 ? now + length / 3 : Infinity;
    this.#renewer = renewer;
    this.renewal = undefined;
    this.renewalFailures = 0;
    this.takenOver = false;
    this.over = false;
    this.handledBefore = false;
    this.lost = false;
    this.cut = undefined;
    this.cutReason = undefined;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cut !== undefined) this.#controller.abort(this.cutReason);
    }
    return this.#controller.signal;
  }

  extend(by: number): Promise<Lease> {
    return this.#renewer.extend(this, by);
  }

  async takeOver(): Promise<Receipt> {
    this.takenOver = true;
    this.renewsAt = Infinity;
    while (this.renewal !== undefined) await this.renewal;
    return this.lease.receipt;
  }

  /** Tells the handler to end. The first reason stands. */
  end(cut: Cut, reason: unknown): void {
    if (this.cut !== undefined || this.over) return;
    this.cut = cut;
    this.cutReason = reason;
    this.#controller?.abort(reason);
  }
}

/** How much of a lease is kept for recording the outcome, in ms. */
export function leaseMargin(length: number, settleTimeout: number): number {
  return Math.min(length / 10, settleTimeout);
}
