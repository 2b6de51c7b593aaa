/**
 * What a queue hands about: messages, leases, deliveries, dead letters and counts.
 *
 * @module
 */

import type { QueueReason } from "./reasons.ts";
import type { Priority } from "./priority.ts";

/**
 * Headers of a message, string to string. Names come back in lower case; the object is frozen and has no prototype.
 * They hold what is about the payload (trace context, content type), so that the payload stays the caller's own bytes.
 */
export type MessageHeaders = Readonly<Record<string, string>>;

/** A stored piece of work. */
export interface Message {
  /**
   * Opaque, unique inside one queue, and stable: the same on every redelivery, in the dead letter and after a replay.
   * Byte order of ids is the order of publication within one process.
   */
  readonly id: string;
  /** The broker's clock when it accepted the message. No redelivery, retry or replay changes it. */
  readonly enqueuedAt: Date;
  /** The caller's bytes, never interpreted. */
  readonly payload: Uint8Array;
  /** The message's headers; empty when none were given. */
  readonly headers: MessageHeaders;
}

/**
 * An opaque name of ONE lease, never the message id. It may be logged, stored and passed across tasks, and cannot be
 * turned into somebody else's lease.
 */
export type Receipt = string & { readonly __receipt: "receipt" };

/** The time for which a message is one consumer's. */
export interface Lease {
  /** What settles the message: `ack`, `nack` and the rest take it. */
  readonly receipt: Receipt;
  /** On the broker's clock. Past it another consumer may hold the message while this one still runs. */
  readonly expiresAt: Date;
}

/** What last went wrong with a message that was delivered before. */
export interface LastFailure {
  /** The reason that was recorded; see {@linkcode QueueReason} and {@linkcode RecordedReason}. */
  readonly reason: string;
  /** The numeric code, 0 when the cause had none. */
  readonly code: number;
}

/** A message handed to a consumer under a lease. */
export interface Delivery {
  /** The lease; its receipt settles the message. */
  readonly lease: Lease;
  /** The message. */
  readonly message: Message;
  /**
   * Every hand-out up to and including this one, from 1. Above 1 means an earlier failure, timeout or death of a
   * consumer; equal to the policy's `maxDeliveries` means the last attempt.
   */
  readonly deliveries: number;
  /** The message's level. */
  readonly priority: Priority;
  /** The latest counted hand-back or lapse, absent on a first life. */
  readonly lastFailure?: LastFailure;
}

/** What a nack led to. */
export interface NackResult {
  /** The count at the failure, from 1. */
  readonly deliveries: number;
  /** When the message can be received again; absent when it was dead-lettered. */
  readonly visibleAt?: Date;
  /** Whether the message ran out of attempts and is now a dead letter. */
  readonly deadLettered: boolean;
}

/** Reasons that are recorded and never thrown: a foreign error, and a nack that named no cause. */
export type RecordedReason = QueueReason | "UNCLASSIFIED" | "UNREPORTED";

/** A message that could not be handled, kept as evidence until somebody replays or deletes it. */
export interface DeadLetter {
  /** The message; id, payload, headers and `enqueuedAt` are unmodified. */
  readonly message: Message;
  /** The broker's clock when it was dead-lettered. */
  readonly failedAt: Date;
  /** Why: the cause's reason (see {@linkcode RecordedReason}), at most 120 code points on one line. */
  readonly reason: string;
  /** The public half of the cause, at most 120 code points on one line, empty when none was reported. Never payload. */
  readonly cause: string;
  /** The cause's numeric code, 0 when it had none. */
  readonly code: number;
  /** Codes gathered while the cause was wrapped, oldest first, at most 16; absent when there are none. */
  readonly trail?: readonly number[];
  /** The delivery count it died with. */
  readonly deliveries: number;
  /** The message's level. */
  readonly priority: Priority;
}

/** A message that waits or is leased, as a listing shows it. */
export interface LiveMessage {
  /** The message. */
  readonly message: Message;
  /** A waiting message's visibility instant, a leased one's lease deadline. A past instant means receivable now. */
  readonly visibleAt: Date;
  /** 0 if it was never leased. */
  readonly deliveries: number;
  /** Whether a lease is held; stays true for a lapsed lease that nobody reclaimed yet. */
  readonly leased: boolean;
  /** The message's level. */
  readonly priority: Priority;
}

/** Counts of one queue: a snapshot that races the queue. */
export interface Stats {
  /** Waiting and visible now. */
  readonly ready: number;
  /** Waiting and held until later. */
  readonly delayed: number;
  /** `ready + delayed`. */
  readonly queued: number;
  /** Leased, lapsed leases that nobody reclaimed included. */
  readonly leased: number;
  /** Dead letters. */
  readonly dead: number;
  /** The smallest `enqueuedAt` among live messages; absent when none is live. */
  readonly oldestEnqueuedAt?: Date;
  /** The earliest visibility of a waiting message, possibly past; absent when nothing waits. */
  readonly nextDueAt?: Date;
}

/** What a purge removed. */
export interface PurgeResult {
  /** Waiting messages removed. */
  readonly queued: number;
  /** Leased messages removed, lapsed leases included. */
  readonly leased: number;
}

/**
 * A hint for somebody about to wait. Take it BEFORE a receive: an event after the take has aborted that very signal,
 * so a publication between an empty receive and the wait is not missed.
 */
export interface Wake {
  /** Aborts once, at the next event in this process that could give a receiver something to take. */
  readonly signal: AbortSignal;
  /** Whether something will become receivable by itself. */
  readonly scheduled: boolean;
  /** How long from now until then, in ms on the broker's clock; 0 or less means now. 0 when nothing is scheduled. */
  readonly in: number;
}

/** What became of one receipt of an `ackMany`. */
export type AckOutcome = 0 | 1 | 2 | 3;

/**
 * The outcomes of `ackMany` by name.
 *
 * @example
 * ```ts
 * import { AckOutcome, newMemory } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new Uint8Array());
 * const [delivery] = await jobs.receive(1);
 * const outcomes = await jobs.ackMany([delivery!.lease.receipt]);
 * if (outcomes[0] !== AckOutcome.acknowledged) throw new Error("The lease was held");
 * ```
 */
export const AckOutcome: {
  /** Not reached: a failure came first, and the message is unchanged. */
  readonly notAttempted: 0;
  /** Removed for good. */
  readonly acknowledged: 1;
  /** The lease had ended; nothing was removed. */
  readonly leaseExpired: 2;
  /** The receipt names no lease of this queue. */
  readonly unknownReceipt: 3;
} = { notAttempted: 0, acknowledged: 1, leaseExpired: 2, unknownReceipt: 3 };
