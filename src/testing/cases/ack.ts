/**
 * Acknowledging, and every receipt that is refused.
 *
 * @module
 */

import { equal, refuses, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { abortedSignal, asReceipt, lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Strings that no broker ever issues. */
export const nonsenseReceipts: readonly string[] = [
  "",
  " ",
  "nonsense",
  "0",
  "null",
  "../../../etc/passwd",
  "a/b/c",
  "..",
  ".",
  "a.b.c.d.e.f.g",
  "-----",
  ":::::",
  "receipt\u0000",
  "\u{1f600}",
  "\ud800",
  "__proto__",
  "constructor",
  "x".repeat(100_000),
];

/** Changes of a genuine receipt. */
function forgeries(receipt: string): string[] {
  const swapped = (text: string, index: number) => {
    const other = text[index] === "0" ? "1" : "0";
    return text.slice(0, index) + other + text.slice(index + 1);
  };
  return [
    receipt + "0",
    receipt + "/",
    "0" + receipt,
    receipt.slice(0, -1),
    receipt.slice(1),
    swapped(receipt, 0),
    swapped(receipt, receipt.length >> 1),
    swapped(receipt, receipt.length - 1),
    receipt.toUpperCase() === receipt ? receipt.toLowerCase() : receipt.toUpperCase(),
  ].filter((text) => text !== receipt);
}

/** Acknowledging. */
export const ackCases: readonly CaseDefinition[] = [
  {
    id: "ack-removes",
    title: "an acknowledged message never comes back",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      equal(await broker.ack(held.receipt), undefined, "What ack resolves with");
      await receiveNothing(broker, "after the ack");
      pass(365 * 24 * 3_600_000);
      await receiveNothing(broker, "a year later");
    },
  },
  {
    id: "ack-last-tick",
    title: "an ack one tick before the lease's end lands",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(29_999);
      await broker.ack(held.receipt);
      pass(60_000);
      await receiveNothing(broker, "after the ack");
    },
  },
  {
    id: "ack-lapsed",
    title: "from the lease's end on an ack is refused, though nobody took the message",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(30_000);
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack at the lease's end");
      pass(1_000_000);
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack long after the lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "ack-stale",
    title: "a stale receipt removes nothing from the new holder",
    async run({ broker, pass }) {
      const first = await lease(broker);
      pass(30_000);
      const second = await receiveOne(broker);
      await refuses(() => broker.ack(first.lease.receipt), "LEASE_EXPIRED", "The first holder's ack");
      await refuses(() => broker.nack(first.lease.receipt), "LEASE_EXPIRED", "The first holder's nack");
      await broker.ack(second.lease.receipt);
      pass(60_000);
      await receiveNothing(broker, "after the second holder's ack");
    },
  },
  {
    id: "ack-twice",
    title: "a second ack of one receipt is refused as expired",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.ack(held.receipt);
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "The second ack");
      await refuses(() => broker.nack(held.receipt), "LEASE_EXPIRED", "A nack after the ack");
    },
  },
  {
    id: "ack-nonsense",
    title: "a string that is no receipt is unknown, and changes nothing",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      for (const text of nonsenseReceipts) {
        await refuses(
          () => broker.ack(asReceipt(text)),
          "UNKNOWN_RECEIPT",
          `An ack of ${JSON.stringify(text.slice(0, 30))}`,
        );
        await refuses(
          () => broker.nack(asReceipt(text)),
          "UNKNOWN_RECEIPT",
          `A nack of ${JSON.stringify(text.slice(0, 30))}`,
        );
      }
      pass(1_000);
      await broker.ack(held.receipt);
    },
  },
  {
    id: "ack-id",
    title: "a message id is no receipt",
    async run({ broker }) {
      const { message, lease: held } = await lease(broker);
      await refuses(() => broker.ack(asReceipt(message.id)), "UNKNOWN_RECEIPT", "An ack of the message id");
      await broker.ack(held.receipt);
    },
  },
  {
    id: "ack-forged",
    title: "a receipt that was tampered with is refused, and changes nothing",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.publish(bytes("other"));
      const other = await receiveOne(broker);
      for (const text of forgeries(held.receipt)) {
        if (text === other.lease.receipt) continue;
        await refuses(() => broker.ack(asReceipt(text)), ["UNKNOWN_RECEIPT", "LEASE_EXPIRED"], `An ack of ${text}`);
      }
      await broker.ack(other.lease.receipt);
      await broker.ack(held.receipt);
    },
  },
  {
    id: "ack-foreign",
    title: "a receipt of another queue is refused there, and holds here",
    async run({ broker, open }) {
      const other = await open();
      const { lease: held } = await lease(broker);
      const { lease: theirs } = await lease(other);
      await refuses(() => other.ack(held.receipt), ["UNKNOWN_RECEIPT", "LEASE_EXPIRED"], "An ack in another queue");
      await broker.ack(held.receipt);
      await other.ack(theirs.receipt);
    },
  },
  {
    id: "ack-aborted",
    title: "an aborted ack rejects with the signal's reason and removes nothing",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.ack(held.receipt, { signal }), reason, "An aborted ack");
      await broker.ack(held.receipt);
    },
  },
  {
    id: "ack-one-of-many",
    title: "an ack removes its own message and no other",
    async run({ broker, pass }) {
      for (const text of ["one", "two", "three"]) await broker.publish(bytes(text));
      const batch = await broker.receive(3);
      const acked = batch.find((delivery) => payloadText(delivery) === "two")!;
      await broker.ack(acked.lease.receipt);
      pass(30_000);
      const texts = (await broker.receive(10)).map(payloadText);
      equal(texts.sort(), ["one", "three"], "What comes back");
    },
  },
];
