/**
 * The one way to put something around a broker (tracing, faults, counting) without losing its capabilities.
 *
 * @module
 */

import type { Broker } from "./broker.ts";
import { capabilities } from "./capabilities/mod.ts";

/** One call on its way to the wrapped broker. */
export interface BrokerCall {
  /** The method's name, such as `"publish"`. */
  readonly method: string;
  /** The arguments as the caller gave them. */
  readonly args: readonly unknown[];
}

/** Decides what becomes of a call: `proceed()` makes it, or `proceed(otherArgs)` with other arguments. */
export type AroundCall = (call: BrokerCall, proceed: (args?: readonly unknown[]) => unknown) => unknown;

const forwarded: readonly string[] = [
  "publish",
  "receive",
  "ack",
  "nack",
  ...Object.values(capabilities).flat(),
  "close",
];

/**
 * Wraps a broker: every method it has is there on the wrapper and goes through `around`; those it lacks are lacking
 * there too, so type guards answer alike.
 *
 * @example Count publications
 * ```ts
 * import { newMemory, wrapBroker } from "jsr:@x/queue";
 *
 * let publications = 0;
 * const inner = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await using jobs = wrapBroker(inner, (call, proceed) => {
 *   if (call.method === "publish") publications++;
 *   return proceed();
 * });
 * await jobs.publish(new Uint8Array());
 * if (publications !== 1) throw new Error("It went through the wrapper");
 * ```
 */
export function wrapBroker<B extends Broker>(inner: B, around: AroundCall): B {
  const methods = inner as unknown as Record<string | symbol, unknown>;
  const wrapper: Record<string | symbol, unknown> = {};
  for (const method of forwarded) {
    const original = methods[method];
    if (typeof original !== "function") continue;
    wrapper[method] = (...args: unknown[]) =>
      around({ method, args }, (changed = args) => Reflect.apply(original, inner, changed));
  }
  const dispose = methods[Symbol.asyncDispose];
  if (typeof dispose === "function") wrapper[Symbol.asyncDispose] = () => Reflect.apply(dispose, inner, []);
  if ("policy" in inner) wrapper.policy = methods.policy;
  return wrapper as unknown as B;
}
