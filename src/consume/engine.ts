/**
 * Puts the roles of a consumer together.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { FailureDescription } from "../core/failure.ts";
import type { Delivery } from "../core/values.ts";
import { AckedWindow } from "./acked_window.ts";
import { Acks } from "./acks.ts";
import type { Attempt } from "./attempt.ts";
import { type Demand, Fetcher, releaseUnobserved, type Supplied } from "./fetcher.ts";
import { aheadShare, type LeaseHolders, Leases } from "./leases.ts";
import type { ResolvedIntake } from "./options.ts";
import { cutByDeadline, Session } from "./session.ts";
import { Settlement, type SettlementLedger } from "./settlement.ts";
import { Shutdown, type ShutdownSteps } from "./shutdown.ts";
import { Waiting } from "./waiting.ts";
import { Watching } from "./watching.ts";

/** Who takes the deliveries: the workers of `consume`, or the loop over `deliveries`. */
export interface Takers {
  /** How many more could take one at once. */
  idle(): number;
  /** How many hold one. */
  busy(): number;
  /** Gives one to somebody idle. */
  give(attempt: Attempt, now: number): void;
  /** Deliveries whose handlers run. */
  running(): Iterable<Attempt>;
}

/** How the handling time is smoothed: up at once, down by this share of the difference. */
const decay = 0.2;

/** One consumer from start to end. */
export class Engine implements Supplied, LeaseHolders, SettlementLedger, ShutdownSteps {
  readonly session: Session;
  readonly waiting: Waiting = new Waiting();
  readonly leases: Leases;
  readonly settlement: Settlement;
  readonly window: AckedWindow;
  readonly #options: ResolvedIntake;
  readonly #takers: Takers;
  readonly #fetcher: Fetcher;
  readonly #watching: Watching;
  readonly #shutdown: Shutdown;
  readonly #batch: number;
  readonly #ended: Promise<void>;
  #resolve: () => void = () => {};
  #unsettled = 0;
  #fetching = false;
  #watchOpen = false;
  #leaseLength = 0;
  #handlingTime: number | undefined;

  constructor(
    broker: Broker,
    options: ResolvedIntake,
    takers: (engine: Engine) => Takers,
    ackedWindow: number,
    describe?: (error: unknown) => FailureDescription | undefined,
  ) {
    const session = new Session(broker, options);
    this.session = session;
    this.#options = options;
    this.#batch = options.parallelism * options.batchSize;
    this.leases = new Leases(session, this);
    this.window = new AckedWindow(ackedWindow);
    const acks = new Acks(session, (count) => this.settled(count));
    this.settlement = new Settlement(session, acks, this.window, this, describe);
    this.#watching = new Watching(session, () => this.#fetcher.lookAgain());
    this.#fetcher = new Fetcher(session, this);
    this.#shutdown = new Shutdown(session, this);
    this.#takers = takers(this);
    this.#ended = new Promise((resolve) => this.#resolve = resolve);
  }

  /** Runs until the consumer has stopped. Never rejects: `session.failure()` tells. */
  async run(): Promise<void> {
    const { session } = this;
    const { signal } = this.#options;
    const stop = () => session.stop("signal", signal!.reason);
    if (signal?.aborted) {
      session.why = "signal";
      return this.#tellStopped();
    }
    signal?.addEventListener("abort", stop, { once: true });
    session.onStop = () => this.#beginStop();
    this.#watching.open();
    this.#watchOpen = true;
    this.#fetching = true;
    void this.#fetch();
    await this.#ended;
    signal?.removeEventListener("abort", stop);
    this.#tellStopped();
  }

  /** Whether the next message would be one too many whose outcome is not recorded. */
  get #isBlocked(): boolean {
    return this.#unsettled > this.#batch;
  }

  /** The next delivery for somebody who is idle. */
  take(): Attempt | undefined {
    if (this.session.stopping || this.#isBlocked) return undefined;
    const attempt = this.waiting.take(this.#options.batchSize);
    if (attempt !== undefined) this.#fetcher.hasRoom();
    return attempt;
  }

  /** Somebody has become idle. */
  rested(): void {
    if (this.session.stopping) {
      if (this.#takers.busy() === 0) this.#shutdown.handlersEnded();
      this.#checkEnd();
    } else {
      this.#fetcher.hasRoom();
    }
  }

  /** Learns how long a handler took, in ms. */
  handled(took: number): void {
    const before = this.#handlingTime;
    this.#handlingTime = before === undefined || took > before ? took : before + (took - before) * decay;
  }

  /** Gives what waits to those who are idle. */
  giveOut(): void {
    while (this.#takers.idle() > 0) {
      const attempt = this.take();
      if (attempt === undefined) return;
      this.#takers.give(attempt, this.session.clock.now());
    }
  }

  /** Somebody can take another one, or may again. */
  roomForMore(): void {
    this.giveOut();
    this.#fetcher.hasRoom();
  }

  // What the fetcher asks.

  demand(demand: Demand): void {
    const { batchSize, prefetch } = this.#options;
    const { waiting } = this;
    demand.now = this.#isBlocked ? 0 : Math.max(0, this.#takers.idle() * batchSize - waiting.length);
    demand.ahead = 0;
    if (!prefetch || this.#handlingTime === undefined) return;
    const held = waiting.ahead;
    if (demand.now === 0 && held > this.#batch / 2) return;
    if (this.#handlingTime * batchSize < this.#leaseLength * aheadShare) demand.ahead = this.#batch - held;
  }

  supply(deliveries: readonly Delivery[], now: number): void {
    const instant = this.session.clock.now();
    for (const delivery of deliveries) this.waiting.push(this.leases.attempt(delivery, instant));
    this.waiting.assign(Math.min(now, deliveries.length));
    this.#leaseLength = deliveries[0]!.lease.expiresAt.getTime() - instant;
    this.giveOut();
    if (this.waiting.length > 0) this.leases.watch(instant);
  }

  tooLate(deliveries: readonly Delivery[]): void {
    if (this.session.ended) return releaseUnobserved(this.session, deliveries);
    const instant = this.session.clock.now();
    for (const delivery of deliveries) this.settlement.release(this.leases.attempt(delivery, instant), "stop");
  }

  beforeWait(idle: boolean): void {
    if (idle) this.leases.rest();
    else this.leases.arm();
  }

  get pollInterval(): number {
    return this.#watching.pollInterval;
  }

  // What the leases ask.

  running(): Iterable<Attempt> {
    return this.#takers.running();
  }

  release(attempt: Attempt, why: "lease" | "ahead"): void {
    this.settlement.release(attempt, why);
  }

  waitedTooLong(wait: number): void {
    this.#handlingTime = Math.max(this.#handlingTime ?? 0, wait);
  }

  // What settlements tell.

  unsettled(): void {
    this.#unsettled++;
  }

  settled(count: number): void {
    this.#unsettled -= count;
    this.leases.progress();
    if (this.session.stopping) return this.#checkEnd();
    this.roomForMore();
  }

  handedBack(): void {
    if (!this.session.stopping) this.#fetcher.lookAgain();
  }

  // What a stop does.

  endDrain(): void {
    this.leases.stopRenewing();
    for (const attempt of [...this.#takers.running()]) attempt.end("stop", this.session.reason);
  }

  giveUp(): void {
    const { reporter } = this.session;
    for (const { delivery } of this.#takers.running()) reporter.tellOf(delivery, { kind: "abandonedHandler" });
    this.settlement.tellUnsettled(cutByDeadline());
    this.#end(true);
  }

  async #fetch(): Promise<void> {
    try {
      await this.#fetcher.run();
    } catch (error) {
      this.session.fail(error);
    }
    this.#fetching = false;
    this.#checkEnd();
  }

  #beginStop(): void {
    this.#fetcher.lookAgain();
    void this.#watching.close().then(() => {
      this.#watchOpen = false;
      this.#checkEnd();
    });
    const all = () => true;
    for (const attempt of this.waiting.removeAhead(all)) this.settlement.release(attempt, "stop");
    for (const attempt of this.waiting.removeBatched(all)) this.settlement.release(attempt, "stop");
    this.#shutdown.begin(this.#takers.busy() > 0);
  }

  #checkEnd(): void {
    if (this.session.ended || !this.session.stopping) return;
    if (this.#unsettled > 0 || this.#fetching || this.#watchOpen || this.#takers.busy() > 0) return;
    this.#end(false);
  }

  #end(callsUnderWay: boolean): void {
    this.#shutdown.close();
    this.leases.close();
    this.session.end(callsUnderWay);
    this.#resolve();
  }

  #tellStopped(): void {
    const { reporter, why } = this.session;
    const failure = this.session.failure();
    reporter.tell({ kind: "stopped", why, ...(failure === undefined ? {} : { error: failure.error }) });
    reporter.close();
  }
}
