/**
 * Messages that grow too old.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { reasons } from "../../core/reasons.ts";
import { equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { lease, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const aging = { maxAge: 60_000, maxDeliveries: 5 };
const { MESSAGE_EXPIRED } = reasons;

/** Expiry. */
export const expiryCases: readonly CaseDefinition[] = [
  {
    id: "expiry-boundary",
    title: "one tick before its greatest age a message is delivered, and at exactly that age never again",
    needs: ["expiry"],
    policy: aging,
    async run({ broker, pass }) {
      await broker.publish(bytes("old"));
      pass(1);
      await broker.publish(bytes("young"));
      pass(59_999);
      const delivery = await receiveOne(broker);
      equal(payloadText(delivery), "young", "What is delivered");
      await receiveNothing(broker, "beside it");
      await broker.nack(delivery.lease.receipt);
      pass(1);
      await receiveNothing(broker, "at the second one's greatest age");
    },
  },
  {
    id: "expiry-evidence",
    title: "an expired message becomes a dead letter that says so",
    needs: ["expiry", "DeadLetterReader"],
    policy: aging,
    async run({ broker, clock, pass }) {
      const message = await broker.publish(bytes("work"));
      pass(90_000);
      equal(await broker.deadLetters({ max: 10 }), [], "The dead letters before anybody received");
      await receiveNothing(broker, "beyond the greatest age");
      equal(await onlyDeadLetter(broker), {
        message: { ...message, payload: bytes("work") },
        failedAt: new Date(clock.now()),
        reason: "MESSAGE_EXPIRED",
        cause: MESSAGE_EXPIRED.text,
        code: MESSAGE_EXPIRED.code,
        deliveries: 0,
        priority: 0,
      }, "The dead letter");
    },
  },
  {
    id: "expiry-held",
    title: "a lease that is held is not taken away, and its ack lands after the age",
    needs: ["expiry"],
    policy: { ...aging, visibilityTimeout: 120_000 },
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(90_000);
      await receiveNothing(broker, "while the message is leased");
      await broker.ack(held.receipt);
    },
  },
  {
    id: "expiry-handed-back",
    title: "one that is handed back after its age is not delivered again",
    needs: ["expiry", "DeadLetterReader"],
    policy: { ...aging, visibilityTimeout: 120_000 },
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(90_000);
      await broker.nack(held.receipt, new QueueError("TASK_TIMEOUT"));
      await receiveNothing(broker, "after the nack");
      const dead = await onlyDeadLetter(broker);
      equal([dead.reason, dead.deliveries], ["MESSAGE_EXPIRED", 1], "The reason and the count");
    },
  },
  {
    id: "expiry-last-lapse",
    title: "lapsed, out of attempts and expired at once, it died of its lease",
    needs: ["expiry", "DeadLetterReader"],
    policy: { maxAge: 60_000, maxDeliveries: 1 },
    async run({ broker, pass }) {
      await lease(broker);
      pass(90_000);
      await receiveNothing(broker, "after the lapse");
      equal((await onlyDeadLetter(broker)).reason, "LEASE_EXPIRED", "The reason");
    },
  },
  {
    id: "expiry-uncounted",
    title: "expired messages on the way do not fill the batch",
    needs: ["expiry"],
    policy: aging,
    async run({ broker, pass }) {
      for (let index = 0; index < 10; index++) await broker.publish(bytes("old"));
      pass(60_000);
      await broker.publish(bytes("one"));
      pass(1);
      await broker.publish(bytes("two"));
      equal((await broker.receive(2)).map(payloadText), ["one", "two"], "What came behind ten that expired");
    },
  },
  {
    id: "expiry-many",
    title: "thousands that expired are all buried, some at a time, and what lives behind them is delivered",
    needs: ["expiry", "BatchPublisher", "Counter"],
    policy: aging,
    async run({ broker, pass }) {
      await broker.publishMany(Array.from({ length: 2_500 }, () => bytes("old")));
      pass(60_000);
      await broker.publish(bytes("young"));
      const texts: string[] = [];
      // Every call either hands something out or buries some: this many calls are far more than enough.
      for (let call = 0; call < 200 && texts.length === 0; call++) {
        texts.push(...(await broker.receive(10)).map(payloadText));
      }
      equal(texts, ["young"], "What is delivered");
      const { queued, leased, dead } = await broker.stats();
      equal([queued, leased, dead], [0, 1, 2_500], "The counts");
    },
  },
  {
    id: "expiry-copied",
    title: "a message written with an old instant expires at the next receive",
    needs: ["expiry", "MessageWriter", "DeadLetterReader"],
    policy: aging,
    async run({ broker, clock }) {
      const id = await broker.putMessage({
        message: { id: "", enqueuedAt: new Date(clock.now() - 60_000), payload: bytes("old"), headers: {} },
        visibleAt: new Date(clock.now() - 60_000),
        deliveries: 3,
        leased: false,
        priority: 0,
      });
      await receiveNothing(broker, "after it was written");
      const dead = await onlyDeadLetter(broker);
      equal([dead.message.id, dead.reason, dead.deliveries], [id, "MESSAGE_EXPIRED", 3], "The dead letter");
    },
  },
  {
    id: "expiry-never",
    title: "without a greatest age nothing expires",
    async run({ broker, pass }) {
      await broker.publish(bytes("work"));
      pass(100 * 365 * 24 * 3_600_000);
      equal(payloadText(await receiveOne(broker)), "work", "What is delivered after a century");
    },
  },
];
