/**
 * A first-in, first-out queue.
 *
 * @module
 */

/** How many items a segment holds. */
const segmentSize = 256;

interface Segment<T> {
  readonly items: (T | undefined)[];
  next: Segment<T> | undefined;
}

/** A FIFO in linked segments: nothing is ever copied as it grows, and what is drained is given back at once. */
export class Fifo<T> {
  #head: Segment<T> = newSegment<T>();
  #tail: Segment<T> = this.#head;
  /** Where the first item is, in the head. */
  #first = 0;
  /** Behind the last item, in the tail. */
  #end = 0;
  #size = 0;
  #segments = 1;
  /** One emptied segment is kept, so that a short queue that keeps moving makes none. */
  #spare: Segment<T> | undefined;

  /** How many items it holds. */
  get size(): number {
    return this.#size;
  }

  /** How many items it has room for; tests read it to see that a drained queue gives its memory back. */
  get capacity(): number {
    return (this.#segments + (this.#spare === undefined ? 0 : 1)) * segmentSize;
  }

  /** The item to be taken next. */
  first(): T | undefined {
    return this.#head.items[this.#first];
  }

  /** The item that was added last. */
  last(): T | undefined {
    return this.#size === 0 ? undefined : this.#tail.items[this.#end - 1];
  }

  /** Adds an item behind the others. */
  push(item: T): void {
    if (this.#end === segmentSize) {
      this.#tail = this.#tail.next = this.#spare ?? newSegment<T>();
      this.#spare = undefined;
      this.#segments++;
      this.#end = 0;
    }
    this.#tail.items[this.#end++] = item;
    this.#size++;
  }

  /** Takes the first item. */
  shift(): T | undefined {
    if (this.#size === 0) return undefined;
    const { items } = this.#head;
    const item = items[this.#first];
    items[this.#first++] = undefined;
    this.#size--;
    if (this.#size === 0) this.#first = this.#end = 0;
    else if (this.#first === segmentSize) this.#leaveHead();
    return item;
  }

  /** Keeps only the items that `keep` approves of, in their order. */
  filter(keep: (item: T) => boolean): void {
    for (let left = this.#size; left > 0; left--) {
      const item = this.shift()!;
      if (keep(item)) this.push(item);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#head = this.#tail = newSegment<T>();
    this.#spare = undefined;
    this.#first = this.#end = this.#size = 0;
    this.#segments = 1;
  }

  #leaveHead(): void {
    const left = this.#head;
    this.#head = left.next!;
    left.next = undefined;
    this.#spare ??= left;
    this.#segments--;
    this.#first = 0;
  }
}

function newSegment<T>(): Segment<T> {
  return { items: [], next: undefined };
}
