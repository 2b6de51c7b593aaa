/**
 * The capabilities a broker may have beside the four methods, the names they go by, and the set that every broker of
 * this package has.
 *
 * @module
 */

import type { Broker } from "../broker.ts";
import type { NormalizedPolicy } from "../policy.ts";
import type { Acker } from "./ack.ts";
import type {
  DeadLetterBulkManager,
  DeadLetterManager,
  DeadLetterPager,
  DeadLetterReader,
  DeadLetterWriter,
} from "./dead_letters.ts";
import type { Counter, MessageLister, MessageReader, MessageWriter, Purger } from "./inspect.ts";
import type { DelayedNacker, LeaseExtender, Rejecter, Releaser } from "./lease.ts";
import type { BatchPublisher, DelayedPublisher, OncePublisher, PriorityPublisher } from "./publish.ts";
import type { Waker, Watcher } from "./wake.ts";

/** The name of a capability. */
export type CapabilityName =
  | "Acker"
  | "AckPublisher"
  | "BatchPublisher"
  | "Counter"
  | "DeadLetterBulkManager"
  | "DeadLetterManager"
  | "DeadLetterPager"
  | "DeadLetterReader"
  | "DeadLetterWriter"
  | "DelayedNacker"
  | "DelayedPublisher"
  | "LeaseExtender"
  | "MessageLister"
  | "MessageReader"
  | "MessageWriter"
  | "OncePublisher"
  | "PriorityPublisher"
  | "Purger"
  | "Rejecter"
  | "Releaser"
  | "Waker"
  | "Watcher";

/** Every capability with the methods that make it up: what wrappers forward and the conformance cases go by. */
export const capabilities: Readonly<Record<CapabilityName, readonly string[]>> = {
  Acker: ["ackMany"],
  AckPublisher: ["ackAndPublish"],
  BatchPublisher: ["publishMany"],
  Counter: ["stats"],
  DeadLetterBulkManager: ["replayDeadLetters", "purgeDeadLetters"],
  DeadLetterManager: ["replayDeadLetter", "deleteDeadLetter"],
  DeadLetterPager: ["deadLettersAfter"],
  DeadLetterReader: ["deadLetters"],
  DeadLetterWriter: ["putDeadLetter"],
  DelayedNacker: ["nackAfter"],
  DelayedPublisher: ["publishAt"],
  LeaseExtender: ["extend"],
  MessageLister: ["allMessages"],
  MessageReader: ["messages"],
  MessageWriter: ["putMessage"],
  OncePublisher: ["publishOnce"],
  PriorityPublisher: ["publishPriority"],
  Purger: ["purge"],
  Rejecter: ["reject"],
  Releaser: ["release"],
  Waker: ["wake"],
  Watcher: ["watch"],
};

/** What every broker of this package is: the four methods, every capability but AckPublisher, a policy and an end. */
export interface CompleteBroker
  extends
    Broker,
    Acker,
    BatchPublisher,
    Counter,
    DeadLetterBulkManager,
    DeadLetterManager,
    DeadLetterPager,
    DeadLetterReader,
    DeadLetterWriter,
    DelayedNacker,
    DelayedPublisher,
    LeaseExtender,
    MessageLister,
    MessageReader,
    MessageWriter,
    OncePublisher,
    PriorityPublisher,
    Purger,
    Rejecter,
    Releaser,
    Waker,
    Watcher,
    AsyncDisposable {
  /** The policy it was made with, normalised and frozen. */
  readonly policy: NormalizedPolicy;
  /**
   * Ends this broker value; calling it again does nothing. Every later call rejects `QUEUE_CLOSED`; consumers over it end
   * as on a stop. What is durable stays for the next broker.
   */
  close(): Promise<void>;
}

export * from "./ack.ts";
export * from "./dead_letters.ts";
export * from "./inspect.ts";
export * from "./lease.ts";
export * from "./publish.ts";
export * from "./wake.ts";
