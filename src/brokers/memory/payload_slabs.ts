/**
 * Where the broker keeps its own copies of payloads.
 *
 * @module
 */

/** The size of a slab in bytes. */
const slabSize = 65_536;

/** A larger payload has a buffer of its own. */
const largestShared = 4_096;

/** Payloads side by side, or a large one that is not `shared`. */
export interface Slab {
  readonly bytes: Uint8Array;
  readonly shared: boolean;
  used: number;
  /** Bytes of payloads that are still stored, padding included. */
  live: number;
  /** Everything ever put into it since it was last emptied or compacted, in the order of offsets. */
  residents: StoredPayload[];
}

/** A stored payload: `length` bytes at `offset` of its slab. It moves when the slab is given up. */
export interface StoredPayload {
  /** Absent until it is stored, and again once it is freed. */
  slab: Slab | undefined;
  offset: number;
  readonly length: number;
}

/** What a payload takes up: its length in whole words of 8 bytes, so that typed views can be laid on a copy. */
export function paddedLength(length: number): number {
  return (length + 7) & ~7;
}

/** A copy with a buffer of its own. */
export function copyPayload(stored: StoredPayload): Uint8Array {
  return stored.slab!.bytes.slice(stored.offset, stored.offset + stored.length);
}

/**
 * Stores small payloads side by side in slabs of 64 KiB, since an ArrayBuffer a message is slow to make on V8. A slab
 * that is three quarters free is given up, and what still lives in it moves; so slabs hold at most four times the bytes
 * of the payloads in them, plus the one that is being filled, and no old message pins its neighbours' memory.
 */
export class PayloadSlabs {
  #current: Slab | undefined;
  #spare: Slab | undefined;
  #slabs = 0;

  /** How many slabs exist. */
  get count(): number {
    return this.#slabs;
  }

  /** Copies a payload in. */
  store(stored: StoredPayload, payload: Uint8Array): void {
    if (stored.length <= largestShared && stored.length > 0) return this.#place(stored, payload);
    stored.slab = { bytes: new Uint8Array(payload), shared: false, used: stored.length, live: 0, residents: [] };
  }

  /** Forgets a payload and keeps none of its bytes, whoever still refers to it. Freeing twice does nothing. */
  free(stored: StoredPayload): void {
    const slab = stored.slab;
    stored.slab = undefined;
    if (slab === undefined || !slab.shared) return;
    slab.live -= paddedLength(stored.length);
    if (slab === this.#current) {
      if (slab.live === 0 && slab.used * 2 > slabSize) empty(slab);
    } else if (slab.live * 4 < slabSize) this.#giveUp(slab);
  }

  /** Drops everything. */
  clear(): void {
    this.#current = undefined;
    this.#spare = undefined;
    this.#slabs = 0;
  }

  #place(stored: StoredPayload, payload: Uint8Array): void {
    const size = paddedLength(stored.length);
    let slab = this.#current;
    if (slab === undefined || slab.used + size > slabSize) slab = this.#roomFor(size);
    slab.bytes.set(payload, slab.used);
    stored.offset = slab.used;
    stored.slab = slab;
    slab.used += size;
    slab.live += size;
    slab.residents.push(stored);
  }

  #roomFor(size: number): Slab {
    const slab = this.#current;
    if (slab !== undefined && slab.live * 4 < slabSize) {
      compact(slab);
      if (slab.used + size <= slabSize) return slab;
    }
    const next = this.#spare ?? this.#make();
    this.#spare = undefined;
    return this.#current = next;
  }

  #giveUp(slab: Slab): void {
    const residents = slab.residents;
    slab.residents = [];
    for (const stored of residents) {
      if (stored.slab !== slab) continue;
      this.#place(stored, slab.bytes.subarray(stored.offset, stored.offset + stored.length));
    }
    empty(slab);
    if (this.#spare === undefined) this.#spare = slab;
    else this.#slabs--;
  }

  #make(): Slab {
    this.#slabs++;
    return { bytes: new Uint8Array(slabSize), shared: true, used: 0, live: 0, residents: [] };
  }
}

function empty(slab: Slab): void {
  slab.used = 0;
  slab.live = 0;
  slab.residents = [];
}

/** Moves what still lives in a slab to its front. */
function compact(slab: Slab): void {
  const residents = slab.residents.filter((stored) => stored.slab === slab);
  slab.used = 0;
  for (const stored of residents) {
    slab.bytes.copyWithin(slab.used, stored.offset, stored.offset + stored.length);
    stored.offset = slab.used;
    slab.used += paddedLength(stored.length);
  }
  slab.residents = residents;
}
