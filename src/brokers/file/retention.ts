/**
 * Retention: removes dead letters that were kept for as long as the policy says.
 *
 * @module
 */

import type { DeadEntry, DeadStore } from "./dead_store.ts";
import type { FileOperations } from "./operations.ts";
import { Slices } from "./slices.ts";

/** The least time between two sweeps, in ms on the broker's clock. */
const sweepInterval = 60_000;

/** The most dead letters that one receive removes. */
const removedPerReceive = 100;

/** Sweeps the dead letters of one directory. */
export class Retention {
  readonly #slices: Slices;
  readonly #dead: DeadStore;
  readonly #retention: number;
  #lastSweep: number | undefined;
  #expired: DeadEntry[] = [];

  constructor(operations: FileOperations, dead: DeadStore, retention: number) {
    this.#slices = Slices.of(operations);
    this.#dead = dead;
    this.#retention = retention;
  }

  /** Looks for expired letters at most once a minute, and removes a bounded number of those found. */
  async sweep(now: number): Promise<void> {
    if (this.#retention === 0) return;
    if (this.#expired.length === 0 && this.#isDue(now)) {
      this.#lastSweep = now;
      this.#expired = await this.#find(now);
    }
    for (const entry of this.#expired.splice(0, removedPerReceive)) {
      if (this.#slices.isOver) await this.#slices.giveWay();
      this.#dead.remove(entry);
    }
  }

  #isDue(now: number): boolean {
    // A clock that stepped back must not put sweeps off until it has caught up.
    return this.#lastSweep === undefined || now < this.#lastSweep || now - this.#lastSweep >= sweepInterval;
  }

  async #find(now: number): Promise<DeadEntry[]> {
    const found: DeadEntry[] = [];
    for (const folder of this.#dead.folders()) {
      if (this.#slices.isOver) await this.#slices.giveWay();
      for (const entry of this.#dead.entriesOf(folder)) {
        if (now - entry.failedAt > this.#retention) found.push(entry);
      }
    }
    return found;
  }
}
