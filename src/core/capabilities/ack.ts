/**
 * Acknowledging many at a time, or together with the next message.
 *
 * @module
 */

import type { CallOptions } from "../call.ts";
import type { AckOutcome, Message, Receipt } from "../values.ts";
import { hasMethods } from "./guard.ts";
import type { PublishOptions } from "./publish.ts";

/** Can acknowledge many leases in one call. */
export interface Acker {
  /**
   * Acknowledges every receipt that still holds its lease. A refused receipt is an outcome, never an error; the others
   * are acknowledged all the same.
   *
   * @returns One outcome a receipt, in the same order.
   * @throws {QueueError} `QUEUE_BACKEND_FAILED`; `partial` then holds all outcomes, `notAttempted` for those not
   * reached. A signal that has aborted before rejects with its reason; once begun the call runs to its end.
   */
  ackMany(receipts: readonly Receipt[], options?: CallOptions): Promise<AckOutcome[]>;
}

/** Can acknowledge and publish as one step. */
export interface AckPublisher {
  /**
   * Removes the leased message and publishes the next one: both or neither survive a crash.
   *
   * @throws {QueueError} As `ack` and `publish`; nothing happened then.
   */
  ackAndPublish(receipt: Receipt, payload: Uint8Array, options?: PublishOptions): Promise<Message>;
}

/** Whether a broker can acknowledge in batches. */
export function isAcker<B>(broker: B): broker is B & Acker {
  return hasMethods(broker, "ackMany");
}

/** Whether a broker can acknowledge and publish as one step. */
export function isAckPublisher<B>(broker: B): broker is B & AckPublisher {
  return hasMethods(broker, "ackAndPublish");
}
