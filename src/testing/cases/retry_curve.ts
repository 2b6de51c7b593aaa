/**
 * The retry curve: exact instants for a known sequence of draws.
 *
 * @module
 */

import type { Policy } from "../../core/policy.ts";
import { ensure, equal } from "../assert.ts";
import { type AnyBroker, bytes, type CaseContext, type CaseDefinition } from "../case.ts";
import { lease, receiveNothing, receiveOne } from "../steps.ts";

/** A source of draws that plays a sequence and counts; it fails when more is drawn than there is. */
function sequence(draws: readonly number[]): { random: () => number; drawn: () => number } {
  let drawn = 0;
  const random = () => {
    ensure(drawn < draws.length, `Draw number ${drawn + 1} was made, expected at most ${draws.length}`);
    return draws[drawn++]!;
  };
  return { random, drawn: () => drawn };
}

/** Fails a message again and again; gives the delays until it is visible, each checked to the tick. */
async function delaysOf(broker: AnyBroker, { clock, pass }: CaseContext, failures: number): Promise<number[]> {
  const delays: number[] = [];
  let { lease: held } = await lease(broker);
  for (let failure = 1; failure <= failures; failure++) {
    const { visibleAt } = await broker.nack(held.receipt);
    const delay = visibleAt!.getTime() - clock.now();
    delays.push(delay);
    if (delay > 0) {
      pass(delay - 1);
      await receiveNothing(broker, "one tick before the retry's instant");
      pass(1);
    }
    ({ lease: held } = await receiveOne(broker));
  }
  await broker.ack(held.receipt);
  return delays;
}

interface Curve {
  readonly id: string;
  readonly title: string;
  readonly policy: Partial<Policy>;
  readonly draws: readonly number[];
  readonly delays: readonly number[];
}

const curves: readonly Curve[] = [
  {
    id: "curve-constant",
    title: "without a ceiling the delay is constant, and nothing is drawn",
    policy: { retryDelay: 5_000 },
    draws: [],
    delays: [5_000, 5_000, 5_000, 5_000],
  },
  {
    id: "curve-growing",
    title: "with a ceiling it doubles up to there, and nothing is drawn without jitter",
    policy: { retryDelay: 2_000, maxRetryDelay: 6_000 },
    draws: [],
    delays: [2_000, 4_000, 6_000, 6_000],
  },
  {
    id: "curve-additive",
    title: "additive jitter is laid on after the ceiling",
    policy: { retryDelay: 1_000, maxRetryDelay: 4_000, retryJitter: 0.5 },
    draws: [0, 0.5, 0.25, 0.999],
    delays: [1_000, 2_500, 4_500, 5_998],
  },
  {
    id: "curve-full",
    title: "full jitter draws between nothing and the grown delay",
    policy: { retryDelay: 1_000, maxRetryDelay: 4_000, retryJitterMode: "full" },
    draws: [0, 0.5, 0.25, 0.999],
    delays: [0, 1_000, 1_000, 3_996],
  },
  {
    id: "curve-decorrelated",
    title: "decorrelated jitter draws between the base and three times the delay before, up to the ceiling",
    policy: { retryDelay: 1_000, maxRetryDelay: 4_000, retryJitterMode: "decorrelated" },
    draws: [0.5, 0, 0.25, 0.999],
    delays: [2_000, 1_000, 2_250, 4_000],
  },
  {
    id: "curve-narrow",
    title: "a jitter that comes to less than a millisecond leaves the delay as it is",
    policy: { retryDelay: 1, maxRetryDelay: 2, retryJitter: 0.1 },
    draws: [0.9, 0.9, 0.9],
    delays: [1, 2, 2],
  },
];

function curveCase({ id, title, policy, draws, delays }: Curve): CaseDefinition {
  return {
    id,
    title,
    async run(context) {
      const { random, drawn } = sequence(draws);
      const broker = await context.open({ policy: { ...policy, maxDeliveries: 10 }, random });
      equal(await delaysOf(broker, context, delays.length), [...delays], "The delays");
      equal(drawn(), draws.length, "The number of draws");
    },
  };
}

const jittered: Partial<Policy> = { retryDelay: 1_000, maxRetryDelay: 8_000, retryJitter: 1, maxDeliveries: 2 };

/** The retry curve. */
export const retryCurveCases: readonly CaseDefinition[] = [
  ...curves.map(curveCase),
  {
    id: "curve-undrawn",
    title: "nothing is drawn but for a hand-back: no publish, receive, ack, lapse or last nack draws",
    async run({ open, pass }) {
      const { random, drawn } = sequence([0.5]);
      const broker = await open({ policy: jittered, random });
      await broker.ack((await lease(broker)).lease.receipt);
      await lease(broker);
      pass(30_000);
      const { lease: last } = await receiveOne(broker);
      await broker.nack(last.receipt);
      equal(drawn(), 0, "The number of draws before a hand-back");
      await broker.nack((await lease(broker)).lease.receipt);
      equal(drawn(), 1, "The number of draws after a hand-back");
    },
  },
  {
    id: "curve-undrawn-named",
    title: "nothing is drawn for a named delay, a release or a rejection",
    needs: ["DelayedNacker", "Releaser", "Rejecter"],
    async run({ open, clock }) {
      const { random, drawn } = sequence([]);
      const broker = await open({ policy: jittered, random });
      const { visibleAt } = await broker.nackAfter((await lease(broker)).lease.receipt, undefined, 5_000);
      equal(visibleAt, new Date(clock.now() + 5_000), "When a named delay ends");
      await broker.release((await lease(broker, "released")).lease.receipt, { delay: 5_000 });
      await broker.reject((await lease(broker, "rejected")).lease.receipt);
      equal(drawn(), 0, "The number of draws");
    },
  },
  {
    id: "curve-huge",
    title: "a count beyond all measure still waits for the ceiling, exactly",
    needs: ["MessageWriter"],
    async run({ open, clock, pass }) {
      const policy = { retryDelay: 2_000, maxRetryDelay: 6_000, maxDeliveries: 2_147_483_647 };
      const broker = await open({ policy });
      const now = new Date(clock.now());
      await broker.putMessage({
        message: { id: "", enqueuedAt: now, payload: bytes("work"), headers: {} },
        visibleAt: now,
        deliveries: 1_000_000,
        leased: false,
        priority: 0,
      });
      const delivery = await receiveOne(broker);
      equal(delivery.deliveries, 1_000_001, "The delivery count");
      const { visibleAt } = await broker.nack(delivery.lease.receipt);
      equal(visibleAt, new Date(clock.now() + 6_000), "When it is visible again");
      pass(6_000);
      equal((await receiveOne(broker)).deliveries, 1_000_002, "The delivery count");
    },
  },
];
