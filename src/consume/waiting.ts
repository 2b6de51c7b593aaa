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
  /** From `#head` to `#tail`; the array stays as long as it once was, so that nothing grows anew with every batch. */
  readonly #attempts: (Attempt | undefined)[] = [];
  #head = 0;
  #tail = 0;
  #batched = 0;

  /** How many wait. */
  get length(): number {
    return this.#tail - this.#head;
  }

  /** How many of them were leased ahead. */
  get ahead(): number {
    return this.length - this.#batched;
  }

  /** Adds one at the end, as leased ahead. */
  push(attempt: Attempt): void {
    this.#attempts[this.#tail++] = attempt;
  }

  /** Says that the first `count` of those leased ahead belong to workers' batches. */
  assign(count: number): void {
    this.#batched = Math.min(this.length, this.#batched + count);
  }

  /** Takes the next one; a worker that comes to what was leased ahead makes a batch of it. */
  take(batchSize: number): Attempt | undefined {
    if (this.#head === this.#tail) return undefined;
    if (this.#batched === 0) this.assign(batchSize);
    this.#batched--;
    const attempt = this.#attempts[this.#head]!;
    this.#attempts[this.#head++] = undefined;
    if (this.#head === this.#tail) this.#head = this.#tail = 0;
    else if (this.#head > 4_096) this.#moveToFront();
    return attempt;
  }

  /** Visits all in order, telling which were leased ahead. */
  forEach(visit: (attempt: Attempt, ahead: boolean) => void): void {
    const firstAhead = this.#head + this.#batched;
    for (let index = this.#head; index < this.#tail; index++) {
      visit(this.#attempts[index]!, index >= firstAhead);
    }
  }

  /** Takes out those that were leased ahead and match. */
  removeAhead(matches: (attempt: Attempt) => boolean): Attempt[] {
    return this.#remove(this.#head + this.#batched, this.#tail, matches);
  }

  /** Takes out those of workers' batches that match. */
  removeBatched(matches: (attempt: Attempt) => boolean): Attempt[] {
    const removed = this.#remove(this.#head, this.#head + this.#batched, matches);
    this.#batched -= removed.length;
    return removed;
  }

  #moveToFront(): void {
    this.#attempts.copyWithin(0, this.#head, this.#tail);
    this.#attempts.fill(undefined, this.length, this.#tail);
    this.#tail -= this.#head;
    this.#head = 0;
  }

  #remove(from: number, to: number, matches: (attempt: Attempt) => boolean): Attempt[] {
    const removed: Attempt[] = [];
    let kept = from;
    for (let index = from; index < to; index++) {
      const attempt = this.#attempts[index]!;
      if (matches(attempt)) removed.push(attempt);
      else this.#attempts[kept++] = attempt;
    }
    this.#attempts.copyWithin(kept, to, this.#tail);
    this.#attempts.fill(undefined, this.#tail - removed.length, this.#tail);
    this.#tail -= removed.length;
    return removed;
  }
}
