/**
 * The end of a consumer: the drain, then one deadline for all outcomes.
 *
 * @module
 */

import type { Session } from "./session.ts";

/** What a stop does at its steps. */
export interface ShutdownSteps {
  /** The drain is over: handlers that still run are told to end. */
  endDrain(): void;
  /** The last deadline has come: whatever is not done is left. */
  giveUp(): void;
}

/** The two timers of a stop. */
export class Shutdown {
  readonly #session: Session;
  readonly #steps: ShutdownSteps;
  #cancel: () => void = () => {};
  #draining = false;

  constructor(session: Session, steps: ShutdownSteps) {
    this.#session = session;
    this.#steps = steps;
  }

  /** Begins the stop: running handlers have the drain's time, if any run. */
  begin(handlersRun: boolean): void {
    const { clock, options } = this.#session;
    this.#draining = true;
    if (!handlersRun || options.drainTimeout === 0) this.#endDrain();
    else if (options.drainTimeout !== Infinity) {
      this.#cancel = clock.setTimer(options.drainTimeout, () => this.#endDrain());
    }
  }

  /** The last handler has ended: what remains of the drain is not waited for. */
  handlersEnded(): void {
    if (this.#draining) this.#endDrain();
  }

  /** Takes the timers away. */
  close(): void {
    this.#draining = false;
    this.#cancel();
  }

  #endDrain(): void {
    const { clock, options } = this.#session;
    this.#draining = false;
    this.#cancel();
    this.#cancel = clock.setTimer(options.settleTimeout, () => this.#steps.giveUp());
    this.#steps.endDrain();
  }
}
