/**
 * Looking at a queue, copying into it and emptying it.
 *
 * @module
 */

import type { CallOptions } from "../call.ts";
import type { LiveMessage, PurgeResult, Stats } from "../values.ts";
import type { PageOptions } from "./dead_letters.ts";
import { hasMethods } from "./guard.ts";

/** Can page through live messages. */
export interface MessageReader {
  /**
   * A page of live messages, waiting and leased, in id order. Leases nothing, counts nothing, reclaims nothing.
   *
   * @throws {QueueError} `INVALID_BATCH_SIZE`.
   */
  messages(options: PageOptions): Promise<LiveMessage[]>;
}

/** What a whole listing takes. */
export interface ListOptions extends CallOptions {
  /**
   * Ids that sort strictly after this one; the last id that an earlier iteration yielded resumes it.
   * @default {""}
   */
  readonly after?: string;
}

/** Can iterate over live messages. */
export interface MessageLister {
  /**
   * Every live message in id order, read lazily. A storage failure or an abort is thrown once by the iterator and ends
   * it; leaving early stops reading and leaves nothing open.
   */
  allMessages(options?: ListOptions): AsyncIterable<LiveMessage>;
}

/** Can write a live message recorded elsewhere. */
export interface MessageWriter {
  /**
   * Writes a waiting message as given, but for the id, which must be empty and is minted. Its next delivery counts
   * `deliveries + 1`.
   *
   * @returns The minted id.
   * @throws {QueueError} `INVALID_MESSAGE` with `fields.field`; `MESSAGE_TOO_LARGE`.
   */
  putMessage(live: LiveMessage, options?: CallOptions): Promise<string>;
}

/** Can count. */
export interface Counter {
  /** Counts messages without reading a payload, leasing or reclaiming. */
  stats(options?: CallOptions): Promise<Stats>;
}

/** Can empty the queue. */
export interface Purger {
  /**
   * Removes every live message, waiting and leased; dead letters stay. Whoever holds a purged lease gets `LEASE_EXPIRED`
   * at its ack. A publish that races a purge may or may not be removed.
   */
  purge(options?: CallOptions): Promise<PurgeResult>;
}

/** Whether a broker can page through live messages. */
export function isMessageReader<B>(broker: B): broker is B & MessageReader {
  return hasMethods(broker, "messages");
}

/** Whether a broker can iterate over live messages. */
export function isMessageLister<B>(broker: B): broker is B & MessageLister {
  return hasMethods(broker, "allMessages");
}

/** Whether a broker can write messages recorded elsewhere. */
export function isMessageWriter<B>(broker: B): broker is B & MessageWriter {
  return hasMethods(broker, "putMessage");
}

/** Whether a broker can count. */
export function isCounter<B>(broker: B): broker is B & Counter {
  return hasMethods(broker, "stats");
}

/** Whether a broker can be emptied. */
export function isPurger<B>(broker: B): broker is B & Purger {
  return hasMethods(broker, "purge");
}
