/**
 * Copying a queue into another.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { equal } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition } from "../case.ts";
import { allDeadLetters, allLive, bury } from "../steps.ts";

/** Everything a queue holds, without ids, leases and what only leases have. */
async function contents(broker: AnyBroker): Promise<unknown> {
  const live = (await allLive(broker)).map((entry) => ({
    ...entry,
    leased: false,
    message: { ...entry.message, id: "", headers: { ...entry.message.headers } },
  }));
  const dead = (await allDeadLetters(broker)).map((entry) => ({
    ...entry,
    message: { ...entry.message, id: "", headers: { ...entry.message.headers } },
  }));
  return { live, dead };
}

async function copy(from: AnyBroker, to: AnyBroker): Promise<void> {
  let after = "";
  for (let page = await from.messages({ after, max: 2 }); page.length > 0;) {
    for (const live of page) {
      await to.putMessage({ ...live, leased: false, message: { ...live.message, id: "" } });
    }
    after = page.at(-1)!.message.id;
    page = await from.messages({ after, max: 2 });
  }
  after = "";
  for (let page = await from.deadLettersAfter({ after, max: 2 }); page.length > 0;) {
    for (const dead of page) await to.putDeadLetter({ ...dead, message: { ...dead.message, id: "" } });
    after = page.at(-1)!.message.id;
    page = await from.deadLettersAfter({ after, max: 2 });
  }
}

/** Copying. */
export const copyCases: readonly CaseDefinition[] = [
  {
    id: "copy-queue",
    title: "a queue that is copied into another keeps everything but ids and leases",
    needs: [
      ...["MessageReader", "MessageWriter", "DeadLetterReader", "DeadLetterPager", "DeadLetterWriter"] as const,
      ...["at", "priority", "headers", "Rejecter"] as const,
    ],
    policy: { retryDelay: 60_000, maxDeliveries: 5 },
    async run({ broker, open, clock, pass }) {
      await broker.publish(bytes("plain"));
      pass(1);
      await broker.publish(bytes("level"), { priority: -1, headers: { Name: "value" } });
      pass(1);
      await broker.publish(bytes("later"), { at: new Date(clock.now() + 3_600_000) });
      pass(1);
      const batch = await broker.receive(2);
      await broker.nack(batch[0]!.lease.receipt, new QueueError("TASK_TIMEOUT"));
      for (const cause of [new RangeError("private"), new QueueError("TASK_UNDECODABLE"), undefined]) {
        pass(1);
        await broker.publish(bytes("dying"), { priority: 2, headers: { cause: String(cause !== undefined) } });
        const [dying] = await broker.receive(1);
        await broker.reject(dying!.lease.receipt, cause);
      }
      const other = await open();
      await copy(broker, other);
      equal(await contents(other), await contents(broker), "What the copy holds");
    },
  },
  {
    id: "copy-replayed",
    title: "dead letters of another queue replay here as there",
    needs: ["DeadLetterReader", "DeadLetterPager", "DeadLetterWriter", "DeadLetterBulkManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker, open }) {
      for (const text of ["one", "two"]) await bury(broker, text);
      const other = await open();
      for (const dead of await broker.deadLettersAfter({ max: 10 })) {
        await other.putDeadLetter({ ...dead, message: { ...dead.message, id: "" } });
      }
      equal(await other.replayDeadLetters({ max: 10 }), 2, "What the replay answers");
      equal((await other.receive(10)).map(({ deliveries }) => deliveries), [1, 1], "The delivery counts");
    },
  },
];
