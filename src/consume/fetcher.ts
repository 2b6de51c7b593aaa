/**
 * Leases messages for all workers: the only one that asks the broker, and the only one that waits for work.
 *
 * @module
 */

import { isReleaser } from "../core/capabilities/lease.ts";
import { isWaker, type Waker } from "../core/capabilities/wake.ts";
import { nextTurn } from "../core/turn.ts";
import type { Delivery } from "../core/values.ts";
import { IdleWait } from "./idle_wait.ts";
import type { Session } from "./session.ts";
import { StoragePatience } from "./storage_patience.ts";
import { Stretch } from "./turn.ts";

/** How many messages there is room for. */
export interface Demand {
  /** For workers that have nothing to do. */
  now: number;
  /** To have ready when they have. */
  ahead: number;
}

/** Who wants messages. */
export interface Supplied {
  /** Fills in how many messages there is room for. */
  demand(demand: Demand): void;
  /** Takes what was leased; `now` of them were asked for by idle workers. */
  supply(deliveries: readonly Delivery[], now: number): void;
  /** Leased after the consumer began to stop: to be handed back. */
  tooLate(deliveries: readonly Delivery[]): void;
  /** The engine is about to wait, or to let the rest of the process run. */
  beforeWait(idle: boolean): void;
  /** How long to wait at most for news, in ms. */
  readonly pollInterval: number;
}

/** The loop that receives. */
export class Fetcher {
  /** Whether a receive is under way. */
  receiving = false;
  readonly #session: Session;
  readonly #supplied: Supplied;
  readonly #waker: Waker | undefined;
  readonly #wait: IdleWait;
  readonly #patience: StoragePatience;
  readonly #stretch: Stretch;
  readonly #demand: Demand = { now: 0, ahead: 0 };
  /** Aborts at an event after the latest receive began; `undefined` when none was taken before it. */
  #wake: AbortSignal | undefined;
  /** What ends the wait: room for anything, an idle worker, or neither. */
  #waitsFor: "room" | "idleWorker" | "news" = "news";

  constructor(session: Session, supplied: Supplied) {
    this.#session = session;
    this.#supplied = supplied;
    this.#waker = isWaker(session.broker) ? session.broker : undefined;
    this.#wait = new IdleWait(session.clock);
    this.#patience = new StoragePatience(session.options.storagePatience);
    this.#stretch = new Stretch(session.clock.now());
  }

  /** There may be room for more messages than at the last look. */
  hasRoom(): void {
    if (this.#waitsFor === "news") return;
    this.#supplied.demand(this.#demand);
    const { now, ahead } = this.#demand;
    if (now > 0 || (ahead > 0 && this.#waitsFor === "room")) this.lookAgain();
  }

  /** Ends an idle wait: there may be messages, or the consumer stops. */
  lookAgain(): void {
    this.#wait.end();
  }

  /** Receives until the consumer stops. */
  async run(): Promise<void> {
    const session = this.#session;
    let full = false;
    while (!session.stopping) {
      this.#supplied.demand(this.#demand);
      const { now, ahead } = this.#demand;
      if (now + ahead === 0) {
        await this.#waitForRoom();
        continue;
      }
      if (this.#stretch.isOver(session.clock.now())) await this.#letOthersRun();
      if (session.stopping) return;
      const deliveries = await this.#receive(now + ahead, !full);
      if (deliveries === undefined) continue;
      full = deliveries.length >= now + ahead;
      if (session.stopping) return this.#supplied.tooLate(deliveries);
      if (deliveries.length > 0) {
        this.#stretch.add(deliveries.length);
        this.#supplied.supply(deliveries, now);
      } else {
        await this.#waitForWork(now === 0);
      }
    }
  }

  /**
   * Receives; `undefined` after a failure that was waited out or ended the consumer. The wake is taken before it, so
   * that what is published while it runs is not missed; not where much is waiting, since then no wait follows.
   */
  async #receive(max: number, takeWake: boolean): Promise<readonly Delivery[] | undefined> {
    const session = this.#session;
    try {
      if (!takeWake) this.#wake = undefined;
      else if (this.#wake === undefined || this.#wake.aborted) this.#wake = this.#waker?.wake().signal;
      this.receiving = true;
      const deliveries = await session.broker.receive(max, session.calls);
      this.#patience.afterSuccess();
      return deliveries;
    } catch (error) {
      this.receiving = false;
      if (session.ended) return undefined;
      const verdict = session.judge("receive", error, this.#patience);
      if (verdict === "final") session.fail(error);
      if (typeof verdict === "object" && !session.stopping) {
        this.#supplied.beforeWait(true);
        await session.pause(verdict.retryIn);
        this.#stretch.restart(session.clock.now());
      }
      return undefined;
    } finally {
      this.receiving = false;
    }
  }

  async #waitForRoom(): Promise<void> {
    this.#waitsFor = "room";
    await this.#wait.start(Infinity, undefined);
    this.#waitsFor = "news";
  }

  /** Nothing was there: waits for news of work. */
  async #waitForWork(allBusy: boolean): Promise<void> {
    const session = this.#session;
    if (this.#waker !== undefined && this.#wake === undefined) return;
    let delay = this.#supplied.pollInterval;
    if (this.#waker !== undefined) {
      try {
        const wake = this.#waker.wake();
        if (wake.scheduled) delay = Math.min(delay, Math.max(0, wake.in));
      } catch {
        // The next receive says what is wrong.
        delay = 0;
      }
    }
    if (delay <= 0) return await this.#letOthersRun();
    this.#supplied.beforeWait(true);
    // Where no worker was idle, one that becomes so asks again, as it would have.
    if (allBusy) this.#waitsFor = "idleWorker";
    await this.#wait.start(delay, this.#wake);
    this.#waitsFor = "news";
    this.#stretch.restart(session.clock.now());
  }

  async #letOthersRun(): Promise<void> {
    this.#supplied.beforeWait(false);
    await nextTurn();
    this.#stretch.restart(this.#session.clock.now());
  }
}

/** Hands back what a receive brought after the consumer had ended; nobody waits for it, and it may fail. */
export function releaseUnobserved(session: Session, deliveries: readonly Delivery[]): void {
  const { broker } = session;
  if (!isReleaser(broker)) return;
  for (const { lease } of deliveries) broker.release(lease.receipt).catch(() => {});
}
