/**
 * Runs one handler at a time.
 *
 * @module
 */

import type { AckedWindow } from "./acked_window.ts";
import type { Attempt } from "./attempt.ts";
import type { Handler } from "./handler.ts";
import type { Leases } from "./leases.ts";
import type { Session } from "./session.ts";
import type { Settlement } from "./settlement.ts";

/** Where a worker gets its work, and whom it tells. */
export interface WorkSource {
  /** The next delivery to handle; `undefined` when there is none, or none may be started. */
  take(): Attempt | undefined;
  /** Learns how long a handler took, in ms. */
  handled(took: number): void;
  /** The worker has nothing to do. */
  rest(worker: Worker): void;
}

/** What a worker works with. */
export interface WorkerParts {
  readonly session: Session;
  readonly source: WorkSource;
  readonly handler: Handler;
  readonly leases: Leases;
  readonly settlement: Settlement;
  readonly window: AckedWindow;
}

/** A slot for one running handler. It is made once and handles many messages, so that none needs closures of its own. */
export class Worker {
  /** The delivery that is being handled; `undefined` between two. */
  attempt: Attempt | undefined = undefined;
  /** Whether the handler has begun, as opposed to waiting for its lease's renewal. */
  started = false;
  readonly #parts: WorkerParts;
  #startedAt = 0;
  #endedAt = 0;
  readonly #returned: (value: unknown) => void;
  readonly #threw: (error: unknown) => void;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#returned = (value) => {
      const attempt = this.#finish();
      if (attempt === undefined) return;
      parts.settlement.returned(attempt, value);
      this.#goOn();
    };
    this.#threw = (error) => {
      const attempt = this.#finish();
      if (attempt === undefined) return;
      parts.settlement.threw(attempt, error);
      this.#goOn();
    };
  }

  /** Handles a delivery and whatever comes after it, until there is nothing or a handler takes its time. */
  work(first: Attempt, now: number): void {
    const { source } = this.#parts;
    this.#endedAt = now;
    for (let attempt: Attempt | undefined = first; attempt !== undefined; attempt = source.take()) {
      this.attempt = attempt;
      if (!this.#begin(attempt, now)) return;
      this.attempt = undefined;
      now = this.#endedAt;
    }
    source.rest(this);
  }

  /** Starts a delivery's turn; whether it has ended already. */
  #begin(attempt: Attempt, now: number): boolean {
    const { leases, session, settlement, window } = this.#parts;
    if (attempt.lost) return true;
    if (session.stopping || attempt.cut !== undefined) {
      settlement.release(attempt, session.stopping ? "stop" : "lease");
      return true;
    }
    if (attempt.renewal !== undefined || leases.needsRenewal(attempt, now)) {
      void this.#renewFirst(attempt);
      return false;
    }
    if (leases.isTooLate(attempt, now)) {
      settlement.release(attempt, "lease");
      return true;
    }
    if (window.holds(attempt.delivery)) {
      settlement.handledBefore(attempt);
      return true;
    }
    return this.#run(attempt, now);
  }

  async #renewFirst(attempt: Attempt): Promise<void> {
    const { leases, session } = this.#parts;
    await (attempt.renewal ?? leases.renew(attempt));
    this.work(attempt, session.clock.now());
  }

  #run(attempt: Attempt, now: number): boolean {
    const { handler, leases, session, settlement } = this.#parts;
    this.started = true;
    this.#startedAt = now;
    let result: unknown;
    let waits = false;
    let threw = false;
    try {
      result = handler(attempt.delivery, attempt);
      waits = isThenable(result);
    } catch (error) {
      result = error;
      threw = true;
    }
    if (waits) {
      const promise = result instanceof Promise ? result : Promise.resolve(result);
      promise.then(this.#returned, this.#threw);
      leases.watch(leases.dueOf(attempt));
      return false;
    }
    this.#ended(session.clock.now());
    if (threw) settlement.threw(attempt, result);
    else settlement.returned(attempt, result);
    return true;
  }

  #ended(now: number): void {
    this.started = false;
    this.#endedAt = now;
    this.#parts.leases.progress();
    this.#parts.source.handled(now - this.#startedAt);
  }

  /** A handler that took its time has ended; its attempt, unless the consumer has ended before it. */
  #finish(): Attempt | undefined {
    const { attempt } = this;
    const { session } = this.#parts;
    if (session.ended || attempt === undefined) return undefined;
    this.attempt = undefined;
    this.#ended(session.clock.now());
    return attempt;
  }

  #goOn(): void {
    const { source } = this.#parts;
    const next = source.take();
    if (next === undefined) source.rest(this);
    else this.work(next, this.#endedAt);
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value === undefined || value === null) return false;
  if (typeof value !== "object" && typeof value !== "function") return false;
  return typeof (value as { then?: unknown }).then === "function";
}
