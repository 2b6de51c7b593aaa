/**
 * Consuming with a handler.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { Attempt } from "./attempt.ts";
import { Engine, type Takers } from "./engine.ts";
import { type ConsumeOptions, resolveConsume, type ResolvedConsume } from "./options.ts";
import { Worker, type WorkerParts, type WorkSource } from "./worker.ts";

/** The workers of one `consume`, made when they are first needed. */
class Crew implements Takers, WorkSource {
  readonly #engine: Engine;
  readonly #options: ResolvedConsume;
  readonly #workers: Worker[] = [];
  readonly #resting: Worker[] = [];
  readonly #parts: WorkerParts;

  constructor(engine: Engine, options: ResolvedConsume) {
    this.#engine = engine;
    this.#options = options;
    const { leases, session, settlement, window } = engine;
    this.#parts = { session, source: this, handler: options.handler, leases, settlement, window };
  }

  idle(): number {
    return this.#options.parallelism - this.busy();
  }

  busy(): number {
    return this.#workers.length - this.#resting.length;
  }

  give(attempt: Attempt, now: number): void {
    let worker = this.#resting.pop();
    if (worker === undefined) {
      worker = new Worker(this.#parts);
      this.#workers.push(worker);
    }
    worker.work(attempt, now);
  }

  *running(): Iterable<Attempt> {
    for (const { attempt, started } of this.#workers) if (started && attempt !== undefined) yield attempt;
  }

  take(): Attempt | undefined {
    return this.#engine.take();
  }

  handled(took: number): void {
    this.#engine.handled(took);
  }

  rest(worker: Worker): void {
    this.#resting.push(worker);
    this.#engine.rested();
  }
}

/**
 * Handles the messages of a queue until the signal aborts.
 *
 * Leases messages for up to `parallelism` handlers, acknowledges what they return from, hands back what they throw at,
 * waits for work without polling where the broker can tell, and retries storage failures that pass by themselves. On a
 * stop nothing more is leased, running handlers get `drainTimeout`, then their signal aborts and outcomes have
 * `settleTimeout`; what was not handled is handed back uncounted.
 *
 * @returns Resolves once the consumer has stopped: after the signal aborted, or the broker was closed. That is no later
 * than `drainTimeout + settleTimeout` after the stop, even if a handler ignores its signal.
 * @throws {QueueError} `CONSUMER_MISCONFIGURED` (`fields.field` names the option), before anything is leased.
 * @throws The storage's failure, once `storagePatience` is used up or at once if it is not transient; failures of
 * siblings are in its `others`. A handler's failure never ends the consumer.
 *
 * @example
 * ```ts
 * import { consume, newMemory } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new TextEncoder().encode("hello"));
 *
 * const stop = new AbortController();
 * let handled = "";
 * await consume(jobs, {
 *   handlerIsIdempotent: true,
 *   handler: (delivery) => {
 *     handled = new TextDecoder().decode(delivery.message.payload);
 *     stop.abort();
 *   },
 *   signal: stop.signal,
 * });
 * if (handled !== "hello") throw new Error("It was handled");
 * ```
 */
export async function consume(broker: Broker, options: ConsumeOptions): Promise<void> {
  const resolved = resolveConsume(broker, options);
  const { ackedWindow, describe } = resolved;
  const engine = new Engine(broker, resolved, (engine) => new Crew(engine, resolved), ackedWindow, describe);
  await engine.run();
  const failure = engine.session.failure();
  if (failure !== undefined) throw failure.error;
}
