/**
 * Every call of every method, well-formed, for cases that treat all of them alike.
 *
 * @module
 */

import { capabilities, type CapabilityName } from "../../core/capabilities/mod.ts";
import type { Receipt } from "../../core/values.ts";
import { bytes, type CaseContext } from "../case.ts";
import { lease } from "../steps.ts";

/** What calls need to be well-formed. */
export interface PreparedCalls {
  /** The receipt of a lease that is held. */
  readonly receipt: Receipt;
}

/** One call. */
export interface AnyCall {
  readonly method: string;
  /** Makes it, with the signal in its options where one is given. */
  readonly call: (signal: AbortSignal | undefined) => Promise<unknown>;
}

/** Leases a message whose receipt the calls use. */
export async function prepareCalls({ broker }: CaseContext): Promise<PreparedCalls> {
  return { receipt: (await lease(broker, "held")).lease.receipt };
}

type Table = Readonly<Record<string, (signal: AbortSignal | undefined) => Promise<unknown>>>;

function tableOf({ broker, clock }: CaseContext, { receipt }: PreparedCalls): Table {
  const now = new Date(clock.now());
  const payload = bytes("called");
  const message = { id: "", enqueuedAt: now, payload, headers: {} };
  const level = { deliveries: 0, priority: 0 } as const;
  return {
    publish: (signal) => broker.publish(payload, { signal }),
    receive: (signal) => broker.receive(1, { signal }),
    ack: (signal) => broker.ack(receipt, { signal }),
    nack: (signal) => broker.nack(receipt, undefined, { signal }),
    ackMany: (signal) => broker.ackMany([receipt], { signal }),
    ackAndPublish: (signal) => broker.ackAndPublish(receipt, payload, { signal }),
    publishMany: (signal) => broker.publishMany([payload], { signal }),
    stats: (signal) => broker.stats({ signal }),
    replayDeadLetters: (signal) => broker.replayDeadLetters({ max: 1, signal }),
    purgeDeadLetters: (signal) => broker.purgeDeadLetters({ before: now, max: 1, signal }),
    replayDeadLetter: (signal) => broker.replayDeadLetter("01ARZ3NDEKTSV4RRFFQ69G5FAV", { signal }),
    deleteDeadLetter: (signal) => broker.deleteDeadLetter("01ARZ3NDEKTSV4RRFFQ69G5FAV", { signal }),
    deadLettersAfter: (signal) => broker.deadLettersAfter({ max: 1, signal }),
    deadLetters: (signal) => broker.deadLetters({ max: 1, signal }),
    putDeadLetter: (signal) =>
      broker.putDeadLetter({ message, failedAt: now, reason: "", cause: "", code: 0, ...level }, { signal }),
    nackAfter: (signal) => broker.nackAfter(receipt, undefined, 1_000, { signal }),
    publishAt: (signal) => broker.publishAt(payload, now, { signal }),
    extend: (signal) => broker.extend(receipt, 60_000, { signal }),
    allMessages: (signal) => broker.allMessages({ signal })[Symbol.asyncIterator]().next(),
    messages: (signal) => broker.messages({ max: 1, signal }),
    putMessage: (signal) => broker.putMessage({ message, visibleAt: now, leased: false, ...level }, { signal }),
    publishOnce: (signal) => broker.publishOnce("key", payload, 60_000, { signal }),
    publishPriority: (signal) => broker.publishPriority(payload, 0, { signal }),
    purge: (signal) => broker.purge({ signal }),
    reject: (signal) => broker.reject(receipt, undefined, { signal }),
    release: (signal) => broker.release(receipt, { signal }),
  };
}

/** Capabilities whose methods answer at once, without a promise. */
const synchronous: readonly CapabilityName[] = ["Waker", "Watcher"];

/** A well-formed call of every method that the broker is declared to have. */
export function callsOf(context: CaseContext, prepared: PreparedCalls): AnyCall[] {
  const table = tableOf(context, prepared);
  const names = (Object.keys(capabilities) as CapabilityName[])
    .filter((name) => !context.lacks.has(name) && !synchronous.includes(name));
  const methods = ["publish", "receive", "ack", "nack", ...names.flatMap((name) => capabilities[name])];
  return methods.map((method) => ({ method, call: table[method]! }));
}
