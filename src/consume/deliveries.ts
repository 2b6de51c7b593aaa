/**
 * Consuming with a loop.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { Delivery } from "../core/values.ts";
import type { Attempt } from "./attempt.ts";
import { Engine, type Takers } from "./engine.ts";
import { type DeliveriesOptions, resolveDeliveries, type ResolvedIntake } from "./options.ts";

type Result = IteratorResult<Delivery, undefined>;

/** The loop's end of the engine: it is idle while somebody waits for `next()`. */
class Loop implements Takers, AsyncIterableIterator<Delivery, undefined> {
  readonly #engine: Engine;
  readonly #pulls: ((delivery: Delivery | undefined) => void)[] = [];
  #running: Promise<void> | undefined;
  #over = false;
  #told = false;

  constructor(broker: Broker, options: ResolvedIntake) {
    this.#engine = new Engine(broker, options, () => this, 0);
  }

  idle(): number {
    return this.#pulls.length;
  }

  busy(): number {
    return 0;
  }

  *running(): Iterable<Attempt> {}

  give(attempt: Attempt, now: number): void {
    const { leases, settlement } = this.#engine;
    if (attempt.lost) return;
    if (leases.isTooLate(attempt, now)) settlement.release(attempt, "lease");
    else this.#pulls.shift()!(attempt.delivery);
  }

  async next(): Promise<Result> {
    const delivery = await this.#pull();
    if (delivery !== undefined) return { done: false, value: delivery };
    const failure = this.#engine.session.failure();
    if (failure !== undefined && !this.#told) {
      this.#told = true;
      throw failure.error;
    }
    return { done: true, value: undefined };
  }

  async return(): Promise<Result> {
    this.#told = true;
    if (this.#running === undefined) this.#over = true;
    this.#engine.session.stop("return", undefined);
    await this.#running;
    return { done: true, value: undefined };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next delivery; `undefined` once the engine has ended. */
  #pull(): Promise<Delivery | undefined> {
    if (this.#over) return Promise.resolve(undefined);
    const pulled = new Promise<Delivery | undefined>((resolve) => this.#pulls.push(resolve));
    if (this.#running === undefined) this.#running = this.#run();
    else this.#engine.roomForMore();
    return pulled;
  }

  async #run(): Promise<void> {
    await this.#engine.run();
    this.#over = true;
    for (const resolve of this.#pulls.splice(0)) resolve(undefined);
  }
}

/**
 * The deliveries of a queue, one at a time, for those who want a loop and no engine. Waits while there is nothing, as
 * `consume` does; the loop's body settles each delivery.
 *
 * Leaving the loop (`break`, `return`, a throw) or the signal hands back, uncounted, what was leased and not yet yielded;
 * the signal ends the loop without an error. A buffered delivery whose lease nears its end is handed back, never yielded.
 *
 * @throws {QueueError} `CONSUMER_MISCONFIGURED` at once. A storage failure rejects `next()` once, after
 * `storagePatience`.
 *
 * @example
 * ```ts
 * import { deliveries, newMemory } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new Uint8Array([1]));
 * for await (const delivery of deliveries(jobs, {})) {
 *   await jobs.ack(delivery.lease.receipt);
 *   break;
 * }
 * if ((await jobs.stats()).queued !== 0) throw new Error("It was acknowledged");
 * ```
 */
export function deliveries(
  broker: Broker,
  options: DeliveriesOptions = {},
): AsyncIterableIterator<Delivery, undefined> {
  return new Loop(broker, resolveDeliveries(broker, options));
}
