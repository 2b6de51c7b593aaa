/**
 * Receiving: leases, their ends, and what comes back.
 *
 * @module
 */

import { ensure, equal, notEqual, refuses, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { abortedSignal, drain, lease, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Values that are no batch size. */
export const badBatchSizes: readonly unknown[] = [0, -1, 1.5, NaN, Infinity, -Infinity, "1", null, undefined];

/** Receiving. */
export const receiveCases: readonly CaseDefinition[] = [
  {
    id: "receive-empty",
    title: "an empty queue answers with an empty array",
    async run({ broker }) {
      equal(await broker.receive(1), [], "What an empty queue answers");
      equal(await broker.receive(1_000), [], "What an empty queue answers");
    },
  },
  {
    id: "receive-max",
    title: "at most so many messages come as were asked for",
    async run({ broker }) {
      for (let index = 0; index < 5; index++) await broker.publish(bytes(`${index}`));
      equal((await broker.receive(3)).length, 3, "The first batch");
      equal((await broker.receive(3)).length, 2, "The second batch");
      equal((await broker.receive(3)).length, 0, "The third batch");
    },
  },
  {
    id: "receive-batch-size",
    title: "a batch size that is no positive whole number is refused",
    async run({ broker }) {
      await broker.publish(bytes("work"));
      for (const max of badBatchSizes) {
        await refuses(() => broker.receive(max as number), "INVALID_BATCH_SIZE", `A batch size of ${max}`, "max");
      }
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count after the refusals");
    },
  },
  {
    id: "receive-aborted",
    title: "an aborted receive takes no lease, and the batch size is looked at first",
    async run({ broker }) {
      await broker.publish(bytes("work"));
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.receive(1, { signal }), reason, "An aborted receive");
      await refuses(() => broker.receive(0, { signal }), "INVALID_BATCH_SIZE", "An aborted receive of none");
      equal((await receiveOne(broker)).deliveries, 1, "The delivery count after the abort");
    },
  },
  {
    id: "receive-delivery",
    title: "a delivery names its lease, its count and its level",
    async run({ broker, clock }) {
      const { id } = await broker.publish(bytes("work"));
      const delivery = await receiveOne(broker);
      equal(delivery.lease.expiresAt, new Date(clock.now() + 30_000), "The end of the lease");
      equal(delivery.deliveries, 1, "The delivery count");
      equal(delivery.priority, 0, "The level");
      equal(delivery.message.id, id, "The id");
      ensure(delivery.lastFailure === undefined, "A first delivery has a last failure");
      ensure(typeof delivery.lease.receipt === "string" && delivery.lease.receipt !== "", "The receipt is empty");
      notEqual(delivery.lease.receipt, id, "The receipt");
    },
  },
  {
    id: "receive-exclusive",
    title: "a leased message is nobody else's until exactly the lease's end",
    async run({ broker, pass }) {
      await lease(broker);
      await receiveNothing(broker, "right after a lease");
      pass(29_999);
      await receiveNothing(broker, "one tick before the lease's end");
      pass(1);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count at the lease's end");
    },
  },
  {
    id: "receive-redelivered",
    title: "a redelivery is the same message with one more delivery and another receipt",
    async run({ broker, pass }) {
      const first = await lease(broker);
      pass(45_000);
      const second = await receiveOne(broker);
      equal(second.message, first.message, "The message redelivered");
      equal(second.deliveries, 2, "The delivery count");
      notEqual(second.lease.receipt, first.lease.receipt, "The second receipt");
    },
  },
  {
    id: "receive-lapse-uncharged",
    title: "a lapsed lease is not charged the retry delay, and one call reclaims and redelivers",
    policy: { retryDelay: 600_000 },
    async run({ broker, clock, pass }) {
      await lease(broker);
      pass(30_000);
      const { lease: second } = await receiveOne(broker);
      equal(second.expiresAt, new Date(clock.now() + 30_000), "The end of the second lease");
    },
  },
  {
    id: "receive-lapse-count",
    title: "every lapse counts one delivery, however long nobody looked",
    policy: { maxDeliveries: 10 },
    async run({ broker, pass }) {
      await lease(broker);
      for (let count = 2; count <= 5; count++) {
        pass(30_000 * count * 10);
        equal((await receiveOne(broker)).deliveries, count, "The delivery count");
      }
    },
  },
  {
    id: "receive-lapse-last",
    title: "a lease that lapses on the last attempt is not delivered again",
    policy: { maxDeliveries: 2 },
    async run({ broker, pass }) {
      await lease(broker);
      pass(30_000);
      await receiveOne(broker);
      pass(30_000);
      await receiveNothing(broker, "after the last lease lapsed");
      pass(3_600_000);
      await receiveNothing(broker, "an hour later");
    },
  },
  {
    id: "receive-lapse-buried",
    title: "a lease that lapses on the last attempt becomes a dead letter that says so",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 2 },
    async run({ broker, clock, pass }) {
      const { message } = await lease(broker);
      pass(30_000);
      await receiveOne(broker);
      pass(31_000);
      equal((await broker.deadLetters({ max: 10 })).length, 0, "The number of dead letters before anybody received");
      await receiveNothing(broker, "after the last lease lapsed");
      equal(await onlyDeadLetter(broker), {
        message,
        failedAt: new Date(clock.now()),
        reason: "LEASE_EXPIRED",
        cause: "",
        code: 0,
        deliveries: 2,
        priority: 0,
      }, "The dead letter");
    },
  },
  {
    id: "receive-buried-uncounted",
    title: "messages that are buried on the way do not fill the batch",
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      for (let index = 0; index < 5; index++) await broker.publish(bytes("dying"));
      equal((await broker.receive(5)).length, 5, "The number of messages leased");
      await broker.publish(bytes("one"));
      await broker.publish(bytes("two"));
      pass(30_000);
      const texts = (await broker.receive(2)).map(payloadText);
      equal(texts.sort(), ["one", "two"], "What came beside five that were buried");
    },
  },
  {
    id: "receive-lapse-failure",
    title: "a delivery after a lapse tells of it",
    needs: ["lastFailure"],
    async run({ broker, pass }) {
      await lease(broker);
      pass(30_000);
      equal((await receiveOne(broker)).lastFailure?.reason, "LEASE_EXPIRED", "The reason of the last failure");
    },
  },
  {
    id: "receive-keeps",
    title: "receiving removes nothing",
    async run({ broker, pass }) {
      for (let index = 0; index < 3; index++) await broker.publish(bytes(`${index}`));
      equal((await broker.receive(3)).length, 3, "The number of messages received");
      pass(30_000);
      const texts = (await drain(broker)).map(payloadText);
      equal(texts.sort(), ["0", "1", "2"], "What is receivable after the leases lapsed");
    },
  },
  {
    id: "receive-partial-settle",
    title: "of a batch, what was not settled comes back and what was does not",
    async run({ broker, pass }) {
      for (let index = 0; index < 4; index++) await broker.publish(bytes(`${index}`));
      const batch = await broker.receive(4);
      for (const { lease: held } of batch.filter((delivery) => Number(payloadText(delivery)) % 2 === 0)) {
        await broker.ack(held.receipt);
      }
      pass(30_000);
      equal((await drain(broker)).map(payloadText).sort(), ["1", "3"], "What comes back");
    },
  },
];
