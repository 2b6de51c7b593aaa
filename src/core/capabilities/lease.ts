/**
 * More ways to settle or keep a lease.
 *
 * @module
 */

import type { CallOptions } from "../call.ts";
import type { Lease, NackResult, Receipt } from "../values.ts";
import { hasMethods } from "./guard.ts";

/** Can renew a lease. */
export interface LeaseExtender {
  /**
   * Replaces a held lease by one that ends `by` ms from now, which may be sooner; the old receipt is void at once. The
   * delivery count does not change.
   *
   * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `by`) unless above 0 and ending before 2262-04-12, before anything
   * moves; `LEASE_EXPIRED` for a lapsed lease, even if nobody took the message; `UNKNOWN_RECEIPT`.
   */
  extend(receipt: Receipt, by: number, options?: CallOptions): Promise<Lease>;
}

/** What `release` takes. */
export interface ReleaseOptions extends CallOptions {
  /**
   * How long the message stays hidden, in ms; negative is read as 0.
   * @default {0}
   */
  readonly delay?: number;
}

/** Can hand a message back as if it had not been delivered. */
export interface Releaser {
  /**
   * Hands a message back uncounted: the next delivery carries the same count this one did. It sorts by its enqueue
   * instant, so without a delay it is among the first. Never dead-letters.
   *
   * @throws {QueueError} As `ack`; nothing moves then.
   */
  release(receipt: Receipt, options?: ReleaseOptions): Promise<void>;
}

/** Can give a message up at once. */
export interface Rejecter {
  /**
   * Moves a leased message to the dead letters whatever its count, with the cause recorded as a final nack records it.
   *
   * @throws {QueueError} As `ack`; nothing moves then.
   */
  reject(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<void>;
}

/** Can hand a message back for a named delay. */
export interface DelayedNacker {
  /**
   * As `nack`, but visible again exactly `delay` ms from now, without jitter. On the last attempt the message becomes a
   * dead letter and the delay is unused.
   *
   * @param delay In ms; negative is read as 0.
   * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `delay`) past 2262-04-11, and the lease stays valid; else as `ack`.
   */
  nackAfter(receipt: Receipt, cause: unknown, delay: number, options?: CallOptions): Promise<NackResult>;
}

/** Whether a broker can renew leases. */
export function isLeaseExtender<B>(broker: B): broker is B & LeaseExtender {
  return hasMethods(broker, "extend");
}

/** Whether a broker can hand back uncounted. */
export function isReleaser<B>(broker: B): broker is B & Releaser {
  return hasMethods(broker, "release");
}

/** Whether a broker can give a message up at once. */
export function isRejecter<B>(broker: B): broker is B & Rejecter {
  return hasMethods(broker, "reject");
}

/** Whether a broker can hand back for a named delay. */
export function isDelayedNacker<B>(broker: B): broker is B & DelayedNacker {
  return hasMethods(broker, "nackAfter");
}
