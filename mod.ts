/**
 * A queue: one process publishes work, another picks it up later, and a crash in between loses nothing.
 *
 * {@linkcode newFile} keeps it in a directory, {@linkcode newMemory} inside the process; {@linkcode consume} runs a handler
 * on every message. Delivery is at least once: a message goes away when it is acknowledged, never when it is read.
 *
 * @example Publish and consume
 * ```ts
 * import { consume, newMemory } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new TextEncoder().encode("hello"));
 *
 * const stop = new AbortController();
 * const seen: string[] = [];
 * await consume(jobs, {
 *   handlerIsIdempotent: true,
 *   handler: ({ message }) => {
 *     seen.push(new TextDecoder().decode(message.payload));
 *     stop.abort();
 *   },
 *   signal: stop.signal,
 * });
 * if (seen[0] !== "hello") throw new Error("It was handled");
 * ```
 *
 * @module
 */

export { type FileBroker, type FileConfig, newFile } from "./src/brokers/file/mod.ts";
export { type MemoryBroker, type MemoryConfig, newMemory } from "./src/brokers/memory/mod.ts";

export {
  consume,
  type ConsumeOptions,
  defaultStoragePatience,
  deliveries,
  watchedPollInterval,
} from "./src/consume/mod.ts";
export type { DeliveriesOptions, Handler, HandlerContext, IntakeOptions } from "./src/consume/mod.ts";
export type { AbandonedHandlerEvent, AcknowledgedEvent, ConsumeEvent, ConsumeOperation } from "./src/consume/mod.ts";
export type { DeadLetteredEvent, DeliveryEvent, LeaseLostEvent, ReleasedEvent } from "./src/consume/mod.ts";
export type { RetriedEvent, StoppedEvent, StorageFailureEvent, UnsettledEvent } from "./src/consume/mod.ts";

// The contract: the four methods and what they hand about.
export type { Broker, CallOptions, CompleteBroker } from "./src/core/mod.ts";
export type { DeadLetter, Delivery, LastFailure, Lease, LiveMessage, Message, MessageHeaders } from "./src/core/mod.ts";
export type { NackResult, PurgeResult, Receipt, RecordedReason, Stats, Wake } from "./src/core/mod.ts";
export { AckOutcome, isPriority, Priority } from "./src/core/mod.ts";

// Capabilities, each with its type guard.
export { capabilities, type CapabilityName } from "./src/core/mod.ts";
export { type Acker, type AckPublisher, isAcker, isAckPublisher } from "./src/core/mod.ts";
export { type BatchPublisher, isBatchPublisher, type PublishItem, type PublishOptions } from "./src/core/mod.ts";
export { type Counter, isCounter, isPurger, type Purger } from "./src/core/mod.ts";
export { type DeadLetterBulkManager, isDeadLetterBulkManager, type PurgeDeadLettersOptions } from "./src/core/mod.ts";
export { type DeadLetterManager, isDeadLetterManager, type MaxOptions, type PageOptions } from "./src/core/mod.ts";
export { type DeadLetterPager, type DeadLetterReader, isDeadLetterPager, isDeadLetterReader } from "./src/core/mod.ts";
export { type DeadLetterWriter, isDeadLetterWriter, isMessageWriter, type MessageWriter } from "./src/core/mod.ts";
export { type DelayedNacker, type DelayedPublisher, isDelayedNacker, isDelayedPublisher } from "./src/core/mod.ts";
export { isLeaseExtender, isReleaser, type LeaseExtender, type ReleaseOptions, type Releaser } from "./src/core/mod.ts";
export { isMessageLister, isMessageReader, type ListOptions, type MessageLister } from "./src/core/mod.ts";
export { isOncePublisher, type MessageReader, type OncePublisher, type PublishOnceResult } from "./src/core/mod.ts";
export { isPriorityPublisher, isRejecter, type PriorityPublisher, type Rejecter } from "./src/core/mod.ts";
export { type BrokerEvent, isWaker, isWatcher, type Waker, type Watcher, type WatchOptions } from "./src/core/mod.ts";

// Policy and its bounds.
export { normalizePolicy, type Policy, validatePolicy } from "./src/core/mod.ts";
export type { NormalizedPolicy, RetryJitterMode } from "./src/core/mod.ts";
export {
  defaultMaxHeaderBytes,
  defaultMaxHeaders,
  defaultMaxMessageBytes,
  defaultPollInterval,
} from "./src/core/mod.ts";
export { defaultSettleTimeout, maxDeadlineOffset, maxDeliveryCount, maxInstant } from "./src/core/mod.ts";
export { maxSqlTableLen, maxTextLength, maxTrail } from "./src/core/mod.ts";

// Errors, and what a handler says beside success and failure.
export { hasCode, isQueueError, QueueError, type QueueErrorOptions } from "./src/core/mod.ts";
export { type QueueReason, reasonOfCode, type ReasonRow, reasons } from "./src/core/mod.ts";
export { acknowledged, doNotRetry, type FailureDescription, retryAfter } from "./src/core/mod.ts";

// Time.
export { type Clock, systemClock, type TimeSource } from "./src/core/mod.ts";

// For wrappers and for brokers of your own: what ours are made with where all have to agree.
export { type AroundCall, type BrokerCall, wrapBroker } from "./src/core/mod.ts";
export {
  IdMint,
  normalizeHeaders,
  type RecordedFailure,
  recordFailure,
  retryDelay,
  WakeSource,
} from "./src/core/mod.ts";
