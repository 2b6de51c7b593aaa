/**
 * Priority levels.
 *
 * @module
 */

import type { Priority } from "../../core/priority.ts";
import { equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { allLive, drainTexts, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const levels: readonly Priority[] = [-2, -1, 0, 1, 2];

/** Values that are no level. */
const badLevels: readonly unknown[] = [-3, 3, 0.5, NaN, Infinity, "1"];

/** Priority levels. */
export const priorityCases: readonly CaseDefinition[] = [
  {
    id: "priority-strict",
    title: "the highest level is always received first, and inside a level the order is by visibility",
    needs: ["priority"],
    async run({ broker, pass }) {
      for (const round of ["a", "b"]) {
        for (const priority of levels) {
          await broker.publish(bytes(`${priority}${round}`), { priority });
          pass(1);
        }
      }
      const expected = ["2a", "2b", "1a", "1b", "0a", "0b", "-1a", "-1b", "-2a", "-2b"];
      equal(await drainTexts(broker), expected, "The order of delivery");
    },
  },
  {
    id: "priority-batch",
    title: "a batch holds the highest levels, highest first",
    needs: ["priority"],
    async run({ broker, pass }) {
      for (const priority of levels) {
        await broker.publish(bytes(`${priority}`), { priority });
        pass(1);
      }
      equal((await broker.receive(3)).map(payloadText), ["2", "1", "0"], "The first batch");
      equal((await broker.receive(3)).map(payloadText), ["-1", "-2"], "The second batch");
    },
  },
  {
    id: "priority-late",
    title: "a higher level that arrives late overtakes all that wait",
    needs: ["priority"],
    async run({ broker, pass }) {
      for (let index = 0; index < 30; index++) {
        await broker.publish(bytes(`low ${index}`), { priority: -1 });
        pass(1);
      }
      equal(payloadText(await receiveOne(broker)), "low 0", "The first delivery");
      await broker.publish(bytes("urgent"), { priority: 2 });
      equal(payloadText(await receiveOne(broker)), "urgent", "The delivery after a late publication");
      equal(payloadText(await receiveOne(broker)), "low 1", "The delivery after that");
    },
  },
  {
    id: "priority-invisible",
    title: "a high message that is not visible yet holds nothing back",
    needs: ["priority", "at"],
    async run({ broker, clock, pass }) {
      await broker.publish(bytes("high"), { priority: 2, at: new Date(clock.now() + 5_000) });
      await broker.publish(bytes("low"), { priority: -2 });
      await broker.publish(bytes("lower"), { priority: -2 });
      equal(payloadText(await receiveOne(broker)), "low", "The delivery before the instant");
      pass(5_000);
      equal(await drainTexts(broker), ["high", "lower"], "The order of delivery afterwards");
    },
  },
  {
    id: "priority-kept",
    title: "the level stays through a nack and a lapse",
    needs: ["priority"],
    async run({ broker, pass }) {
      await broker.publish(bytes("work"), { priority: 2 });
      const first = await receiveOne(broker);
      equal(first.priority, 2, "The level delivered");
      await broker.nack(first.lease.receipt);
      await broker.publish(bytes("normal"));
      const second = await receiveOne(broker);
      equal([payloadText(second), second.priority], ["work", 2], "The delivery after a nack");
      pass(30_000);
      const third = await receiveOne(broker);
      equal([payloadText(third), third.priority], ["work", 2], "The delivery after a lapse");
    },
  },
  {
    id: "priority-released",
    title: "the level stays through a release",
    needs: ["priority", "Releaser"],
    async run({ broker }) {
      await broker.publish(bytes("work"), { priority: 1 });
      await broker.release((await receiveOne(broker)).lease.receipt);
      await broker.publish(bytes("normal"));
      const second = await receiveOne(broker);
      equal([payloadText(second), second.priority], ["work", 1], "The delivery after a release");
    },
  },
  {
    id: "priority-dead",
    title: "the level stays in the dead letter, and a replay queues the message there",
    needs: ["priority", "DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { id } = await broker.publish(bytes("work"), { priority: 2 });
      await broker.nack((await receiveOne(broker)).lease.receipt);
      equal((await onlyDeadLetter(broker)).priority, 2, "The level of the dead letter");
      await broker.publish(bytes("high"), { priority: 1 });
      await broker.replayDeadLetter(id);
      const replayed = await receiveOne(broker);
      equal([payloadText(replayed), replayed.priority], ["work", 2], "The delivery after a replay");
    },
  },
  {
    id: "priority-listed",
    title: "a listing shows the level, waiting and leased",
    needs: ["priority", "MessageReader"],
    async run({ broker }) {
      await broker.publish(bytes("work"), { priority: -2 });
      equal((await allLive(broker))[0]?.priority, -2, "The level while it waits");
      await receiveOne(broker);
      equal((await allLive(broker))[0]?.priority, -2, "The level while it is leased");
    },
  },
  {
    id: "priority-method",
    title: "publishPriority publishes at its level",
    needs: ["PriorityPublisher", "priority"],
    async run({ broker }) {
      for (const priority of levels) await broker.publishPriority(bytes(`${priority}`), priority);
      await broker.publish(bytes("plain"));
      equal(await drainTexts(broker), ["2", "1", "0", "plain", "-1", "-2"], "The order of delivery");
    },
  },
  {
    id: "priority-method-refused",
    title: "publishPriority refuses anything but a level, and payloads that are too large",
    needs: ["PriorityPublisher"],
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      for (const level of badLevels) {
        const publish = () => broker.publishPriority(bytes("work"), level as Priority);
        await refuses(publish, "QUEUE_MISCONFIGURED", `A level of ${level}`, "priority");
      }
      await refuses(() => broker.publishPriority(new Uint8Array(11), 1), "MESSAGE_TOO_LARGE", "11 bytes", "payload");
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "priority-refused",
    title: "the option refuses anything but a level, and nothing is published",
    needs: ["priority"],
    async run({ broker }) {
      for (const level of badLevels) {
        const publish = () => broker.publish(bytes("work"), { priority: level as Priority });
        await refuses(publish, "QUEUE_MISCONFIGURED", `A level of ${level}`, "priority");
      }
      await receiveNothing(broker, "after the refusals");
    },
  },
];
