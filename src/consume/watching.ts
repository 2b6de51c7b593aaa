/**
 * Hearing of what other processes publish, and how often to look where that is not to be had.
 *
 * @module
 */

import { type BrokerEvent, isWatcher } from "../core/capabilities/wake.ts";
import { defaultPollInterval } from "../core/limits.ts";
import type { Session } from "./session.ts";

/** The default poll while a watch is held, in ms: it only bounds what a lost event can cost. */
export const watchedPollInterval: number = 5_000;

/** Holds the broker's watch for as long as the consumer runs. */
export class Watching {
  readonly #session: Session;
  readonly #onFailure: () => void;
  #watch: AsyncDisposable | undefined;
  #works = false;

  constructor(session: Session, onFailure: () => void) {
    this.#session = session;
    this.#onFailure = onFailure;
  }

  /** Begins to watch where the broker can. */
  open(): void {
    const { broker } = this.#session;
    if (!isWatcher(broker)) return;
    this.#works = true;
    try {
      this.#watch = broker.watch({ onEvent: (event) => this.#hear(event) });
    } catch (error) {
      this.#hear({ kind: "watchFailed", error });
    }
  }

  /** How long an idle consumer waits at most, in ms. */
  get pollInterval(): number {
    return this.#session.options.pollInterval ?? (this.#works ? watchedPollInterval : defaultPollInterval);
  }

  /** Ends the watch; what goes wrong then matters to nobody. */
  async close(): Promise<void> {
    try {
      await this.#watch?.[Symbol.asyncDispose]();
    } catch {
      // It was the last use of it.
    }
  }

  #hear(event: BrokerEvent): void {
    this.#session.reporter.tell(event);
    if (event.kind !== "watchFailed" || !this.#works) return;
    this.#works = false;
    this.#onFailure();
  }
}
