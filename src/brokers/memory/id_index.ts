/**
 * Items by id, in id order.
 *
 * @module
 */

/** The most items of one chunk. */
const chunkSize = 512;

/** Below so many items, removed ones included, a chunk is not worth compacting. */
const leastCompacted = 64;

/** A run of neighbours in id order; an item whose `chunk` is another one was removed and only waits for compaction. */
export interface Chunk<T> {
  items: T[];
  live: number;
  /** At most the smallest `enqueuedAt` of the live items; exactly that unless `stale`. */
  oldest: number;
  stale: boolean;
}

/** What an index holds. */
export interface Indexed<T> {
  readonly id: string;
  /** In ms. */
  readonly enqueuedAt: number;
  /** Where the index keeps it; `undefined` outside of one. */
  chunk: Chunk<T> | undefined;
}

/**
 * A sorted list of chunks. Ids are minted in order, so adding is an append and O(1); removing is O(1) too, amortised: it
 * only marks the item, and a chunk is compacted once three quarters of it are gone, which bounds what the marks hold.
 * Finding, and adding out of order, cost O(log n).
 */
export class IdIndex<T extends Indexed<T>> {
  #chunks: Chunk<T>[] = [];
  #size = 0;

  /** How many items it holds. */
  get size(): number {
    return this.#size;
  }

  /** How many places it keeps, those of removed items included. */
  get places(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.items.length, 0);
  }

  /** Adds an item whose id is not in the index. */
  add(item: T): void {
    const last = this.#chunks.at(-1)?.items.at(-1);
    if (last === undefined || item.id > last.id) return this.append(item);
    this.#insert(item);
    this.#size++;
  }

  /** Adds an item whose id is known to be greater than any added since the last `clear`; compares nothing. */
  append(item: T): void {
    let chunk = this.#chunks.at(-1);
    if (chunk === undefined || chunk.items.length >= chunkSize) {
      chunk = { items: [], live: 0, oldest: Infinity, stale: false };
      this.#chunks.push(chunk);
    }
    chunk.items.push(item);
    admit(chunk, item);
    this.#size++;
  }

  /** Removes an item that is in the index. */
  remove(item: T): void {
    const chunk = item.chunk!;
    item.chunk = undefined;
    this.#size--;
    chunk.live--;
    if (item.enqueuedAt === chunk.oldest) chunk.stale = true;
    if (chunk.live === 0) this.#drop(chunk);
    else if (chunk.live * 4 < chunk.items.length && chunk.items.length >= leastCompacted) compact(chunk);
  }

  /** The item of an id. */
  find(id: string): T | undefined {
    const item = this.next(id, true);
    return item?.id === id ? item : undefined;
  }

  /** The first item behind an id, or at it with `inclusive`; the id need not be there. */
  next(after: string, inclusive = false): T | undefined {
    for (const item of this.from(after, inclusive)) return item;
    return undefined;
  }

  /** All items behind an id, in id order. The index must not change meanwhile. */
  *from(after: string, inclusive = false): Generator<T, void, undefined> {
    let at = Math.max(0, this.#locate(after));
    let place = at < this.#chunks.length ? lowerBound(this.#chunks[at]!.items, after) : 0;
    for (; at < this.#chunks.length; at++, place = 0) {
      const chunk = this.#chunks[at]!;
      for (; place < chunk.items.length; place++) {
        const item = chunk.items[place]!;
        if (item.chunk === chunk && (inclusive || item.id !== after)) yield item;
      }
    }
  }

  /** The smallest `enqueuedAt` of all items. Costs a look at each chunk (of 512), and a pass over those that changed. */
  oldest(): number | undefined {
    let oldest: number | undefined;
    for (const chunk of this.#chunks) {
      if (chunk.live === 0) continue;
      if (chunk.stale) measure(chunk);
      if (oldest === undefined || chunk.oldest < oldest) oldest = chunk.oldest;
    }
    return oldest;
  }

  /** Drops everything. */
  clear(): void {
    this.#chunks = [];
    this.#size = 0;
  }

  #insert(item: T): void {
    const at = Math.max(0, this.#locate(item.id));
    let chunk = this.#chunks[at]!;
    if (chunk.items.length >= chunkSize) chunk = this.#makeRoom(at, item.id);
    const place = lowerBound(chunk.items, item.id);
    // An item that comes back (a replay) may find itself where it was removed.
    chunk.items.splice(place, chunk.items[place] === item ? 1 : 0, item);
    admit(chunk, item);
  }

  /** Compacts a full chunk, splits it where that was not enough, and tells which half an id belongs to. */
  #makeRoom(at: number, id: string): Chunk<T> {
    const chunk = this.#chunks[at]!;
    compact(chunk);
    if (chunk.items.length < chunkSize) return chunk;
    const upper: Chunk<T> = { items: chunk.items.splice(chunkSize / 2), live: 0, oldest: Infinity, stale: false };
    chunk.live = chunk.items.length;
    measure(chunk);
    for (const item of upper.items) admit(upper, item);
    this.#chunks.splice(at + 1, 0, upper);
    return id < upper.items[0]!.id ? chunk : upper;
  }

  #drop(chunk: Chunk<T>): void {
    const tail = this.#chunks.at(-1) === chunk;
    // The last chunk is still being filled: an empty queue that is published to again needs no new one.
    if (tail && chunk.items.length < leastCompacted) return;
    if (this.#chunks[0] === chunk) this.#chunks.shift();
    else this.#chunks.splice(this.#locate(chunk.items[0]!.id), 1);
  }

  /** The last chunk that begins at or before an id; -1 when all begin behind it. */
  #locate(id: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#chunks[middle]!.items[0]!.id <= id) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

function admit<T extends Indexed<T>>(chunk: Chunk<T>, item: T): void {
  item.chunk = chunk;
  chunk.live++;
  if (item.enqueuedAt < chunk.oldest) chunk.oldest = item.enqueuedAt;
}

function compact<T extends Indexed<T>>(chunk: Chunk<T>): void {
  chunk.items = chunk.items.filter((item) => item.chunk === chunk);
}

function measure<T extends Indexed<T>>(chunk: Chunk<T>): void {
  let oldest = Infinity;
  for (const item of chunk.items) if (item.chunk === chunk && item.enqueuedAt < oldest) oldest = item.enqueuedAt;
  chunk.oldest = oldest;
  chunk.stale = false;
}

/** The first place whose id is not before the given one. */
function lowerBound<T extends Indexed<T>>(items: readonly T[], id: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (items[middle]!.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}
