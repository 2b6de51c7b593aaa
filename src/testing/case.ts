/**
 * What a conformance case is made of, and what it gets to work with.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { AckPublisher, CapabilityName, CompleteBroker } from "../core/capabilities/mod.ts";
import type { TimeSource } from "../core/clock.ts";
import type { Policy } from "../core/policy.ts";
import type { ManualClock } from "./manual_clock.ts";

/**
 * What a broker may lack beside capabilities. One that lacks it has to say so by refusing, never by dropping:
 *
 * - `"reopen"`: another broker value over the same store sees the same queue.
 * - `"headers"`, `"at"`, `"priority"`: the option of that name of `publish`. Lacking it, a publish with the option is
 *   refused with `QUEUE_MISCONFIGURED`, `fields.field` being its name.
 * - `"expiry"`, `"retention"`: the policy's `maxAge` and `deadLetterRetention`. Lacking it, a policy that sets it is
 *   refused.
 * - `"policy"`: shows its `policy`, normalised and frozen.
 * - `"close"`: `close()` and `Symbol.asyncDispose`, after which every call is refused with `QUEUE_CLOSED`.
 * - `"orderedIds"`: the byte order of ids is the order of publication.
 * - `"lastFailure"`: deliveries tell what went wrong before.
 * - `"steppedClock"`: what was published for now stays receivable when the clock steps back. Lacking it, it is hidden
 *   until the clock has caught up, and never lost.
 */
export type Trait =
  | "reopen"
  | "headers"
  | "at"
  | "priority"
  | "expiry"
  | "retention"
  | "policy"
  | "close"
  | "orderedIds"
  | "lastFailure"
  | "steppedClock";

/** Every trait there is. */
export const traits: readonly Trait[] = [
  "reopen",
  "headers",
  "at",
  "priority",
  "expiry",
  "retention",
  "policy",
  "close",
  "orderedIds",
  "lastFailure",
  "steppedClock",
];

/** What a broker can have or lack. */
export type Feature = CapabilityName | Trait;

/** What a broker is to be made with. */
export interface BrokerSetup {
  /** The policy; some cases hand over a bad one, which has to be refused. */
  readonly policy: Policy;
  /** Where the broker reads its instants. */
  readonly clock: TimeSource;
  /** Where the broker draws its jitter: a number in [0, 1). */
  readonly random: () => number;
}

/** A broker over a store of its own, as a factory hands it over. */
export interface OpenedBroker {
  /** The broker; its store is empty. */
  readonly broker: Broker;
  /** Makes another broker over the same store; left out by a broker that declares it lacks `"reopen"`. */
  readonly reopen?: (setup: BrokerSetup) => Broker | Promise<Broker>;
  /** Removes the store; called once after the case, when every broker was closed. */
  readonly remove?: () => void | Promise<void>;
}

/** Opens a broker over a new and empty store. */
export type OpenBroker = (setup: BrokerSetup) => OpenedBroker | Promise<OpenedBroker>;

/** The type through which cases call a broker; what a case uses beyond the four methods it names in its `needs`. */
export type AnyBroker = CompleteBroker & AckPublisher;

/** What a case may change about the broker it opens. */
export interface SetupOverrides {
  readonly policy?: Partial<Policy>;
  readonly clock?: TimeSource;
  readonly random?: () => number;
}

/** What a case gets to work with. */
export interface CaseContext {
  /** The broker under test, over an empty store. */
  readonly broker: AnyBroker;
  /** The clock it reads; stands at a whole second. */
  readonly clock: ManualClock;
  /** What the broker is declared to lack. */
  readonly lacks: ReadonlySet<Feature>;
  /** Whether the factory offered to reopen the store. */
  readonly reopens: boolean;
  /** Moves the clock ahead, or back, by so many ms. */
  pass(by: number): void;
  /** Opens another broker over another empty store. */
  open(overrides?: SetupOverrides): Promise<AnyBroker>;
  /** Opens another broker over the same store as `broker`. */
  reopen(overrides?: SetupOverrides): Promise<AnyBroker>;
}

/** A case as it is written down: data, and what it does. */
export interface CaseDefinition {
  /** Stable and unique. */
  readonly id: string;
  /** One sentence that says what holds. */
  readonly title: string;
  /** What it takes beyond the four methods; a broker that lacks one of these does not get the case. */
  readonly needs?: readonly Feature[];
  /** What has to be lacking: cases that check how a broker goes without. */
  readonly without?: readonly Feature[];
  /** Laid over the default policy. */
  readonly policy?: Partial<Policy>;
  readonly run: (context: CaseContext) => Promise<void>;
}

/** The policy of a case that asks for nothing else. */
export const defaultPolicy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 3, retryDelay: 0 };

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of a text. */
export function bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Text of bytes. */
export function textOf(payload: Uint8Array): string {
  return decoder.decode(payload);
}
