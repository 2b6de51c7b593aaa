/**
 * Deliveries that are leased and not started.
 *
 * @module
 */

import type { Attempt } from "./attempt.ts";

/**
 * A queue in delivery order, shared by all workers: first the batches that workers hold, behind them what was leased
 * ahead.
 */
export class Waiting {
  #attempts: Attempt[] = [];
  #head = 0;
  #batched = 0;

  /** How many wait. */
  get length(): number {
    return this.#attempts.length - this.#head;
  }

  /** How many of them were leased ahead. */
  get ahead(): number {
    return this.length - this.#batched;
  }

  /** Adds one at the end, as leased ahead. */
  push(attempt: Attempt): void {
    this.#attempts.push(attempt);
  }

  /** Says that the first `count` of those leased ahead belong to workers' batches. */
  assign(count: number): void {
    this.#batched = Math.min(this.length, this.#batched + count);
  }

  /** Takes the next one; a worker that comes to what was leased ahead makes a batch of it. */
  take(batchSize: number): Attempt | undefined {
    if (this.#head === this.#attempts.length) return undefined;
    if (this.#batched === 0) this.assign(batchSize);
    this.#batched--;
    const attempt = this.#attempts[this.#head++]!;
    if (this.#head === this.#attempts.length) {
      this.#attempts = [];
      this.#head = 0;
    } else if (this.#head > 4_096) {
      this.#attempts.splice(0, this.#head);
      this.#head = 0;
    }
    return attempt;
  }

  /** Visits all in order, telling which were leased ahead. */
  forEach(visit: (attempt: Attempt, ahead: boolean) => void): void {
    const firstAhead = this.#head + this.#batched;
    for (let index = this.#head; index < this.#attempts.length; index++) {
      visit(this.#attempts[index]!, index >= firstAhead);
    }
  }

  /** Takes out those that were leased ahead and match. */
  removeAhead(matches: (attempt: Attempt) => boolean): Attempt[] {
    return this.#remove(this.#head + this.#batched, this.#attempts.length, matches);
  }

  /** Takes out those of workers' batches that match. */
  removeBatched(matches: (attempt: Attempt) => boolean): Attempt[] {
    const removed = this.#remove(this.#head, this.#head + this.#batched, matches);
    this.#batched -= removed.length;
    return removed;
  }

  #remove(from: number, to: number, matches: (attempt: Attempt) => boolean): Attempt[] {
    const removed: Attempt[] = [];
    const kept: Attempt[] = [];
    for (const attempt of this.#attempts.slice(from, to)) (matches(attempt) ? removed : kept).push(attempt);
    if (removed.length > 0) this.#attempts.splice(from, to - from, ...kept);
    return removed;
  }
}
