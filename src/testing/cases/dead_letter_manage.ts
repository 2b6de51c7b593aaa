/**
 * Replaying and deleting one dead letter.
 *
 * @module
 */

import { equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { allDeadLetters, bury, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";
import { nonsenseReceipts } from "./ack.ts";

/** Replaying and deleting. */
export const manageCases: readonly CaseDefinition[] = [
  {
    id: "replay-message",
    title: "a replayed message is receivable at once, the same, with all its attempts back",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 2, retryDelay: 0 },
    async run({ broker, pass }) {
      const { message } = await bury(broker, "work");
      pass(60_000);
      equal(await broker.replayDeadLetter(message.id), undefined, "What the replay resolves with");
      equal(await allDeadLetters(broker), [], "The dead letters after the replay");
      const first = await receiveOne(broker);
      equal(first.message, message, "The message replayed");
      equal(first.deliveries, 1, "The delivery count");
      equal(first.lastFailure, undefined, "The last failure of a new life");
      equal((await broker.nack(first.lease.receipt)).deadLettered, false, "Whether the first nack ended it");
      const second = await receiveOne(broker);
      equal((await broker.nack(second.lease.receipt)).deadLettered, true, "Whether the second nack ended it");
      equal((await onlyDeadLetter(broker)).message.id, message.id, "The id of the next dead letter");
    },
  },
  {
    id: "replay-acked",
    title: "a replayed message that is acknowledged is gone from everywhere",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      const { message } = await bury(broker, "work");
      await broker.replayDeadLetter(message.id);
      await broker.ack((await receiveOne(broker)).lease.receipt);
      pass(60_000);
      await receiveNothing(broker, "after the ack");
      equal(await allDeadLetters(broker), [], "The dead letters");
    },
  },
  {
    id: "replay-one",
    title: "a replay queues its own dead letter and no other",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      await bury(broker, "one");
      const { message } = await bury(broker, "two");
      await bury(broker, "three");
      await broker.replayDeadLetter(message.id);
      equal(payloadText(await receiveOne(broker)), "two", "What is receivable");
      equal((await allDeadLetters(broker)).map(payloadText).sort(), ["one", "three"], "The dead letters");
    },
  },
  {
    id: "delete-one",
    title: "a deleted dead letter is gone, and no other is",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      await bury(broker, "one");
      const { message } = await bury(broker, "two");
      equal(await broker.deleteDeadLetter(message.id), undefined, "What the deletion resolves with");
      equal((await allDeadLetters(broker)).map(payloadText), ["one"], "The dead letters");
      await receiveNothing(broker, "after the deletion");
    },
  },
  {
    id: "manage-unknown",
    title: "an id without a dead letter is refused, and nothing moves",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { message } = await bury(broker, "work");
      const live = await broker.publish(bytes("live"));
      const { id } = message;
      const unknown = [...nonsenseReceipts, live.id, id.slice(1), `${id}0`, `../${id}`, id.toLowerCase()];
      for (const text of unknown.filter((other) => other !== id)) {
        const what = JSON.stringify(text.slice(0, 30));
        await refuses(() => broker.replayDeadLetter(text), "DEAD_LETTER_NOT_FOUND", `A replay of ${what}`);
        await refuses(() => broker.deleteDeadLetter(text), "DEAD_LETTER_NOT_FOUND", `A deletion of ${what}`);
      }
      equal((await onlyDeadLetter(broker)).message.id, id, "The dead letter that is left");
      equal(payloadText(await receiveOne(broker)), "live", "What is receivable");
    },
  },
  {
    id: "manage-twice",
    title: "what was replayed or deleted is not found again",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { message: replayed } = await bury(broker, "replayed");
      await broker.replayDeadLetter(replayed.id);
      await refuses(() => broker.replayDeadLetter(replayed.id), "DEAD_LETTER_NOT_FOUND", "A second replay");
      await refuses(() => broker.deleteDeadLetter(replayed.id), "DEAD_LETTER_NOT_FOUND", "A deletion after the replay");
      await broker.ack((await receiveOne(broker)).lease.receipt);
      const { message: deleted } = await bury(broker, "deleted");
      await broker.deleteDeadLetter(deleted.id);
      await refuses(() => broker.deleteDeadLetter(deleted.id), "DEAD_LETTER_NOT_FOUND", "A second deletion");
      await refuses(() => broker.replayDeadLetter(deleted.id), "DEAD_LETTER_NOT_FOUND", "A replay after the deletion");
    },
  },
  {
    id: "replay-expired",
    title: "a dead letter that would expire at once is not replayed and stays",
    needs: ["DeadLetterReader", "DeadLetterManager", "expiry"],
    policy: { maxDeliveries: 1, maxAge: 60_000 },
    async run({ broker, pass }) {
      const { message } = await bury(broker, "work");
      pass(60_000);
      await refuses(() => broker.replayDeadLetter(message.id), "MESSAGE_EXPIRED", "A replay at the greatest age");
      equal((await onlyDeadLetter(broker)).message.id, message.id, "The dead letter");
      await receiveNothing(broker, "after the refusal");
    },
  },
  {
    id: "replay-young",
    title: "one tick before its greatest age it is replayed",
    needs: ["DeadLetterReader", "DeadLetterManager", "expiry"],
    policy: { maxDeliveries: 1, maxAge: 60_000 },
    async run({ broker, pass }) {
      const { message } = await bury(broker, "work");
      pass(59_999);
      await broker.replayDeadLetter(message.id);
      equal((await receiveOne(broker)).message.id, message.id, "The id delivered");
    },
  },
];
