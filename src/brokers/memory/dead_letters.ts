/**
 * The dead letters.
 *
 * @module
 */

import type { DeadEntry } from "./entry.ts";
import { IdIndex } from "./id_index.ts";
import type { PayloadSlabs } from "./payload_slabs.ts";
import { SortedQueue } from "./sorted_queue.ts";

function failedBefore(a: DeadEntry, b: DeadEntry): boolean {
  return a.failedAt === b.failedAt ? a.id < b.id : a.failedAt < b.failedAt;
}

/** Dead letters in id order and, where a retention asks for it, by the instant of their failure. */
export class DeadLetters {
  readonly #slabs: PayloadSlabs;
  readonly #byId: IdIndex<DeadEntry> = new IdIndex<DeadEntry>();
  readonly #byFailure: SortedQueue<DeadEntry> | undefined;

  /** An empty store; without a retention it keeps no order of failure. */
  constructor(slabs: PayloadSlabs, retention: number) {
    this.#slabs = slabs;
    if (retention > 0) this.#byFailure = new SortedQueue<DeadEntry>(failedBefore);
  }

  /** How many there are. */
  get size(): number {
    return this.#byId.size;
  }

  /** Adds one. */
  add(dead: DeadEntry): void {
    this.#byId.add(dead);
    const queue = this.#byFailure;
    if (queue === undefined) return;
    if (queue.size > 2 * this.#byId.size + 64) queue.filter((entry) => entry.chunk !== undefined);
    queue.push(dead);
  }

  /** The one of an id. */
  find(id: string): DeadEntry | undefined {
    return typeof id === "string" ? this.#byId.find(id) : undefined;
  }

  /** Takes one out; its payload stays stored, for whoever replays it. */
  take(dead: DeadEntry): void {
    this.#byId.remove(dead);
  }

  /** Deletes one for good. */
  delete(dead: DeadEntry): void {
    this.#byId.remove(dead);
    this.#slabs.free(dead.payload);
  }

  /** Up to `max` behind an id that `wanted` approves of, in id order. One pass over those passed over. */
  page(after: string, max: number, wanted: (dead: DeadEntry) => boolean = () => true): DeadEntry[] {
    const page: DeadEntry[] = [];
    for (const dead of this.#byId.from(after)) {
      if (!wanted(dead)) continue;
      page.push(dead);
      if (page.length === max) break;
    }
    return page;
  }

  /** Deletes up to `max` of those that failed before an instant, the earliest failures first; returns how many. */
  deleteFailedBefore(instant: number, max: number): number {
    let deleted = 0;
    while (deleted < max) {
      const first = this.#byFailure?.first();
      if (first === undefined || first.failedAt >= instant) break;
      this.#byFailure!.shift();
      if (first.chunk === undefined) continue;
      this.delete(first);
      deleted++;
    }
    return deleted;
  }

  /** Drops everything. */
  clear(): void {
    this.#byId.clear();
    this.#byFailure?.clear();
  }
}
