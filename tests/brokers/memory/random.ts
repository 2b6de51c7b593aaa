/**
 * Randomness that a seed repeats.
 *
 * @module
 */

/** A generator of numbers in [0, 1) (mulberry32 by Tommy Ettinger, public domain). */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ this.#state >>> 15, this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 to `below - 1`. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** True once in `n`. */
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }

  pick<T>(items: readonly T[]): T | undefined {
    return items[this.below(items.length)];
  }
}

/** Runs a body with each of the seeds and one that nobody has tried yet; says which seed failed. */
export async function withSeeds(seeds: readonly number[], body: (seed: number) => void | Promise<void>): Promise<void> {
  for (const seed of [...seeds, Math.floor(Math.random() * 2 ** 32)]) {
    try {
      await body(seed);
    } catch (error) {
      throw new Error(`Failed with seed ${seed}: add it to the list`, { cause: error });
    }
  }
}
