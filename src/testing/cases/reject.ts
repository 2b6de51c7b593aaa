/**
 * Giving a message up at once.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { equal, refuses } from "../assert.ts";
import { type CaseDefinition } from "../case.ts";
import { allDeadLetters, asReceipt, lease, onlyDeadLetter, receiveNothing, receiveOne } from "../steps.ts";

/** Giving a message up. */
export const rejectCases: readonly CaseDefinition[] = [
  {
    id: "reject-ends",
    title: "a rejected message does not come back, whatever attempts were left",
    needs: ["Rejecter"],
    policy: { maxDeliveries: 10 },
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      equal(await broker.reject(held.receipt, new Error("no")), undefined, "What reject resolves with");
      await receiveNothing(broker, "after the rejection");
      pass(3_600_000);
      await receiveNothing(broker, "an hour later");
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack after the rejection");
      await refuses(() => broker.reject(held.receipt), "LEASE_EXPIRED", "A second rejection");
    },
  },
  {
    id: "reject-record",
    title: "it becomes a dead letter with the count it had and the cause as a final nack records it",
    needs: ["Rejecter", "DeadLetterReader"],
    policy: { maxDeliveries: 10 },
    async run({ broker, clock, pass }) {
      const first = await lease(broker);
      await broker.nack(first.lease.receipt);
      const second = await receiveOne(broker);
      pass(5_000);
      const cause = new QueueError("TASK_UNDECODABLE", "private");
      await broker.reject(second.lease.receipt, cause);
      equal(await onlyDeadLetter(broker), {
        message: first.message,
        failedAt: new Date(clock.now()),
        reason: "TASK_UNDECODABLE",
        cause: cause.publicMessage,
        code: cause.code,
        deliveries: 2,
        priority: 0,
      }, "The dead letter");
    },
  },
  {
    id: "reject-unreported",
    title: "without a cause the dead letter says that nobody explained",
    needs: ["Rejecter", "DeadLetterReader"],
    async run({ broker }) {
      await broker.reject((await lease(broker)).lease.receipt);
      const { reason, cause, code } = await onlyDeadLetter(broker);
      equal({ reason, cause, code }, { reason: "UNREPORTED", cause: "", code: 0 }, "What is recorded");
    },
  },
  {
    id: "reject-refused",
    title: "a lapsed or unknown receipt is refused and nothing moves",
    needs: ["Rejecter", "DeadLetterReader"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      await refuses(() => broker.reject(asReceipt("nonsense")), "UNKNOWN_RECEIPT", "A rejection of nonsense");
      pass(30_000);
      await refuses(() => broker.reject(held.receipt), "LEASE_EXPIRED", "A rejection at the lease's end");
      equal(await allDeadLetters(broker), [], "The dead letters");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
];
