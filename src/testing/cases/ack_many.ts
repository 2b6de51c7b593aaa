/**
 * Acknowledging many at a time.
 *
 * @module
 */

import { AckOutcome } from "../../core/values.ts";
import { equal, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { abortedSignal, asReceipt, drainTexts, lease, receiveNothing, receiveOne } from "../steps.ts";

const { acknowledged, leaseExpired, unknownReceipt } = AckOutcome;

/** Acknowledging many. */
export const ackManyCases: readonly CaseDefinition[] = [
  {
    id: "ack-many-outcomes",
    title: "there is one outcome a receipt, in order, and a refused one does not stop the others",
    needs: ["Acker"],
    async run({ broker, pass }) {
      const lapsed = await lease(broker, "lapsed");
      pass(30_000);
      const retaken = await receiveOne(broker);
      const first = await lease(broker, "first");
      const second = await lease(broker, "second");
      const receipts = [
        asReceipt("nonsense"),
        first.lease.receipt,
        lapsed.lease.receipt,
        asReceipt(""),
        second.lease.receipt,
      ];
      equal(
        await broker.ackMany(receipts),
        [unknownReceipt, acknowledged, leaseExpired, unknownReceipt, acknowledged],
        "The outcomes",
      );
      await broker.ack(retaken.lease.receipt);
      pass(60_000);
      await receiveNothing(broker, "after all was acknowledged");
    },
  },
  {
    id: "ack-many-twice",
    title: "one receipt twice is acknowledged, then expired",
    needs: ["Acker"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      equal(await broker.ackMany([held.receipt, held.receipt]), [acknowledged, leaseExpired], "The outcomes");
      equal(await broker.ackMany([held.receipt]), [leaseExpired], "The outcome of a second call");
    },
  },
  {
    id: "ack-many-empty",
    title: "an empty batch is no error",
    needs: ["Acker"],
    async run({ broker }) {
      equal(await broker.ackMany([]), [], "The outcomes");
    },
  },
  {
    id: "ack-many-large",
    title: "more than a thousand receipts go through at once, and others stay",
    needs: ["Acker"],
    async run({ broker, pass }) {
      const publications = Array.from({ length: 1_200 }, (_, index) => broker.publish(bytes(`${index}`)));
      await Promise.all(publications);
      const received = await broker.receive(1_200);
      equal(received.length, 1_200, "The number of messages received");
      const kept = new Set(["7", "600", "1199"]);
      const texts = received.map(({ message }) => new TextDecoder().decode(message.payload));
      const receipts = received.map(({ lease: held }) => held.receipt).filter((_, index) => !kept.has(texts[index]!));
      const outcomes = await broker.ackMany(receipts);
      equal(outcomes.length, 1_197, "The number of outcomes");
      equal(outcomes.every((outcome) => outcome === acknowledged), true, "Whether all were acknowledged");
      pass(30_000);
      equal((await drainTexts(broker)).sort(), [...kept].sort(), "What comes back");
    },
  },
  {
    id: "ack-many-untouched",
    title: "the array of receipts is the caller's and stays as it is",
    needs: ["Acker"],
    async run({ broker }) {
      const receipts = Object.freeze([(await lease(broker)).lease.receipt, asReceipt("nonsense")]);
      equal(await broker.ackMany(receipts), [acknowledged, unknownReceipt], "The outcomes");
    },
  },
  {
    id: "ack-many-aborted",
    title: "an aborted batch rejects with the signal's reason and removes nothing",
    needs: ["Acker"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.ackMany([held.receipt], { signal }), reason, "An aborted batch");
      await broker.ack(held.receipt);
    },
  },
];
