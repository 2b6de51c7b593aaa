/**
 * A clock that stands still until a test moves it.
 *
 * @module
 */

import type { Clock } from "../core/clock.ts";

interface Timer {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
}

/**
 * A {@linkcode Clock} for tests: leases, delays and waits take place when {@linkcode ManualClock.advance} says so.
 *
 * @example A lease lapses without anybody waiting
 * ```ts
 * import { newMemory } from "jsr:@x/queue";
 * import { ManualClock } from "jsr:@x/queue/testing";
 *
 * const clock = new ManualClock();
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 }, clock });
 * await jobs.publish(new Uint8Array());
 * await jobs.receive(1);
 * await clock.advance(30_000);
 * const [again] = await jobs.receive(1);
 * if (again?.deliveries !== 2) throw new Error("The lease lapsed");
 * ```
 */
export class ManualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  /** Starts at an instant in ms since 1970, by default 2026-01-01. */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  /** The instant it stands at, in ms since 1970. */
  now(): number {
    return this.#now;
  }

  /** Calls back once the clock was moved `delay` ms ahead; a delay of 0 or less at the next move. */
  setTimer(delay: number, callback: () => void): () => void {
    const timer: Timer = { due: this.#now + Math.max(0, delay), order: this.#order++, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How many timers are set: 0 when nothing waits on this clock. */
  get timers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, in ms since 1970; `undefined` when none is set. */
  get nextTimer(): number | undefined {
    let next: number | undefined;
    for (const { due } of this.#timers) if (next === undefined || due < next) next = due;
    return next;
  }

  /**
   * Moves the clock, stopping at every timer on the way in its order, and lets what was woken run (real I/O included)
   * before it goes on.
   *
   * @param by In ms; 0 only lets things run.
   */
  async advance(by: number): Promise<void> {
    const target = this.#now + by;
    await settle();
    for (let timer = this.#due(target); timer !== undefined; timer = this.#due(target)) {
      this.#now = Math.max(this.#now, timer.due);
      this.#timers.delete(timer);
      timer.callback();
      await settle();
    }
    this.#now = target;
    await settle();
  }

  /** Sets the clock to any instant, back too, as a stepped system clock does. Timers do not fire. */
  set(instant: number): void {
    this.#now = instant;
  }

  #due(target: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due > target) continue;
      if (first === undefined || timer.due < first.due || (timer.due === first.due && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }
}

/** Lets promise reactions and a few turns of real I/O run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise<void>((resolve) => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => {
        channel.port1.close();
        channel.port2.close();
        resolve();
      };
      channel.port2.postMessage(0);
    });
  }
}
