/**
 * Acknowledging and publishing as one step.
 *
 * @module
 */

import { equal, notEqual, refuses, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { abortedSignal, asReceipt, lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Acknowledging and publishing. */
export const ackAndPublishCases: readonly CaseDefinition[] = [
  {
    id: "ack-and-publish",
    title: "the held message goes and the next one comes",
    needs: ["AckPublisher"],
    async run({ broker, clock, pass }) {
      const first = await lease(broker, "first");
      pass(1_000);
      const message = await broker.ackAndPublish(first.lease.receipt, bytes("second"));
      notEqual(message.id, first.message.id, "The next id");
      equal(message.enqueuedAt, new Date(clock.now()), "The instant of the next message");
      const second = await receiveOne(broker);
      equal(second.message, message, "The message delivered");
      equal(second.deliveries, 1, "The delivery count");
      await broker.ack(second.lease.receipt);
      await refuses(() => broker.ack(first.lease.receipt), "LEASE_EXPIRED", "An ack of the first");
      pass(60_000);
      await receiveNothing(broker, "after the second's ack");
    },
  },
  {
    id: "ack-and-publish-options",
    title: "the next message takes an instant, a level and headers",
    needs: ["AckPublisher", "at", "priority", "headers"],
    async run({ broker, clock, pass }) {
      const { lease: held } = await lease(broker);
      const options = { at: new Date(clock.now() + 5_000), priority: 1, headers: { name: "value" } } as const;
      await broker.ackAndPublish(held.receipt, bytes("next"), options);
      pass(4_999);
      await receiveNothing(broker, "one tick before the instant");
      pass(1);
      const next = await receiveOne(broker);
      equal([payloadText(next), next.priority], ["next", 1], "The delivery at the instant");
      equal({ ...next.message.headers }, { name: "value" }, "Its headers");
    },
  },
  {
    id: "ack-and-publish-refused-receipt",
    title: "with a lapsed or unknown receipt nothing is published",
    needs: ["AckPublisher"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker, "first");
      const publish = (receipt: string) => () => broker.ackAndPublish(asReceipt(receipt), bytes("next"));
      await refuses(publish("nonsense"), "UNKNOWN_RECEIPT", "With nonsense");
      pass(30_000);
      await refuses(publish(held.receipt), "LEASE_EXPIRED", "At the lease's end");
      equal((await broker.receive(10)).map(payloadText), ["first"], "What is receivable");
    },
  },
  {
    id: "ack-and-publish-refused-message",
    title: "with a message that is refused nothing is acknowledged",
    needs: ["AckPublisher", "priority"],
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const oversized = () => broker.ackAndPublish(held.receipt, new Uint8Array(11));
      await refuses(oversized, "MESSAGE_TOO_LARGE", "11 bytes", "payload");
      const misplaced = () => broker.ackAndPublish(held.receipt, bytes("x"), { priority: 5 as 2 });
      await refuses(misplaced, "QUEUE_MISCONFIGURED", "A level of 5", "priority");
      await receiveNothing(broker, "after the refusals");
      await broker.ack(held.receipt);
    },
  },
  {
    id: "ack-and-publish-aborted",
    title: "an aborted call does neither",
    needs: ["AckPublisher"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const { signal, reason } = abortedSignal();
      const call = () => broker.ackAndPublish(held.receipt, bytes("next"), { signal });
      await rejectsWith(call, reason, "An aborted call");
      await receiveNothing(broker, "after the abort");
      await broker.ack(held.receipt);
    },
  },
];
