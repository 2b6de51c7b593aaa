/**
 * The dead letters.
 *
 * @module
 */

import type { RecordedFailure } from "../../core/mod.ts";
import { type Death, deathOf, type Entry } from "./entry.ts";
import { IdIndex } from "./id_index.ts";
import type { PayloadSlabs } from "./payload_slabs.ts";
import { SortedQueue } from "./sorted_queue.ts";

function failedBefore(a: Death, b: Death): boolean {
  return a.failedAt === b.failedAt ? a.entry.id < b.entry.id : a.failedAt < b.failedAt;
}

/** Dead letters in id order and, where a retention asks for it, by the instant of their failure. */
export class DeadLetters {
  readonly #slabs: PayloadSlabs;
  readonly #byId: IdIndex<Entry> = new IdIndex<Entry>();
  readonly #byFailure: SortedQueue<Death> | undefined;

  /** An empty store; without a retention it keeps no order of failure. */
  constructor(slabs: PayloadSlabs, retention: number) {
    this.#slabs = slabs;
    if (retention > 0) this.#byFailure = new SortedQueue<Death>(failedBefore);
  }

  /** How many there are. */
  get size(): number {
    return this.#byId.size;
  }

  /** Adds one: a message that is in no other index, and how it died. */
  add(dead: Entry, failure: RecordedFailure, failedAt: number): void {
    const { reason, cause, code, trail } = failure;
    const death: Death = { entry: dead, failedAt, reason, cause, code, trail };
    dead.failure = death;
    this.#byId.add(dead);
    const queue = this.#byFailure;
    if (queue === undefined) return;
    if (queue.size > 2 * this.#byId.size + 64) queue.filter((death) => deathOf(death.entry) === death);
    queue.push(death);
  }

  /** The one of an id. */
  find(id: string): Entry | undefined {
    return typeof id === "string" ? this.#byId.find(id) : undefined;
  }

  /** Takes one out; its payload stays stored, for whoever replays it. */
  take(dead: Entry): void {
    this.#byId.remove(dead);
    dead.failure = undefined;
  }

  /** Deletes one for good. */
  delete(dead: Entry): void {
    this.take(dead);
    this.#slabs.free(dead);
  }

  /** Up to `max` behind an id that `wanted` approves of, in id order. One pass over those passed over. */
  page(after: string, max: number, wanted: (dead: Entry) => boolean = () => true): Entry[] {
    const page: Entry[] = [];
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
      if (deathOf(first.entry) !== first) continue;
      this.delete(first.entry);
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
