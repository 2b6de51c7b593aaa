/**
 * Decides in which order waiting calls go on.
 *
 * @module
 */

import type { Random } from "./random.ts";

/** Promise reactions that are let run before the next decision: more than any chain of them in the broker. */
const reactions = 60;

/** Holds what waits for the disk or for its turn, and lets one go on at a time, whichever the seed says. */
export class Scheduler {
  readonly #random: Random;
  readonly #parked: (() => void)[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  /** Waits for its turn. */
  park(): Promise<void> {
    return new Promise((resolve) => this.#parked.push(resolve));
  }

  /** Lets calls go on, one after another, until all of them have settled. */
  async settle(calls: readonly Promise<unknown>[]): Promise<void> {
    let settled = 0;
    for (const call of calls) call.then(() => settled++, () => settled++);
    await quiet();
    while (settled < calls.length) {
      if (this.#parked.length === 0) throw new Error("A call waits for nothing: it would wait for ever");
      this.#parked.splice(this.#random.below(this.#parked.length), 1)[0]!();
      await quiet();
    }
  }

  /** Lets everything that waits go on, whatever it was. */
  async drain(): Promise<void> {
    await quiet();
    while (this.#parked.length > 0) {
      this.#parked.splice(this.#random.below(this.#parked.length), 1)[0]!();
      await quiet();
    }
  }
}

async function quiet(): Promise<void> {
  for (let reaction = 0; reaction < reactions; reaction++) await undefined;
}
