/**
 * A consumer's life with random handlers, stops and faults, repeatable from its seed.
 *
 * @module
 */

import assert from "node:assert/strict";
import { consume, type ConsumeEvent, type HandlerContext } from "../../src/consume/mod.ts";
import { acknowledged, type Delivery, doNotRetry, QueueError, type Receipt, retryAfter } from "../../src/core/mod.ts";
import { Stage, transient, turn } from "./stage.ts";

/** A small generator, so that every run can be repeated from its seed. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed * 2_654_435_761 >>> 0;
  }

  /** A number in [0, 1). */
  roll(): number {
    this.#state = this.#state + 0x6d2b79f5 >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ mixed >>> 15, mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61);
    return ((mixed ^ mixed >>> 14) >>> 0) / 4_294_967_296;
  }

  /** Whether something of this probability happens. */
  happens(probability: number): boolean {
    return this.roll() < probability;
  }

  below(end: number): number {
    return Math.floor(this.roll() * end);
  }

  oneOf<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}

/** Kinds of events that end a delivery's life in the consumer. */
const ends = new Set([
  "acknowledged",
  "retried",
  "deadLettered",
  "released",
  "leaseLost",
  "unsettled",
  "abandonedHandler",
]);

const settling = ["ack", "ackMany", "nack", "nackAfter", "reject", "release"];

class Simulation {
  readonly stage: Stage;
  readonly #dice: Dice;
  readonly #messages: number;
  readonly #faults: number;
  /** Leases handed to the engine, and what became of each. */
  readonly #handed = new Map<Receipt, { delivery: Delivery; ends: string[] }>();
  readonly #byDelivery = new Map<Delivery, string[]>();
  readonly #handled = new Set<string>();
  #open = 0;
  #mostOpen = 0;
  /** Messages leased by a receive whose reply was lost. */
  readonly #lost = new Set<string>();

  constructor(seed: number) {
    this.#dice = new Dice(seed);
    this.#messages = 1 + this.#dice.below(40);
    this.#faults = this.#dice.oneOf([0, 0, 0.05, 0.2]);
    this.stage = new Stage({
      visibilityTimeout: this.#dice.oneOf([1_000, 30_000]),
      maxDeliveries: this.#dice.oneOf([1, 3, 50]),
      retryDelay: this.#dice.oneOf([0, 200]),
    });
    this.#injectFaults();
  }

  async run(): Promise<void> {
    const ids = await this.stage.publish(this.#messages);
    for (let round = 0; round < 3; round++) await this.#round();
    await this.#lastRound();
    await this.#check(ids);
  }

  /** One consumer with random options, stopped at a random moment. */
  async #round(): Promise<void> {
    const dice = this.#dice;
    const controller = new AbortController();
    const parallelism = 1 + dice.below(5);
    const events: ConsumeEvent[] = [];
    this.#mostOpen = 0;
    let ended = false;
    const done = consume(this.stage.broker, {
      handler: (delivery, context) => this.#handle(delivery, context),
      handlerIsIdempotent: true,
      signal: controller.signal,
      clock: this.stage.clock,
      parallelism,
      batchSize: 1 + dice.below(4),
      prefetch: dice.happens(0.7),
      autoExtend: dice.happens(0.5),
      drainTimeout: dice.oneOf([0, 100, 2_000]),
      settleTimeout: dice.oneOf([50, 1_000]),
      ackedWindow: dice.oneOf([0, 5]),
      onEvent: (event) => {
        events.push(event);
        if (ends.has(event.kind)) {
          this.#byDelivery.get((event as unknown as { delivery: Delivery }).delivery)!.push(event.kind);
        }
      },
    }).catch((error) => error).finally(() => ended = true);
    for (let steps = dice.below(40); steps > 0 && !ended; steps--) {
      if (dice.happens(0.5)) await turn();
      else await this.stage.clock.advance(dice.oneOf([1, 10, 120, 400, 1_500]));
    }
    controller.abort(new Error("Stop"));
    for (let waited = 0; !ended && waited < 100; waited++) await this.stage.clock.advance(50);
    assert.ok(ended, "It ends by the last deadline");
    assert.equal(await done, undefined);
    assert.ok(this.#mostOpen <= parallelism, "No more handlers than workers");
    assert.equal(events.at(-1)!.kind, "stopped");
    this.#open = 0;
    await this.#checkRound();
    assert.equal(this.stage.clock.timers, 0, "No timer is left");
  }

  /** What is left is handled by a consumer without faults. */
  async #lastRound(): Promise<void> {
    this.stage.on("receive", (_call, proceed) => proceed());
    for (const method of [...settling, "extend"]) this.stage.on(method, (_call, proceed) => proceed());
    const controller = new AbortController();
    const done = consume(this.stage.broker, {
      handler: ({ message }) => void this.#handled.add(message.id),
      handlerIsIdempotent: true,
      signal: controller.signal,
      clock: this.stage.clock,
      parallelism: 4,
    });
    await this.stage.clock.advance(70_000);
    controller.abort();
    await done;
  }

  async #check(ids: readonly string[]): Promise<void> {
    const { queued, leased } = await this.stage.inner.stats();
    assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 });
    const dead = new Set((await this.stage.inner.deadLetters({ max: 1_000 })).map((letter) => letter.message.id));
    for (const id of ids) assert.ok(this.#handled.has(id) || dead.has(id), `Message ${id} was lost`);
  }

  /** Every delivery that the engine got has ended exactly one way, and no lease is held but for a reason. */
  async #checkRound(): Promise<void> {
    const excused = new Set(this.#lost);
    for (const { delivery, ends } of this.#handed.values()) {
      assert.equal(ends.length, 1, `Delivery ${delivery.deliveries} of ${delivery.message.id} ended as ${ends}`);
      if (["abandonedHandler", "unsettled", "leaseLost"].includes(ends[0]!)) excused.add(delivery.message.id);
    }
    const now = this.stage.clock.now();
    for (const { message, leased, visibleAt } of await this.stage.inner.messages({ max: 1_000 })) {
      if (leased && visibleAt.getTime() > now) {
        assert.ok(excused.has(message.id), `Message ${message.id} is still leased`);
      }
    }
    this.#handed.clear();
    this.#byDelivery.clear();
    this.#lost.clear();
    await this.stage.clock.advance(31_000);
  }

  #injectFaults(): void {
    const dice = this.#dice;
    const faulty = (effect: (proceed: () => unknown) => unknown) => async (_call: unknown, proceed: () => unknown) => {
      if (dice.happens(0.3)) await turn();
      if (!dice.happens(this.#faults)) return await effect(proceed);
      // Before the effect, or after it: the reply is lost.
      if (dice.happens(0.5)) await effect(proceed);
      throw dice.happens(0.5)
        ? transient()
        : new QueueError("QUEUE_BACKEND_FAILED", "x", { fields: { transient: true } });
    };
    for (const method of [...settling, "extend"]) this.stage.on(method, faulty((proceed) => proceed()));
    this.stage.on("receive", async (_call, proceed) => {
      if (dice.happens(0.3)) await turn();
      const fails = dice.happens(this.#faults);
      if (fails && dice.happens(0.5)) throw transient();
      const deliveries = await proceed() as Delivery[];
      if (fails) {
        for (const { message } of deliveries) this.#lost.add(message.id);
        throw transient();
      }
      for (const delivery of deliveries) {
        const ends: string[] = [];
        this.#handed.set(delivery.lease.receipt, { delivery, ends });
        this.#byDelivery.set(delivery, ends);
      }
      return deliveries;
    });
  }

  async #handle(delivery: Delivery, context: HandlerContext): Promise<unknown> {
    const dice = this.#dice;
    const { id } = delivery.message;
    this.#mostOpen = Math.max(this.#mostOpen, ++this.#open);
    try {
      if (dice.happens(0.2)) await context.extend(5_000).catch(() => {});
      if (dice.happens(0.3)) await turn();
      if (dice.happens(0.2)) await this.#wait(dice.below(3_000), dice.happens(0.8) ? context.signal : undefined);
      if (dice.happens(0.1)) {
        await this.stage.inner.ack(await context.takeOver());
        this.#handled.add(id);
        return acknowledged;
      }
      if (dice.happens(0.25)) {
        throw dice.oneOf<unknown>([new Error(), "panic", doNotRetry(new Error()), retryAfter(new Error(), 300)]);
      }
      this.#handled.add(id);
    } finally {
      this.#open--;
    }
  }

  #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      // Its own timers: those of the clock are counted.
      let left = ms / 50;
      const until = this.stage.clock.now() + ms;
      const look = () => {
        if (signal?.aborted) reject(signal.reason);
        else if (this.stage.clock.now() >= until || left-- < -200) resolve();
        else void turn().then(look);
      };
      look();
    });
  }
}

/** Plays one life; throws when a promise was broken. */
export async function simulate(seed: number): Promise<void> {
  try {
    await new Simulation(seed).run();
  } catch (error) {
    throw new Error(`Seed ${seed} failed`, { cause: error });
  }
}
