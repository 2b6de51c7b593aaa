/**
 * The keys that `publishOnce` has reserved.
 *
 * @module
 */

import { SortedQueue } from "./sorted_queue.ts";

interface Reservation {
  readonly key: string;
  readonly end: number;
}

/** Reservations by key; those whose window ended go when a later one is made. */
export class OnceKeys {
  readonly #ends: Map<string, number> = new Map<string, number>();
  readonly #byEnd: SortedQueue<Reservation> = new SortedQueue<Reservation>((a, b) => a.end < b.end);

  /** How many keys it remembers, ended ones that nobody removed included. */
  get size(): number {
    return this.#ends.size;
  }

  /** Whether a key is reserved; at exactly the end of its window it is free. */
  isReserved(key: string, now: number): boolean {
    return (this.#ends.get(key) ?? -1) > now;
  }

  /** Reserves a free key until `end`. What ended goes first, so a key has one reservation at most. */
  reserve(key: string, end: number, now: number): void {
    this.#removeEnded(now);
    this.#ends.set(key, end);
    this.#byEnd.push({ key, end });
  }

  /** Drops everything. */
  clear(): void {
    this.#ends.clear();
    this.#byEnd.clear();
  }

  #removeEnded(now: number): void {
    for (let first = this.#byEnd.first(); first !== undefined && first.end <= now; first = this.#byEnd.first()) {
      this.#byEnd.shift();
      this.#ends.delete(first.key);
    }
  }
}
