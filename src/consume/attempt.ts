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

/** A delivery from receipt to settlement; handlers see it as their context. */
export class Attempt implements HandlerContext {
  readonly delivery: Delivery;
  lease: Lease;
  /** When it was received, on the consumer's clock. */
  readonly receivedAt: number;
  /** The lease's length when it was received, in ms; 0 or less when the clocks disagree so much that it tells nothing. */
  readonly leaseLength: number;
  /** When its handler must end, on the consumer's clock: the lease's end less the margin. */
  endsAt: number;
  /** When its lease is to be renewed, on the consumer's clock. */
  renewsAt: number;
  /** Settles when the renewal that is under way does; never rejects. */
  renewal: Promise<void> | undefined = undefined;
  /** Renewals that failed in a row. */
  renewalFailures = 0;
  /** Whether the handler took the lease over. */
  takenOver = false;
  /** Whether the handler has ended. */
  over = false;
  /** Whether this process had handled the message before, so that only its acknowledgement is sent. */
  handledBefore = false;
  /** Whether the lease is known to be lost, and was reported so. */
  lost = false;
  /** Why the handler was told to end; `undefined` while it was not. */
  cut: Cut | undefined = undefined;
  /** What its signal aborted with, or would have. */
  cutReason: unknown = undefined;
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
