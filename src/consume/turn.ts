/**
 * Sharing the event loop with the rest of the process.
 *
 * @module
 */

const longestStretch = 10;
const mostMessages = 8_192;

/**
 * Tells when the engine has kept the event loop for long enough: over a broker that answers within promise reactions
 * nothing else would ever run while there is work, the stop's own timer included.
 */
export class Stretch {
  #since: number;
  #messages = 0;

  constructor(now: number) {
    this.#since = now;
  }

  /** Counts what was received. */
  add(messages: number): void {
    this.#messages += messages;
  }

  /** Whether it is time to let others run. */
  isOver(now: number): boolean {
    return this.#messages >= mostMessages || now - this.#since >= longestStretch || now < this.#since;
  }

  /** The engine waited for something, so others have run. */
  restart(now: number): void {
    this.#since = now;
    this.#messages = 0;
  }
}
