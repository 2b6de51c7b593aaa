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

/** A stream of numbers for one part of a run, whatever the other parts draw. */
export function randomFor(seed: number, part: number): Random {
  return new Random(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(part + 1, 0x85ebca6b));
}

/** The platform's random sources while a run decides what they give. */
export interface SeededPlatform {
  /** Draws from a stream from now on; returns the one before. */
  use(random: Random): Random;
  /** Gives the platform its own sources back. */
  restore(): void;
}

/** Makes the platform's random sources follow a stream. */
export function seedPlatform(random: Random): SeededPlatform {
  const originalRandom = Math.random;
  const originalValues = crypto.getRandomValues;
  let current = random;
  Math.random = () => current.next();
  crypto.getRandomValues = ((array: Uint8Array) => {
    for (let index = 0; index < array.length; index++) array[index] = current.below(256);
    return array;
  }) as typeof crypto.getRandomValues;
  return {
    use(next) {
      const before = current;
      current = next;
      return before;
    },
    restore() {
      Math.random = originalRandom;
      crypto.getRandomValues = originalValues;
    },
  };
}
