/**
 * Where the consumer's tests play: a memory broker on a clock that the test moves, with every call in the test's hands.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type MemoryBroker, type MemoryConfig, newMemory } from "../../src/brokers/memory/mod.ts";
import { consume, type ConsumeEvent, type ConsumeOptions } from "../../src/consume/mod.ts";
import { type Broker, type BrokerCall, type Policy, wrapBroker } from "../../src/core/mod.ts";
import { nextTurn } from "../../src/core/turn.ts";
import { ManualClock } from "../../src/testing/manual_clock.ts";

/** What a test does with one call: answer it, let it through, or both. */
export type Intervention = (call: BrokerCall, proceed: (args?: readonly unknown[]) => unknown) => unknown;

/** A promise with its handle. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** Makes a gate. */
export function gate(): Gate {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** Lets promise reactions and a turn of the event loop run. */
export const turn: () => Promise<void> = nextTurn;

/** Lets things run until a condition holds; fails after many turns in which it did not. */
export async function until(condition: () => boolean, what = "The condition"): Promise<void> {
  for (let turns = 0; turns < 500; turns++) {
    if (condition()) return;
    await turn();
  }
  assert.fail(`${what} did not come about: ${condition}`);
}

/** Lets things run for long enough that whatever could happen has. */
export async function quiet(): Promise<void> {
  for (let turns = 0; turns < 8; turns++) await turn();
}

/** A transient system error. */
export function transient(code = "EAGAIN"): Error {
  return Object.assign(new Error("The secret text of a driver"), { code });
}

/** One running `consume`. */
export interface Running {
  readonly done: Promise<void>;
  readonly events: ConsumeEvent[];
  /** Whether it has settled. */
  ended(): boolean;
  stop(reason?: unknown): void;
  /** The kinds of all events of messages so far, in order. */
  kinds(): string[];
}

/** A broker, a clock and a log of calls. */
export class Stage {
  readonly clock: ManualClock = new ManualClock();
  readonly inner: MemoryBroker;
  readonly broker: MemoryBroker;
  readonly calls: BrokerCall[] = [];
  readonly #interventions = new Map<string, Intervention>();

  constructor(policy: Partial<Policy> = {}, config: Partial<MemoryConfig> = {}) {
    this.inner = newMemory({
      policy: { visibilityTimeout: 30_000, maxDeliveries: 5, ...policy },
      clock: this.clock,
      ...config,
    });
    this.broker = wrapBroker(this.inner, (call, proceed) => {
      this.calls.push(call);
      return (this.#interventions.get(call.method) ?? ((_call, go) => go()))(call, proceed);
    });
  }

  /** Takes the calls of a method in hand from now on. */
  on(method: string, intervention: Intervention): void {
    this.#interventions.set(method, intervention);
  }

  /** Fails the next `times` calls of a method, before or after they took effect. */
  fail(method: string, error: unknown, times = 1, when: "before" | "after" = "before"): void {
    let left = times;
    this.on(method, async (_call, proceed) => {
      if (left <= 0) return await proceed();
      left--;
      if (when === "after") await proceed();
      throw error;
    });
  }

  /** How often a method was called. */
  count(method: string): number {
    return this.calls.filter((call) => call.method === method).length;
  }

  /** Publishes messages whose payloads are the numbers from 1. */
  async publish(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let number = 1; number <= count; number++) {
      ids.push((await this.inner.publish(new Uint8Array([number]))).id);
    }
    return ids;
  }

  /** The broker with nothing but the four methods and those named. */
  bare(...capabilities: (keyof MemoryBroker & string)[]): Broker {
    const bare: Record<string, unknown> = {};
    for (const name of ["publish", "receive", "ack", "nack", ...capabilities]) {
      bare[name] = this.broker[name as keyof MemoryBroker];
    }
    return bare as unknown as Broker;
  }

  /** Starts consuming. */
  consume(options: Partial<ConsumeOptions>, broker: Broker = this.broker): Running {
    const controller = new AbortController();
    const events: ConsumeEvent[] = [];
    let ended = false;
    const done = consume(broker, {
      handler: () => {},
      handlerIsIdempotent: true,
      clock: this.clock,
      signal: controller.signal,
      ...options,
      onEvent: (event) => {
        events.push(event);
        return options.onEvent?.(event);
      },
    }).finally(() => ended = true);
    done.catch(() => {});
    return {
      done,
      events,
      ended: () => ended,
      stop: (reason) => controller.abort(reason),
      kinds: () => events.filter((event) => "id" in event).map((event) => event.kind),
    };
  }

  /** What is left, once nobody consumes: nothing leased and no timer set. */
  async left(): Promise<{ queued: number; leased: number; dead: number; timers: number }> {
    const { queued, leased, dead } = await this.inner.stats();
    return { queued, leased, dead, timers: this.clock.timers };
  }
}

/** Nothing is left over. */
export const nothing = { queued: 0, leased: 0, dead: 0, timers: 0 };
