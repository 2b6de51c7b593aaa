/**
 * A binary heap.
 *
 * @module
 */

/** Hands out its items in the order that `isBefore` gives. */
export class Heap<T> {
  #items: T[] = [];
  readonly #isBefore: (a: T, b: T) => boolean;

  /** An empty heap. */
  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  /** How many items it holds. */
  get size(): number {
    return this.#items.length;
  }

  /** The item to be taken next. */
  first(): T | undefined {
    return this.#items[0];
  }

  /** Adds an item. */
  push(item: T): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!this.#isBefore(item, items[parent]!)) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  /** Takes the first item. */
  shift(): T | undefined {
    const first = this.#items[0];
    const last = this.#items.pop();
    if (this.#items.length > 0) this.#sink(0, last!);
    return first;
  }

  /** Keeps only the items that `keep` approves of. */
  filter(keep: (item: T) => boolean): void {
    this.#items = this.#items.filter(keep);
    for (let at = (this.#items.length >>> 1) - 1; at >= 0; at--) this.#sink(at, this.#items[at]!);
  }

  /** Drops everything. */
  clear(): void {
    this.#items = [];
  }

  #sink(from: number, item: T): void {
    const items = this.#items;
    const half = items.length >>> 1;
    let at = from;
    while (at < half) {
      let child = 2 * at + 1;
      if (child + 1 < items.length && this.#isBefore(items[child + 1]!, items[child]!)) child++;
      if (!this.#isBefore(items[child]!, item)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
