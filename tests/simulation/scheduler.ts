/**
 * Decides in which order waiting calls go on.
 *
 * @module
 */

import type { Random } from "./random.ts";

/** Promise reactions that are let run before the next decision: more than any chain of them in the broker. */
const reactions = 60;

/** For how many times as many a call may go on without waiting for the disk. */
const patience = 100;

/** Holds what waits for the disk or for its turn, and lets one go on at a time, whichever the seed says. */
export class Scheduler {
  readonly #random: Random;
  #parked: (() => void)[] = [];
  #abandoned = false;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Waits for its turn. */
  park(): Promise<void> {
    return new Promise((resolve) => this.#parked.push(resolve));
  }

  /** Lets nothing go on that waits: whoever waited is dead. Nobody is waited for until the next start. */
  abandon(): void {
    this.#parked = [];
    this.#abandoned = true;
  }

  /** Begins anew, with nobody waiting. */
  start(): void {
    this.#parked = [];
    this.#abandoned = false;
  }

  /** Lets calls go on, one after another, until all of them have settled or were abandoned. */
  async settle(calls: readonly Promise<unknown>[]): Promise<void> {
    let settled = 0;
    for (const call of calls) call.then(() => settled++, () => settled++);
    await quiet();
    while (settled < calls.length && !this.#abandoned) {
      for (let round = 0; this.#parked.length === 0 && settled < calls.length; round++) {
        if (round === patience) throw new Error("A call waits for nothing: it would wait for ever");
        await quiet();
      }
      if (settled === calls.length || this.#abandoned) return;
      this.#parked.splice(this.#random.below(this.#parked.length), 1)[0]!();
      await quiet();
    }
  }
}

/** Lets promise reactions run. */
export async function quiet(): Promise<void> {
  for (let reaction = 0; reaction < reactions; reaction++) await undefined;
}
