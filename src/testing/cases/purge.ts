/**
 * Emptying a queue.
 *
 * @module
 */

import { equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { bury, lease, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Emptying. */
export const purgeCases: readonly CaseDefinition[] = [
  {
    id: "purge-empty",
    title: "purging an empty queue removes nothing",
    needs: ["Purger"],
    async run({ broker }) {
      equal(await broker.purge(), { queued: 0, leased: 0 }, "What the purge answers");
    },
  },
  {
    id: "purge-all",
    title: "waiting, deferred, leased and lapsed messages go, and are counted",
    needs: ["Purger", "at"],
    async run({ broker, clock, pass }) {
      await lease(broker, "lapsed");
      pass(29_000);
      const held = await lease(broker, "leased");
      pass(1_000);
      for (const text of ["a", "b", "c"]) await broker.publish(bytes(text));
      await broker.publish(bytes("deferred"), { at: new Date(clock.now() + 5_000) });
      equal(await broker.purge(), { queued: 4, leased: 2 }, "What the purge answers");
      await refuses(() => broker.ack(held.lease.receipt), "LEASE_EXPIRED", "An ack of a purged lease");
      pass(3_600_000);
      await receiveNothing(broker, "an hour after the purge");
      equal(await broker.purge(), { queued: 0, leased: 0 }, "What a second purge answers");
    },
  },
  {
    id: "purge-levels",
    title: "every level is purged",
    needs: ["Purger", "priority"],
    async run({ broker }) {
      for (const priority of [-2, -1, 0, 1, 2] as const) await broker.publish(bytes("work"), { priority });
      equal(await broker.purge(), { queued: 5, leased: 0 }, "What the purge answers");
      await receiveNothing(broker, "after the purge");
    },
  },
  {
    id: "purge-dead",
    title: "dead letters stay",
    needs: ["Purger", "DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      await bury(broker, "dead");
      await broker.publish(bytes("live"));
      await broker.purge();
      equal(payloadText(await onlyDeadLetter(broker)), "dead", "The dead letter");
    },
  },
  {
    id: "purge-goes-on",
    title: "the queue goes on afterwards",
    needs: ["Purger"],
    async run({ broker }) {
      await lease(broker, "before");
      await broker.purge();
      await broker.publish(bytes("after"));
      const delivery = await receiveOne(broker);
      equal([payloadText(delivery), delivery.deliveries], ["after", 1], "The delivery");
      await broker.ack(delivery.lease.receipt);
    },
  },
];
