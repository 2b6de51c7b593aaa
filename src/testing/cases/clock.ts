/**
 * Clocks that step, stand at the edge of what can be recorded, or beyond it.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { drainTexts, ensureAscending, lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const hour = 3_600_000;

/** Clocks. */
export const clockCases: readonly CaseDefinition[] = [
  {
    id: "clock-back",
    title: "what was published for now is receivable though the clock steps back",
    needs: ["steppedClock"],
    async run({ broker, pass }) {
      await broker.publish(bytes("before"));
      pass(-hour);
      await broker.publish(bytes("after"));
      equal((await drainTexts(broker)).sort(), ["after", "before"], "What is receivable");
    },
  },
  {
    id: "clock-back-hidden",
    title: "what was published before the clock stepped back is hidden until it has caught up, and not lost",
    without: ["steppedClock"],
    async run({ broker, pass }) {
      await broker.publish(bytes("before"));
      pass(-hour);
      await broker.publish(bytes("after"));
      equal(await drainTexts(broker), ["after"], "What is receivable after the step");
      pass(hour);
      ensure((await drainTexts(broker)).includes("before"), "What was published before the step is lost");
    },
  },
  {
    id: "clock-back-ids",
    title: "ids ascend though the clock steps back",
    needs: ["orderedIds"],
    async run({ broker, pass }) {
      const ids: string[] = [];
      for (const step of [0, -1, -hour, 1, 2 * hour, -1]) {
        pass(step);
        ids.push((await broker.publish(bytes("work"))).id);
      }
      ensureAscending(ids, "Ids in order of publication");
    },
  },
  {
    id: "clock-back-lease",
    title: "a lease is held until its deadline though the clock steps back, and the message is not lost",
    async run({ broker, pass }) {
      const first = await lease(broker);
      pass(-hour);
      await receiveNothing(broker, "after the step");
      pass(hour + 29_999);
      await receiveNothing(broker, "one tick before the lease's end");
      pass(1);
      const second = await receiveOne(broker);
      equal([second.message.id, second.deliveries], [first.message.id, 2], "The redelivery");
    },
  },
  {
    id: "clock-back-ack",
    title: "an ack lands though the clock steps back",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(-hour);
      await broker.ack(held.receipt);
      pass(2 * hour);
      await receiveNothing(broker, "after the ack");
    },
  },
  {
    id: "clock-back-retry",
    title: "a retry comes at its instant though the clock stepped back meanwhile",
    policy: { retryDelay: 10_000 },
    async run({ broker, clock, pass }) {
      const { lease: held } = await lease(broker);
      const { visibleAt } = await broker.nack(held.receipt);
      pass(-hour);
      await receiveNothing(broker, "after the step");
      pass(visibleAt!.getTime() - clock.now());
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "clock-forward",
    title: "after a leap ahead and back every message is delivered once",
    needs: ["steppedClock"],
    async run({ broker, pass }) {
      await broker.publish(bytes("1"));
      pass(10 * 365 * 24 * hour);
      await broker.publish(bytes("2"));
      for (const { lease: held } of await broker.receive(10)) await broker.ack(held.receipt);
      await receiveNothing(broker, "after both were acknowledged");
      pass(-10 * 365 * 24 * hour);
      await broker.publish(bytes("3"));
      equal(await drainTexts(broker), ["3"], "What is receivable after the leap back");
    },
  },
  {
    id: "clock-outside",
    title: "a clock outside what can be recorded is refused, and nothing is published or leased",
    async run({ broker, clock }) {
      await broker.publish(bytes("work"));
      const now = clock.now();
      for (const instant of [-1, maxInstant + 1, NaN, Infinity]) {
        clock.set(instant);
        await refuses(() => broker.publish(bytes("x")), "QUEUE_MISCONFIGURED", `A publish at ${instant}`, "clock");
        await refuses(() => broker.receive(1), "QUEUE_MISCONFIGURED", `A receive at ${instant}`, "clock");
      }
      clock.set(now);
      const delivery = await receiveOne(broker);
      equal([payloadText(delivery), delivery.deliveries], ["work", 1], "What is receivable afterwards");
      await receiveNothing(broker, "beside it");
    },
  },
  {
    id: "clock-epoch",
    title: "the very first instant is an instant like any other",
    async run({ broker, clock }) {
      clock.set(0);
      await broker.publish(bytes("work"));
      const delivery = await receiveOne(broker);
      equal(delivery.message.enqueuedAt, new Date(0), "The instant of the message");
      await broker.nack(delivery.lease.receipt);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "clock-fraction",
    title: "a clock with fractions of a millisecond is read in whole ones",
    async run({ broker, clock }) {
      const now = clock.now();
      clock.set(now + 0.75);
      equal((await broker.publish(bytes("work"))).enqueuedAt.getTime(), now, "The instant of the message");
      equal((await receiveOne(broker)).lease.expiresAt.getTime(), now + 30_000, "The end of the lease");
    },
  },
  {
    id: "clock-end",
    title: "a lease that would end beyond what can be recorded is refused, and nothing is leased",
    async run({ broker, clock }) {
      const now = clock.now();
      await broker.publish(bytes("work"));
      clock.set(maxInstant - 29_999);
      await refuses(() => broker.receive(1), "QUEUE_MISCONFIGURED", "A receive near the end of time");
      clock.set(now);
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count");
    },
  },
];
