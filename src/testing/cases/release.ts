/**
 * Handing back uncounted.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import { equal, notEqual, refuses } from "../assert.ts";
import { type CaseDefinition } from "../case.ts";
import { asReceipt, lease, receiveNothing, receiveOne } from "../steps.ts";

/** Handing back uncounted. */
export const releaseCases: readonly CaseDefinition[] = [
  {
    id: "release-uncounted",
    title: "a released message is receivable at once and carries the same count",
    needs: ["Releaser"],
    policy: { retryDelay: 60_000, maxDeliveries: 5 },
    async run({ broker, pass }) {
      let delivery = await lease(broker);
      for (let round = 0; round < 10; round++) {
        equal(await broker.release(delivery.lease.receipt), undefined, "What release resolves with");
        const next = await receiveOne(broker);
        equal(next.deliveries, 1, "The delivery count after a release");
        equal(next.message, delivery.message, "The message after a release");
        notEqual(next.lease.receipt, delivery.lease.receipt, "The next receipt");
        delivery = next;
      }
      pass(30_000);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count after a lapse");
    },
  },
  {
    id: "release-last",
    title: "a release of the last attempt does not end it",
    needs: ["Releaser"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const first = await lease(broker);
      await broker.release(first.lease.receipt);
      const second = await receiveOne(broker);
      equal(second.deliveries, 1, "The delivery count");
      equal((await broker.nack(second.lease.receipt)).deadLettered, true, "Whether the nack ended it");
    },
  },
  {
    id: "release-delay",
    title: "with a delay it comes back at exactly its end, uncounted",
    needs: ["Releaser"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      await broker.release(held.receipt, { delay: 12_000 });
      pass(11_999);
      await receiveNothing(broker, "one tick before the delay's end");
      pass(1);
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count");
    },
  },
  {
    id: "release-negative",
    title: "a negative delay is read as 0",
    needs: ["Releaser"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.release(held.receipt, { delay: -60_000 });
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count");
    },
  },
  {
    id: "release-argument",
    title: "a delay that cannot be recorded is refused, and the lease stays",
    needs: ["Releaser"],
    async run({ broker, clock }) {
      const { lease: held } = await lease(broker);
      for (const delay of [NaN, Infinity, maxInstant - clock.now() + 1, "5"]) {
        const release = () => broker.release(held.receipt, { delay: delay as number });
        await refuses(release, "QUEUE_MISCONFIGURED", `A delay of ${delay}`, "delay");
      }
      await broker.ack(held.receipt);
    },
  },
  {
    id: "release-void",
    title: "the receipt is void afterwards",
    needs: ["Releaser"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.release(held.receipt);
      await refuses(() => broker.release(held.receipt), "LEASE_EXPIRED", "A second release");
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack after the release");
      await refuses(() => broker.nack(held.receipt), "LEASE_EXPIRED", "A nack after the release");
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count");
    },
  },
  {
    id: "release-refused",
    title: "a lapsed or unknown receipt is refused and nothing moves",
    needs: ["Releaser"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      await refuses(() => broker.release(asReceipt("nonsense")), "UNKNOWN_RECEIPT", "A release of nonsense");
      await receiveNothing(broker, "after the refusal");
      pass(30_000);
      await refuses(() => broker.release(held.receipt), "LEASE_EXPIRED", "A release at the lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
];
