/**
 * What many cases do with a broker.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { DeadLetter, Delivery, LiveMessage, Receipt } from "../core/values.ts";
import { ensure, equal } from "./assert.ts";
import { type AnyBroker, bytes, textOf } from "./case.ts";

/** Receives exactly one message and fails when there is none. */
export async function receiveOne(broker: Broker): Promise<Delivery> {
  const deliveries = await broker.receive(1);
  equal(deliveries.length, 1, "The number of messages received");
  return deliveries[0]!;
}

/** Fails unless nothing is receivable. */
export async function receiveNothing(broker: Broker, when: string): Promise<void> {
  const deliveries = await broker.receive(10);
  equal(deliveries.map(payloadText), [], `What is receivable ${when}`);
}

/** Receives one by one until nothing is receivable, in order; settles nothing. */
export async function drain(broker: Broker): Promise<Delivery[]> {
  const drained: Delivery[] = [];
  for (let [next] = await broker.receive(1); next !== undefined; [next] = await broker.receive(1)) drained.push(next);
  return drained;
}

/** The payloads, as text, of everything that is receivable, in order; settles nothing. */
export async function drainTexts(broker: Broker): Promise<string[]> {
  return (await drain(broker)).map(payloadText);
}

/** A delivery's payload as text. */
export function payloadText(delivery: { readonly message: { readonly payload: Uint8Array } }): string {
  return textOf(delivery.message.payload);
}

/** Publishes a text and receives it, whatever else is there being nobody's business: the store is taken to be empty. */
export async function lease(broker: Broker, text = "work"): Promise<Delivery> {
  await broker.publish(bytes(text));
  return await receiveOne(broker);
}

/** Publishes a text and makes a dead letter of it through nacks with a cause. */
export async function bury(broker: AnyBroker, text: string, cause?: unknown): Promise<Delivery> {
  await broker.publish(bytes(text));
  const delivery = await receiveOne(broker);
  for (let current = delivery;; current = await receiveOne(broker)) {
    equal(payloadText(current), text, "The message that came back");
    const { deadLettered } = await broker.nack(current.lease.receipt, cause);
    if (deadLettered) return delivery;
  }
}

/** All dead letters in id order. */
export async function allDeadLetters(broker: AnyBroker): Promise<DeadLetter[]> {
  return await broker.deadLetters({ max: 10_000 });
}

/** The only dead letter. */
export async function onlyDeadLetter(broker: AnyBroker): Promise<DeadLetter> {
  const dead = await allDeadLetters(broker);
  equal(dead.length, 1, "The number of dead letters");
  return dead[0]!;
}

/** All live messages in id order. */
export async function allLive(broker: AnyBroker): Promise<LiveMessage[]> {
  return await broker.messages({ max: 10_000 });
}

/** A string in the place of a receipt. */
export function asReceipt(text: string): Receipt {
  return text as Receipt;
}

/** A signal that is aborted, and its reason. */
export function abortedSignal(): { signal: AbortSignal; reason: Error } {
  const reason = new Error("The caller went away");
  return { signal: AbortSignal.abort(reason), reason };
}

/** Fails unless texts are ascending in byte order; all of them are ASCII here. */
export function ensureAscending(ids: readonly string[], what: string): void {
  for (let index = 1; index < ids.length; index++) {
    ensure(ids[index - 1]! < ids[index]!, `${what}: ${ids[index - 1]} does not sort before ${ids[index]}`);
  }
}
