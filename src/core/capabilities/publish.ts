/**
 * More ways to publish: later, once, at a level, many at a time.
 *
 * @module
 */

import type { CallOptions } from "../call.ts";
import type { Priority } from "../priority.ts";
import type { Message } from "../values.ts";
import { hasMethods } from "./guard.ts";

/** What every publishing method takes. */
export interface PublishOptions extends CallOptions {
  /** Not handed to any consumer before this instant; a past one means now. */
  readonly at?: Date;
  /**
   * The level.
   * @default {0}
   */
  readonly priority?: Priority;
  /** Headers, string to string; names are compared in lower case. Bounded by the policy. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** One item of a `publishMany`. */
export interface PublishItem {
  /** The bytes. */
  readonly payload: Uint8Array;
  /** Not handed to any consumer before this instant; a past one means now. */
  readonly at?: Date;
  /** The level. */
  readonly priority?: Priority;
  /** Headers, string to string. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a `publishOnce` led to. A duplicate is a result, never an error. */
export type PublishOnceResult =
  | { readonly published: true; readonly message: Message }
  | { readonly published: false };

/** Can publish for later. */
export interface DelayedPublisher {
  /**
   * Publishes a message that no consumer gets before `at`; one-shot, never recurring. Idle consumers wake and then sleep
   * until `at`.
   *
   * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `at`) for an invalid Date, one past 2262-04-11, or one so late that
   * the message would expire first.
   */
  publishAt(payload: Uint8Array, at: Date, options?: Omit<PublishOptions, "at">): Promise<Message>;
}

/** Can publish at most once per key and window. */
export interface OncePublisher {
  /**
   * Publishes unless the key is reserved, and reserves it for `window` ms from now. Neither a duplicate nor the end of
   * the message changes the window; at exactly its end the key is free. Keys compare byte for byte.
   *
   * A crash may cost one duplicate and never the message.
   *
   * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `key` or `window`); `MESSAGE_TOO_LARGE`.
   */
  publishOnce(
    key: string,
    payload: Uint8Array,
    window: number,
    options?: PublishOptions,
  ): Promise<PublishOnceResult>;
}

/** Can publish at a level. */
export interface PriorityPublisher {
  /**
   * Publishes at a level.
   *
   * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `priority`) outside -2 to 2.
   */
  publishPriority(
    payload: Uint8Array,
    priority: Priority,
    options?: Omit<PublishOptions, "priority">,
  ): Promise<Message>;
}

/** Can publish many messages at the price of few. */
export interface BatchPublisher {
  /**
   * Publishes every item in order. All are checked before anything is written.
   *
   * @returns One message an item, in the same order.
   * @throws {QueueError} As `publish`. Where a broker can fail part-way, `partial` holds the messages that are durable.
   */
  publishMany(items: Iterable<Uint8Array | PublishItem>, options?: CallOptions): Promise<Message[]>;
}

/** Whether a broker can publish for later. */
export function isDelayedPublisher<B>(broker: B): broker is B & DelayedPublisher {
  return hasMethods(broker, "publishAt");
}

/** Whether a broker can publish once per key. */
export function isOncePublisher<B>(broker: B): broker is B & OncePublisher {
  return hasMethods(broker, "publishOnce");
}

/** Whether a broker can publish at a level. */
export function isPriorityPublisher<B>(broker: B): broker is B & PriorityPublisher {
  return hasMethods(broker, "publishPriority");
}

/** Whether a broker can publish in batches. */
export function isBatchPublisher<B>(broker: B): broker is B & BatchPublisher {
  return hasMethods(broker, "publishMany");
}
