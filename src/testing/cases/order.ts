/**
 * The order of delivery.
 *
 * @module
 */

import { equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { drainTexts, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const numbers = Array.from({ length: 25 }, (_, index) => `${index}`);

/** The order of delivery. */
export const orderCases: readonly CaseDefinition[] = [
  {
    id: "order-instants",
    title: "one consumer without failures gets messages in order of publication",
    async run({ broker, pass }) {
      for (const text of numbers) {
        await broker.publish(bytes(text));
        pass(1);
      }
      equal(await drainTexts(broker), numbers, "The order of delivery");
    },
  },
  {
    id: "order-instant",
    title: "within one instant too",
    needs: ["orderedIds"],
    async run({ broker }) {
      for (const text of numbers) await broker.publish(bytes(text));
      equal(await drainTexts(broker), numbers, "The order of delivery");
    },
  },
  {
    id: "order-batches",
    title: "batches come in order, and in order inside",
    async run({ broker, pass }) {
      for (const text of numbers) {
        await broker.publish(bytes(text));
        pass(1);
      }
      const received: string[] = [];
      for (const size of [1, 7, 2, 15]) received.push(...(await broker.receive(size)).map(payloadText));
      equal(received, numbers, "The order of delivery");
    },
  },
  {
    id: "order-interleaved",
    title: "what is published while others are drained comes after what waits already",
    async run({ broker, pass }) {
      const received: string[] = [];
      for (const text of numbers) {
        await broker.publish(bytes(text));
        pass(1);
        if (Number(text) % 3 === 0) received.push(payloadText(await receiveOne(broker)));
      }
      received.push(...await drainTexts(broker));
      equal(received, numbers, "The order of delivery");
    },
  },
  {
    id: "order-retry",
    title: "a retry comes behind what was visible before it",
    policy: { retryDelay: 5_000 },
    async run({ broker, pass }) {
      for (const text of ["1", "2", "3"]) {
        await broker.publish(bytes(text));
        pass(1);
      }
      await broker.nack((await receiveOne(broker)).lease.receipt);
      pass(5_000);
      equal(await drainTexts(broker), ["2", "3", "1"], "The order of delivery");
    },
  },
  {
    id: "order-nack-at-once",
    title: "a nack without a delay puts the message behind everything visible, within one instant too",
    async run({ broker }) {
      for (const text of ["1", "2", "3"]) await broker.publish(bytes(text));
      const first = await receiveOne(broker);
      await broker.nack(first.lease.receipt);
      const texts = await drainTexts(broker);
      equal(texts[2], payloadText(first), "What is delivered last");
    },
  },
  {
    id: "order-release",
    title: "a released message is among the first again",
    needs: ["Releaser"],
    async run({ broker, pass }) {
      for (const text of ["1", "2", "3"]) {
        await broker.publish(bytes(text));
        pass(1);
      }
      await broker.release((await receiveOne(broker)).lease.receipt);
      equal(await drainTexts(broker), ["1", "2", "3"], "The order of delivery");
    },
  },
  {
    id: "order-deferred",
    title: "a deferred message comes behind everything visible before it, and before what came later",
    needs: ["at"],
    async run({ broker, clock, pass }) {
      await broker.publish(bytes("deferred"), { at: new Date(clock.now() + 5_000) });
      pass(1_000);
      await broker.publish(bytes("before"));
      pass(5_000);
      await broker.publish(bytes("after"));
      equal(await drainTexts(broker), ["before", "deferred", "after"], "The order of delivery");
    },
  },
  {
    id: "order-deferred-many",
    title: "deferred messages come in the order of their instants, not of their publication",
    needs: ["at"],
    async run({ broker, clock, pass }) {
      const start = clock.now();
      const delays = [9_000, 3_000, 7_000, 1_000, 5_000, 3_600_000, 60_000];
      for (const delay of delays) {
        await broker.publish(bytes(`${delay}`), { at: new Date(start + delay) });
        pass(1);
      }
      await receiveNothing(broker, "before the first instant");
      pass(7_200_000);
      const expected = [...delays].sort((a, b) => a - b).map(String);
      equal(await drainTexts(broker), expected, "The order of delivery");
    },
  },
];
