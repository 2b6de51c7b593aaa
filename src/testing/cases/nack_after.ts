/**
 * Handing back for a named delay.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { maxInstant } from "../../core/limits.ts";
import { equal, refuses } from "../assert.ts";
import { type CaseDefinition } from "../case.ts";
import { asReceipt, lease, onlyDeadLetter, receiveNothing, receiveOne } from "../steps.ts";

const cause = new QueueError("RETRY_REQUESTED");

/** Handing back for a named delay. */
export const nackAfterCases: readonly CaseDefinition[] = [
  {
    id: "nack-after-exact",
    title: "the message comes back exactly so much later, whatever the policy's delay and jitter say",
    needs: ["DelayedNacker"],
    policy: { retryDelay: 1_000, maxRetryDelay: 600_000, retryJitter: 1 },
    async run({ broker, clock, pass }) {
      const { lease: held } = await lease(broker);
      pass(3_000);
      const visibleAt = new Date(clock.now() + 40_000);
      const verdict = await broker.nackAfter(held.receipt, cause, 40_000);
      equal(verdict, { deliveries: 1, visibleAt, deadLettered: false }, "What it led to");
      pass(39_999);
      await receiveNothing(broker, "one tick before the delay's end");
      pass(1);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "nack-after-last",
    title: "on the last attempt the message is dead, the delay unused and the cause recorded",
    needs: ["DelayedNacker", "DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const verdict = await broker.nackAfter(held.receipt, cause, 40_000);
      equal(verdict, { deliveries: 1, deadLettered: true }, "What it led to");
      equal((await onlyDeadLetter(broker)).reason, "RETRY_REQUESTED", "The reason recorded");
    },
  },
  {
    id: "nack-after-at-once",
    title: "a delay of 0 or less is receivable at once",
    needs: ["DelayedNacker"],
    policy: { maxDeliveries: 10 },
    async run({ broker, clock }) {
      let { lease: held } = await lease(broker);
      for (const delay of [0, -1, -Number.MAX_VALUE, 0.9]) {
        const { visibleAt } = await broker.nackAfter(held.receipt, cause, delay);
        equal(visibleAt, new Date(clock.now()), `When it is visible after a delay of ${delay}`);
        ({ lease: held } = await receiveOne(broker));
      }
    },
  },
  {
    id: "nack-after-argument",
    title: "a delay that cannot be recorded is refused, nothing moves and the lease stays",
    needs: ["DelayedNacker"],
    async run({ broker, clock }) {
      const { lease: held } = await lease(broker);
      for (const delay of [NaN, Infinity, maxInstant - clock.now() + 1, "5"]) {
        const nackAfter = () => broker.nackAfter(held.receipt, cause, delay as number);
        await refuses(nackAfter, "QUEUE_MISCONFIGURED", `A delay of ${delay}`, "delay");
      }
      await broker.ack(held.receipt);
    },
  },
  {
    id: "nack-after-largest",
    title: "the longest delay that can be recorded is accepted",
    needs: ["DelayedNacker"],
    async run({ broker, clock, pass }) {
      const { lease: held } = await lease(broker);
      const { visibleAt } = await broker.nackAfter(held.receipt, cause, maxInstant - clock.now());
      equal(visibleAt?.getTime(), maxInstant, "When it is visible again");
      pass(365 * 24 * 3_600_000);
      await receiveNothing(broker, "a year later");
    },
  },
  {
    id: "nack-after-refused",
    title: "a lapsed or unknown receipt is refused and nothing moves",
    needs: ["DelayedNacker"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      await refuses(() => broker.nackAfter(asReceipt("nonsense"), cause, 5), "UNKNOWN_RECEIPT", "Of nonsense");
      pass(30_000);
      await refuses(() => broker.nackAfter(held.receipt, cause, 600_000), "LEASE_EXPIRED", "At the lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
];
