/**
 * Where the broker keeps its own copies of payloads.
 *
 * @module
 */

/** The size of a slab in bytes. */
const slabSize = 65_536;

/** A larger payload has a buffer of its own. */
const largestShared = 4_096;

/** Payloads side by side. */
export interface Slab {
  readonly bytes: Uint8Array;
  used: number;
  /** Bytes of payloads that are still stored, padding included. */
  live: number;
  /** Everything ever put into it since it was last emptied or compacted, in the order of offsets. */
  residents: StoredPayload[];
}

/** A payload: `length` bytes at `offset` of `bytes`. A stored one moves when its slab is given up. */
export interface StoredPayload {
  /** Absent once it was freed. */
  bytes: Uint8Array | undefined;
  offset: number;
  readonly length: number;
  /** The slab it lies in; absent for a payload with a buffer of its own and for one that was freed. */
  slab: Slab | undefined;
}

/** What a payload takes up: its length in whole words of 8 bytes, so that typed views can be laid on a copy. */
export function paddedLength(length: number): number {
  return (length + 7) & ~7;
}

/** A copy with a buffer of its own. */
export function copyPayload(stored: StoredPayload): Uint8Array {
  return stored.bytes!.slice(stored.offset, stored.offset + stored.length);
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

  /** Copies in what a payload's `bytes` are, and makes it own the copy. */
  store(payload: StoredPayload): void {
    if (payload.length > largestShared || payload.length === 0) payload.bytes = new Uint8Array(payload.bytes!);
    else this.#place(payload);
  }

  /** Forgets a payload and keeps none of its bytes, whoever still refers to it. Freeing twice does nothing. */
  free(stored: StoredPayload): void {
    const slab = stored.slab;
    stored.bytes = undefined;
    if (slab === undefined) return;
    stored.slab = undefined;
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

  /** Copies what a stored payload's `bytes` and `offset` point at into the current slab, and points it there. */
  #place(stored: StoredPayload): void {
    const size = paddedLength(stored.length);
    let slab = this.#current;
    if (slab === undefined || slab.used + size > slabSize) slab = this.#roomFor(size);
    const bytes = stored.bytes!;
    const source = bytes.length === stored.length
      ? bytes
      : bytes.subarray(stored.offset, stored.offset + stored.length);
    slab.bytes.set(source, slab.used);
    stored.bytes = slab.bytes;
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
    for (const stored of residents) if (stored.slab === slab) this.#place(stored);
    empty(slab);
    if (this.#spare === undefined) this.#spare = slab;
    else this.#slabs--;
  }

  #make(): Slab {
    this.#slabs++;
    return { bytes: new Uint8Array(slabSize), used: 0, live: 0, residents: [] };
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
