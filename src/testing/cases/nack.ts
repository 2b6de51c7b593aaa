/**
 * Handing back after a failure.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { equal, refuses, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition, defaultPolicy } from "../case.ts";
import { abortedSignal, lease, receiveNothing, receiveOne } from "../steps.ts";

/** Handing back. */
export const nackCases: readonly CaseDefinition[] = [
  {
    id: "nack-delay",
    title: "a message comes back at exactly the policy's delay after the nack",
    policy: { retryDelay: 7_000 },
    async run({ broker, clock, pass }) {
      const first = await lease(broker);
      pass(2_000);
      const verdict = await broker.nack(first.lease.receipt);
      const visibleAt = new Date(clock.now() + 7_000);
      equal(verdict, { deliveries: 1, visibleAt, deadLettered: false }, "What the nack led to");
      await receiveNothing(broker, "right after the nack");
      pass(6_999);
      await receiveNothing(broker, "one tick before the delay's end");
      pass(1);
      const second = await receiveOne(broker);
      equal(second.deliveries, 2, "The delivery count");
      equal(second.message, first.message, "The message redelivered");
    },
  },
  {
    id: "nack-at-once",
    title: "without a delay it is receivable at once",
    async run({ broker, clock }) {
      const { lease: held } = await lease(broker);
      equal((await broker.nack(held.receipt)).visibleAt, new Date(clock.now()), "When it is visible again");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "nack-last",
    title: "the nack of the last attempt ends it",
    policy: { maxDeliveries: 3, retryDelay: 1_000 },
    async run({ broker, pass }) {
      let { lease: held } = await lease(broker);
      for (let count = 1; count <= 2; count++) {
        const verdict = await broker.nack(held.receipt, new Error("failed"));
        equal([verdict.deliveries, verdict.deadLettered], [count, false], "The count and whether it is dead");
        pass(1_000);
        ({ lease: held } = await receiveOne(broker));
      }
      const verdict = await broker.nack(held.receipt, new Error("failed"));
      equal(verdict, { deliveries: 3, deadLettered: true }, "What the last nack led to");
      equal(verdict.visibleAt, undefined, "When it is visible again");
      pass(3_600_000);
      await receiveNothing(broker, "after the last attempt");
    },
  },
  {
    id: "nack-single-attempt",
    title: "with one attempt allowed, the first nack ends it",
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      equal(await broker.nack(held.receipt), { deliveries: 1, deadLettered: true }, "What the nack led to");
      await receiveNothing(broker, "after the nack");
    },
  },
  {
    id: "nack-any-cause",
    title: "whatever was thrown is accepted as the cause",
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const hostile = {
        get cause() {
          return hostile;
        },
      };
      const circular = new Error("circular");
      circular.cause = circular;
      const causes = [undefined, null, 0, "text", Symbol("s"), {}, circular, hostile, new AggregateError([circular])];
      for (const cause of causes) {
        const { lease: held } = await lease(broker);
        equal((await broker.nack(held.receipt, cause)).deadLettered, true, "Whether it is dead");
      }
    },
  },
  {
    id: "nack-lapsed",
    title: "a nack from the lease's end on is refused and moves nothing",
    policy: { retryDelay: 600_000 },
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(30_000);
      await refuses(() => broker.nack(held.receipt), "LEASE_EXPIRED", "A nack at the lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "nack-twice",
    title: "a second nack of one receipt is refused and counts nothing",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.nack(held.receipt);
      await refuses(() => broker.nack(held.receipt), "LEASE_EXPIRED", "The second nack");
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack after the nack");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "nack-aborted",
    title: "an aborted nack rejects with the signal's reason and moves nothing",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.nack(held.receipt, undefined, { signal }), reason, "An aborted nack");
      await receiveNothing(broker, "after the aborted nack");
      await broker.ack(held.receipt);
    },
  },
  {
    id: "nack-own-policy",
    title: "of two brokers over one queue, each applies its own policy",
    needs: ["reopen"],
    policy: { maxDeliveries: 5, retryDelay: 1_000 },
    async run({ broker, clock, pass, reopen }) {
      const strict = await reopen({ policy: { ...defaultPolicy, maxDeliveries: 2, retryDelay: 9_000 } });
      await broker.publish(bytes("work"));
      const first = await receiveOne(broker);
      const verdict = await strict.nack(first.lease.receipt);
      equal(verdict.visibleAt, new Date(clock.now() + 9_000), "When the second broker's nack makes it visible");
      pass(9_000);
      const second = await receiveOne(broker);
      equal((await strict.nack(second.lease.receipt)).deadLettered, true, "Whether the second broker gave it up");
    },
  },
  {
    id: "nack-last-failure",
    title: "the next delivery tells what went wrong last",
    needs: ["lastFailure"],
    policy: { maxDeliveries: 5 },
    async run({ broker }) {
      const { lease: first } = await lease(broker);
      const cause = new Error("outer", { cause: new QueueError("TASK_UNDECODABLE") });
      await broker.nack(first.receipt, cause);
      const second = await receiveOne(broker);
      equal(second.lastFailure, { reason: "TASK_UNDECODABLE", code: 262_658 }, "The last failure");
      await broker.nack(second.lease.receipt, new QueueError("TASK_TIMEOUT"));
      const third = await receiveOne(broker);
      equal(third.lastFailure, { reason: "TASK_TIMEOUT", code: 262_660 }, "The last failure");
      await broker.nack(third.lease.receipt, new RangeError("foreign"));
      equal((await receiveOne(broker)).lastFailure?.code, 0, "The code of a foreign failure");
    },
  },
  {
    id: "nack-beyond-maximum",
    title: "a message whose count is beyond the maximum is delivered once more and dies on its nack",
    needs: ["MessageWriter"],
    policy: { maxDeliveries: 2 },
    async run({ broker, clock }) {
      await broker.putMessage({
        message: { id: "", enqueuedAt: new Date(clock.now()), payload: bytes("work"), headers: {} },
        visibleAt: new Date(clock.now()),
        deliveries: 7,
        leased: false,
        priority: 0,
      });
      const delivery = await receiveOne(broker);
      equal(delivery.deliveries, 8, "The delivery count");
      equal(await broker.nack(delivery.lease.receipt), { deliveries: 8, deadLettered: true }, "What the nack led to");
    },
  },
];
