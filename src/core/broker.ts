/**
 * The contract that anybody can write a broker to: four methods, and it stays at four. Everything else is a capability.
 *
 * @module
 */

import type { CallOptions } from "./call.ts";
import type { PublishOptions } from "./capabilities/publish.ts";
import type { Delivery, Message, NackResult, Receipt } from "./values.ts";

/**
 * A queue of messages. A message goes away at `ack`, never at `receive`, so work is delivered at least once: a consumer
 * that dies leaves a lease that lapses, and whoever receives next gets the message again, with a higher count.
 *
 * Capabilities ({@linkcode LeaseExtender}, {@linkcode DeadLetterReader} and so on) are found at run time by their type
 * guards; the brokers of this package have all of them and say so in their type.
 */
export interface Broker {
  /**
   * Publishes a message; resolves once it is as durable as the broker promises. The payload is copied.
   *
   * @param payload Bytes, at most `policy.maxMessageBytes`; empty is fine.
   * @returns The message; its `payload` is the caller's own buffer.
   * @throws {QueueError} `MESSAGE_TOO_LARGE`; `QUEUE_MISCONFIGURED` for a bad option; `QUEUE_BACKEND_FAILED`.
   */
  publish(payload: Uint8Array, options?: PublishOptions): Promise<Message>;

  /**
   * Leases up to `max` visible messages. Answers at once, empty or not: waiting is the consumer's.
   *
   * @param max A positive whole number.
   * @throws {QueueError} `INVALID_BATCH_SIZE`; `QUEUE_BACKEND_FAILED`.
   */
  receive(max: number, options?: CallOptions): Promise<Delivery[]>;

  /**
   * Removes a leased message for good.
   *
   * @throws {QueueError} `LEASE_EXPIRED` when the lease ended, was replaced or was settled before; `UNKNOWN_RECEIPT` for
   * a receipt that names no lease of this queue. Nothing is removed then.
   */
  ack(receipt: Receipt, options?: CallOptions): Promise<void>;

  /**
   * Hands a message back after a failure: visible again after the policy's retry delay, or a dead letter when its
   * attempts are used up.
   *
   * @param cause What went wrong; its public half is recorded, see {@linkcode recordFailure}.
   * @throws {QueueError} As `ack`; nothing moves then.
   */
  nack(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<NackResult>;
}
