/**
 * Dead letters: reading, replaying, deleting and writing them.
 *
 * @module
 */

import type { CallOptions } from "../call.ts";
import type { DeadLetter } from "../values.ts";
import { hasMethods } from "./guard.ts";

/** What a call with a bound takes. */
export interface MaxOptions extends CallOptions {
  /** At most so many; a positive whole number. */
  readonly max: number;
}

/** What a page takes. */
export interface PageOptions extends MaxOptions {
  /**
   * Ids that sort strictly after this one, in byte order; it need not exist. Empty starts at the first.
   * @default {""}
   */
  readonly after?: string;
}

/** What a purge of dead letters takes. */
export interface PurgeDeadLettersOptions extends MaxOptions {
  /** Only those whose `failedAt` is strictly before this instant. */
  readonly before: Date;
}

/** Can show dead letters. */
export interface DeadLetterReader {
  /**
   * The oldest dead letters by id, which is enqueue order. Reading removes nothing.
   *
   * @throws {QueueError} `INVALID_BATCH_SIZE`.
   */
  deadLetters(options: MaxOptions): Promise<DeadLetter[]>;
}

/** Can page through dead letters. */
export interface DeadLetterPager {
  /**
   * A page of dead letters in id order. Paging with the last returned id visits each one once; those written, replayed
   * or deleted meanwhile may or may not appear.
   *
   * @throws {QueueError} `INVALID_BATCH_SIZE`.
   */
  deadLettersAfter(options: PageOptions): Promise<DeadLetter[]>;
}

/** Can replay or delete one dead letter. */
export interface DeadLetterManager {
  /**
   * Queues the message again under its id, at its level, visible at once, with its whole attempt budget back, and removes
   * the dead letter.
   *
   * @throws {QueueError} `DEAD_LETTER_NOT_FOUND`; `MESSAGE_EXPIRED` when it would expire at once, and it stays.
   */
  replayDeadLetter(id: string, options?: CallOptions): Promise<void>;
  /**
   * Deletes the dead letter for good.
   *
   * @throws {QueueError} `DEAD_LETTER_NOT_FOUND`.
   */
  deleteDeadLetter(id: string, options?: CallOptions): Promise<void>;
}

/** Can replay or delete many dead letters. */
export interface DeadLetterBulkManager {
  /**
   * Replays up to `max` in id order; call again for the next ones.
   *
   * @returns How many were replayed; one that would expire at once is passed over and stays.
   * @throws {QueueError} `INVALID_BATCH_SIZE`; after a failure part-way `partial` is the number done.
   */
  replayDeadLetters(options: MaxOptions): Promise<number>;
  /**
   * Deletes up to `max` in id order whose `failedAt` is strictly before `before`.
   *
   * @returns How many were deleted.
   * @throws {QueueError} `INVALID_BATCH_SIZE`; after a failure part-way `partial` is the number done.
   */
  purgeDeadLetters(options: PurgeDeadLettersOptions): Promise<number>;
}

/** Can write a dead letter recorded elsewhere. */
export interface DeadLetterWriter {
  /**
   * Writes a dead letter as given, but for the id, which must be empty and is minted. Wakes nobody.
   *
   * @returns The minted id.
   * @throws {QueueError} `INVALID_DEAD_LETTER` with `fields.field`; `MESSAGE_TOO_LARGE`.
   */
  putDeadLetter(dead: DeadLetter, options?: CallOptions): Promise<string>;
}

/** Whether a broker can show dead letters. */
export function isDeadLetterReader<B>(broker: B): broker is B & DeadLetterReader {
  return hasMethods(broker, "deadLetters");
}

/** Whether a broker can page through dead letters. */
export function isDeadLetterPager<B>(broker: B): broker is B & DeadLetterPager {
  return hasMethods(broker, "deadLettersAfter");
}

/** Whether a broker can replay and delete single dead letters. */
export function isDeadLetterManager<B>(broker: B): broker is B & DeadLetterManager {
  return hasMethods(broker, "replayDeadLetter", "deleteDeadLetter");
}

/** Whether a broker can replay and delete dead letters in bulk. */
export function isDeadLetterBulkManager<B>(broker: B): broker is B & DeadLetterBulkManager {
  return hasMethods(broker, "replayDeadLetters", "purgeDeadLetters");
}

/** Whether a broker can write dead letters recorded elsewhere. */
export function isDeadLetterWriter<B>(broker: B): broker is B & DeadLetterWriter {
  return hasMethods(broker, "putDeadLetter");
}
