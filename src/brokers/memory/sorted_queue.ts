/**
 * A priority queue for items that mostly come in order.
 *
 * @module
 */

import { Heap } from "./heap.ts";
import { Fifo } from "./fifo.ts";

/**
 * Hands out items in the order that `isBefore` gives. An item that comes in order costs one comparison and O(1), since
 * it goes into a FIFO; only one that comes out of order pays the O(log n) of a heap. The two are merged on taking.
 */
export class SortedQueue<T> {
  readonly #isBefore: (a: T, b: T) => boolean;
  readonly #inOrder: Fifo<T> = new Fifo<T>();
  readonly #early: Heap<T>;

  /** An empty queue. */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
    this.#early = new Heap<T>(isBefore);
  }

  /** How many items it holds. */
  get size(): number {
    return this.#inOrder.size + this.#early.size;
  }

  /** How many items it could hold without growing. */
  get capacity(): number {
    return this.#inOrder.capacity + this.#early.size;
  }

  /** Adds an item. */
  push(item: T): void {
    const last = this.#inOrder.last();
    if (last === undefined || !this.#isBefore(item, last)) this.#inOrder.push(item);
    else this.#early.push(item);
  }

  /** The item to be taken next. */
  first(): T | undefined {
    if (this.#early.size === 0) return this.#inOrder.first();
    return this.#earlyIsNext() ? this.#early.first() : this.#inOrder.first();
  }

  /** Takes the first item. */
  shift(): T | undefined {
    if (this.#early.size === 0) return this.#inOrder.shift();
    return this.#earlyIsNext() ? this.#early.shift() : this.#inOrder.shift();
  }

  /** Keeps only the items that `keep` approves of. */
  filter(keep: (item: T) => boolean): void {
    this.#inOrder.filter(keep);
    this.#early.filter(keep);
  }

  /** Drops everything. */
  clear(): void {
    this.#inOrder.clear();
    this.#early.clear();
  }

  #earlyIsNext(): boolean {
    const inOrder = this.#inOrder.first();
    return inOrder === undefined || this.#isBefore(this.#early.first()!, inOrder);
  }
}
