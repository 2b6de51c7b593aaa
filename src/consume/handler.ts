/**
 * What a caller gives the engine to run, and what the engine hands to it.
 *
 * @module
 */

import type { Delivery, Lease, Receipt } from "../core/values.ts";

/** What a handler gets beside the delivery. Call its methods on it; they are not bound. */
export interface HandlerContext {
  /**
   * Aborts when the handler should end: shortly before the lease does (reason: a `LEASE_EXPIRED` error), when a renewal
   * was refused (reason: the refusal), or when a stopping consumer's drain is over (reason: the stop's). Made at first
   * use, so a handler that does not ask for it costs nothing.
   */
  readonly signal: AbortSignal;
  /** The lease as it stands now; its receipt is always the newest. */
  readonly lease: Lease;
  /**
   * Renews the lease so that it ends `by` ms from now, and moves the end of the signal with it. It only keeps a message:
   * to give one back for later, throw `retryAfter`.
   *
   * @param by In ms; above 0.
   * @returns The new lease; the older receipt is void.
   * @throws {QueueError} `LEASE_EXPIRED` when the lease or the handler's turn is over; `QUEUE_MISCONFIGURED` for a bad
   * duration or a broker that cannot renew.
   */
  extend(by: number): Promise<Lease>;
  /**
   * Stops automatic renewal and hands over the newest receipt, so that a handler can acknowledge in a transaction of its
   * own and then return `acknowledged`.
   */
  takeOver(): Promise<Receipt>;
}

/**
 * Handles one delivery. Returning (or resolving) acknowledges it; throwing (or rejecting) hands it back for a retry.
 * `doNotRetry` and `retryAfter` marks around the thrown error say otherwise, and `acknowledged`, returned or thrown,
 * says that the handler settled the message itself.
 *
 * It may run more than once for one message: a crash between its end and the acknowledgement brings the message back.
 */
export type Handler = (delivery: Delivery, context: HandlerContext) => unknown;
