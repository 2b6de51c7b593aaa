/**
 * Random numbers that a seed decides, for a run that can be repeated.
 *
 * @module
 */

/** A stream of numbers from a seed (mulberry32, by Tommy Ettinger, public domain). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  /** One of some values. */
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }

  /** Whether something of this chance comes about. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }
}

/** Makes the platform's random sources follow a seed until the returned function is called. */
export function seedPlatform(random: Random): () => void {
  const originalRandom = Math.random;
  const originalValues = crypto.getRandomValues;
  Math.random = () => random.next();
  crypto.getRandomValues = ((array: Uint8Array) => {
    for (let index = 0; index < array.length; index++) array[index] = random.below(256);
    return array;
  }) as typeof crypto.getRandomValues;
  return () => {
    Math.random = originalRandom;
    crypto.getRandomValues = originalValues;
  };
}
