/**
 * Replaying and deleting many dead letters.
 *
 * @module
 */

import { equal, refuses } from "../assert.ts";
import { type AnyBroker, type CaseDefinition, type Feature } from "../case.ts";
import { allDeadLetters, bury, drainTexts, lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";
import { badBatchSizes } from "./receive.ts";

const needs: readonly Feature[] = ["DeadLetterReader", "DeadLetterBulkManager"];

/** Buries "0", "1" and so on, each an hour after the one before. */
async function buryHourly(broker: AnyBroker, count: number, pass: (by: number) => void): Promise<void> {
  for (let index = 0; index < count; index++) {
    await bury(broker, `${index}`);
    pass(3_600_000);
  }
}

/** Many dead letters. */
export const bulkCases: readonly CaseDefinition[] = [
  {
    id: "bulk-replay",
    title: "so many are replayed as asked for, in id order, and further calls go on until none is left",
    needs: [...needs, "orderedIds"],
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      await buryHourly(broker, 5, pass);
      equal(await broker.replayDeadLetters({ max: 2 }), 2, "What the first call answers");
      equal((await drainTexts(broker)).sort(), ["0", "1"], "What is receivable");
      equal((await allDeadLetters(broker)).map(payloadText), ["2", "3", "4"], "The dead letters that are left");
      equal(await broker.replayDeadLetters({ max: 10 }), 3, "What the second call answers");
      equal(await broker.replayDeadLetters({ max: 10 }), 0, "What the third call answers");
      equal((await drainTexts(broker)).sort(), ["2", "3", "4"], "What is receivable");
      equal(await allDeadLetters(broker), [], "The dead letters that are left");
    },
  },
  {
    id: "bulk-replay-budget",
    title: "each gets all its attempts back",
    needs,
    policy: { maxDeliveries: 2 },
    async run({ broker }) {
      await bury(broker, "work");
      equal(await broker.replayDeadLetters({ max: 1 }), 1, "What the call answers");
      const delivery = await receiveOne(broker);
      equal(delivery.deliveries, 1, "The delivery count");
      equal((await broker.nack(delivery.lease.receipt)).deadLettered, false, "Whether the first nack ended it");
    },
  },
  {
    id: "bulk-replay-expired",
    title: "one that would expire at once is passed over and stays",
    needs: [...needs, "expiry", "orderedIds"],
    policy: { maxDeliveries: 1, maxAge: 7_200_000 },
    async run({ broker, pass }) {
      await buryHourly(broker, 3, pass);
      equal(await broker.replayDeadLetters({ max: 10 }), 1, "What the call answers");
      equal(await drainTexts(broker), ["2"], "What is receivable");
      equal((await allDeadLetters(broker)).map(payloadText), ["0", "1"], "The dead letters that are left");
      equal(await broker.replayDeadLetters({ max: 1 }), 0, "What another call answers");
    },
  },
  {
    id: "bulk-purge",
    title: "those that failed strictly before an instant are deleted, in id order, at most so many",
    needs: [...needs, "orderedIds"],
    policy: { maxDeliveries: 1 },
    async run({ broker, clock, pass }) {
      const start = clock.now();
      await buryHourly(broker, 5, pass);
      const before = new Date(start + 3 * 3_600_000);
      equal(await broker.purgeDeadLetters({ before, max: 2 }), 2, "What the first call answers");
      equal((await allDeadLetters(broker)).map(payloadText), ["2", "3", "4"], "The dead letters that are left");
      equal(await broker.purgeDeadLetters({ before, max: 10 }), 1, "What the second call answers");
      equal((await allDeadLetters(broker)).map(payloadText), ["3", "4"], "The dead letters that are left");
      equal(await broker.purgeDeadLetters({ before, max: 10 }), 0, "What the third call answers");
      const all = new Date(clock.now() + 1);
      equal(await broker.purgeDeadLetters({ before: all, max: 10 }), 2, "What the last call answers");
      await receiveNothing(broker, "after the purges");
    },
  },
  {
    id: "bulk-purge-live",
    title: "purging dead letters touches no live message",
    needs,
    policy: { maxDeliveries: 1 },
    async run({ broker, clock, pass }) {
      await bury(broker, "dead");
      const held = await lease(broker, "leased");
      await broker.publish(new TextEncoder().encode("waiting"));
      pass(1);
      equal(await broker.purgeDeadLetters({ before: new Date(clock.now()), max: 10 }), 1, "What the call answers");
      await broker.ack(held.lease.receipt);
      equal(await drainTexts(broker), ["waiting"], "What is receivable");
    },
  },
  {
    id: "bulk-refused",
    title: "a batch size that is no positive whole number and an instant that is none are refused",
    needs,
    policy: { maxDeliveries: 1 },
    async run({ broker, clock }) {
      await bury(broker, "work");
      const before = new Date(clock.now() + 1);
      for (const max of badBatchSizes as number[]) {
        await refuses(() => broker.replayDeadLetters({ max }), "INVALID_BATCH_SIZE", `Replaying ${max}`, "max");
        await refuses(() => broker.purgeDeadLetters({ before, max }), "INVALID_BATCH_SIZE", `Purging ${max}`, "max");
      }
      for (const bad of [new Date(NaN), undefined, 5]) {
        const purge = () => broker.purgeDeadLetters({ before: bad as Date, max: 10 });
        await refuses(purge, "QUEUE_MISCONFIGURED", `Purging before ${bad}`, "before");
      }
      equal((await allDeadLetters(broker)).length, 1, "The number of dead letters");
    },
  },
];
