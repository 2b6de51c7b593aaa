/**
 * A first-in, first-out ring that grows and shrinks with what it holds.
 *
 * @module
 */

const leastCapacity = 16;

/** A FIFO over a circular array whose capacity is a power of two. */
export class Ring<T> {
  #slots: (T | undefined)[] = [];
  #head = 0;
  #size = 0;

  /** How many items it holds. */
  get size(): number {
    return this.#size;
  }

  /** How many items it could hold without growing; tests read it to see that a drained ring gives its memory back. */
  get capacity(): number {
    return this.#slots.length;
  }

  /** The item to be taken next. */
  first(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[this.#head];
  }

  /** The item that was added last. */
  last(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[(this.#head + this.#size - 1) & (this.#slots.length - 1)];
  }

  /** Adds an item behind the others. */
  push(item: T): void {
    if (this.#size === this.#slots.length) this.#resize(Math.max(leastCapacity, this.#size * 2));
    this.#slots[(this.#head + this.#size) & (this.#slots.length - 1)] = item;
    this.#size++;
  }

  /** Takes the first item. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const item = this.#slots[this.#head];
    this.#slots[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#slots.length - 1);
    this.#size--;
    if (this.#slots.length > leastCapacity && this.#size * 4 < this.#slots.length) this.#resize(this.#slots.length / 2);
    return item;
  }

  /** Keeps only the items that `keep` approves of, in their order. */
  filter(keep: (item: T) => boolean): void {
    const kept = this.#unrolled().filter(keep);
    this.clear();
    for (const item of kept) this.push(item);
  }

  /** Drops everything. */
  clear(): void {
    this.#slots = [];
    this.#head = 0;
    this.#size = 0;
  }

  #unrolled(): T[] {
    const items = new Array<T>(this.#size);
    for (let at = 0; at < this.#size; at++) items[at] = this.#slots[(this.#head + at) & (this.#slots.length - 1)]!;
    return items;
  }

  #resize(capacity: number): void {
    const slots: (T | undefined)[] = this.#unrolled();
    while (slots.length < capacity) slots.push(undefined);
    this.#slots = slots;
    this.#head = 0;
  }
}
