/**
 * A clock that stands still until a test moves it.
 *
 * @module
 */

import type { Clock } from "../core/clock.ts";
import { nextTurn } from "../core/turn.ts";

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
   * Moves the clock, stopping at every timer on the way in its order, and lets what was woken run before it goes on. Real
   * I/O gets some turns of the event loop too; to be sure that some of it is over, use {@linkcode ManualClock.until}.
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

  /**
   * Lets things run, real I/O included, until the condition holds; the clock stands still meanwhile.
   *
   * @throws {Error} When it does not hold after ten thousand rounds, which take some ten seconds.
   */
  async until(condition: () => boolean): Promise<void> {
    for (let round = 0; !condition(); round++) {
      if (round === 10_000) throw new Error("Cannot go on: the condition does not come to hold while the clock stands");
      await settle();
    }
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

/** Taken when the module loads: a test may put fake timers in its place later. */
const { setTimeout: realSetTimeout, clearTimeout: realClearTimeout } = globalThis;

/** The event loop turns at least so often, and at most so often where the timer below never fires. */
const fewestTurns = 5;
const mostTurns = 1_000;

/**
 * Lets promise reactions and real I/O run: the event loop turns until a timer of the platform has fired, which leaves a
 * file operation or a message of another thread the time to come in.
 */
async function settle(): Promise<void> {
  let fired = false;
  const timer = realSetTimeout(() => fired = true, 0);
  for (let turn = 0; turn < fewestTurns || (!fired && turn < mostTurns); turn++) await nextTurn();
  realClearTimeout(timer);
}
