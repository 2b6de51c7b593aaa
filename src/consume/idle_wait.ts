/**
 * Waiting for something to happen, whichever of several things is first.
 *
 * @module
 */

import type { Clock } from "../core/clock.ts";

/** One wait at a time that a signal, a timer or a call ends. Nothing of it is left behind. */
export class IdleWait {
  readonly #clock: Clock;
  #finish: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves at the first of `end()`, the signal and the delay.
   *
   * @param delay In ms; `Infinity` sets no timer.
   */
  start(delay: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      let cancel = () => {};
      const finish = () => {
        if (this.#finish !== finish) return;
        this.#finish = undefined;
        cancel();
        signal?.removeEventListener("abort", finish);
        resolve();
      };
      this.#finish = finish;
      if (delay !== Infinity) cancel = this.#clock.setTimer(delay, finish);
      signal?.addEventListener("abort", finish, { once: true });
    });
  }

  /** Ends the wait, if there is one. */
  end(): void {
    this.#finish?.();
  }
}
