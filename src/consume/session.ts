/**
 * What all roles of one running consumer share: its collaborators, whether it stops, and why.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { CallOptions } from "../core/call.ts";
import type { Clock } from "../core/clock.ts";
import { hasCode, QueueError } from "../core/error.ts";
import { Reporter, type StoppedEvent } from "./events.ts";
import type { ResolvedIntake } from "./options.ts";
import { isTransient, type StoragePatience } from "./storage_patience.ts";

/** Retries of outcomes are not spaced wider than this while a stop's deadline runs, in ms. */
const longestPauseWhileStopping = 500;

/** What to do about a failed call, beside what only its caller knows. */
export type FailureVerdict = "closed" | "final" | { readonly retryIn: number };

/** One run of `consume` or `deliveries`. */
export class Session {
  readonly broker: Broker;
  readonly options: ResolvedIntake;
  readonly clock: Clock;
  readonly reporter: Reporter;
  /** What every call to the broker gets: a signal that aborts at the stop's last deadline, never at the stop itself. */
  readonly calls: CallOptions;
  /** Nothing more is leased or started. */
  stopping = false;
  /** The consumer has resolved or is about to: nothing more is sent or told. */
  ended = false;
  /** Why it stops. */
  why: StoppedEvent["why"] = "signal";
  /** What handlers' signals abort with when the drain is over. */
  reason: unknown;
  /** Called once, when the stop begins. */
  onStop: () => void = () => {};
  #failures: unknown[] = [];
  readonly #deadline = new AbortController();
  readonly #pauses = new Set<() => void>();

  constructor(broker: Broker, options: ResolvedIntake) {
    this.broker = broker;
    this.options = options;
    this.clock = options.clock;
    this.reporter = new Reporter(options.onEvent);
    this.calls = { signal: this.#deadline.signal };
  }

  /** Begins to stop, unless it does already. */
  stop(why: StoppedEvent["why"], reason: unknown): void {
    if (this.stopping) return;
    this.stopping = true;
    this.why = why;
    this.reason = reason;
    this.#wakeAll();
    this.onStop();
  }

  /** Ends the consumer with a failure. Seen after a caller's stop it is read as that stop. */
  fail(error: unknown): void {
    if (this.ended || (this.stopping && this.why !== "failure")) return;
    if (!this.#failures.includes(error)) this.#failures.push(error);
    this.stop("failure", error);
  }

  /** The failure to reject with, the others gathered on it; `undefined` when there was none. */
  failure(): { readonly error: unknown } | undefined {
    if (this.#failures.length === 0) return undefined;
    const [error, ...others] = this.#failures;
    if (others.length > 0 && typeof error === "object" && error !== null && Object.isExtensible(error)) {
      (error as { others?: readonly unknown[] }).others = others;
    }
    return { error };
  }

  /**
   * Judges a failed call: a closed broker stops the consumer without an error, a failure that passes by itself is
   * waited out, anything else is final. Reports what is a fault of the storage.
   */
  judge(operation: Operation, error: unknown, patience: StoragePatience): FailureVerdict {
    if (hasCode(error, "QUEUE_CLOSED")) {
      this.stop("closed", error);
      return "closed";
    }
    const retryIn = isTransient(error) ? patience.afterFailure(this.clock.now()) : undefined;
    this.reporter.tell({ kind: "storageFailure", operation, error, ...(retryIn === undefined ? {} : { retryIn }) });
    return retryIn === undefined ? "final" : { retryIn };
  }

  /** Waits before a retry. The begin of a stop cuts it short, since little time is left then; so does the end. */
  pause(delay: number): Promise<void> {
    if (this.ended) return Promise.resolve();
    return new Promise((resolve) => {
      const finish = () => {
        cancel();
        this.#pauses.delete(finish);
        resolve();
      };
      const cancel = this.clock.setTimer(this.stopping ? Math.min(delay, longestPauseWhileStopping) : delay, finish);
      this.#pauses.add(finish);
    });
  }

  /** Nothing more happens; calls that are still under way are aborted. */
  end(callsUnderWay: boolean): void {
    this.ended = true;
    this.#wakeAll();
    if (callsUnderWay) this.#deadline.abort(cutByDeadline());
  }

  #wakeAll(): void {
    for (const finish of [...this.#pauses]) finish();
  }
}

type Operation = Extract<Parameters<Reporter["tell"]>[0], { kind: "storageFailure" }>["operation"];

/** What a call that outlives the stop's last deadline fails with. */
export function cutByDeadline(): QueueError {
  return new QueueError("QUEUE_BACKEND_FAILED", 'Cannot settle: the storage took longer than "settleTimeout" allows');
}
