/**
 * Another broker value over the same store: restarts, and brokers that share a queue.
 *
 * @module
 */

import { equal, notEqual, refuses } from "../assert.ts";
import { type AnyBroker, bytes, type CaseContext, type CaseDefinition, type Feature } from "../case.ts";
import { allDeadLetters, bury, drainTexts, lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const needs: readonly Feature[] = ["reopen"];

/** Ends the broker as a process that stops does, where it can be ended, and opens the store again. */
async function restart({ broker, lacks, reopen }: CaseContext): Promise<AnyBroker> {
  if (!lacks.has("close")) await broker.close();
  return await reopen();
}

/** Another broker over the same store. */
export const reopenCases: readonly CaseDefinition[] = [
  {
    id: "reopen-messages",
    title: "what was published survives, in order",
    needs,
    async run(context) {
      for (const text of ["1", "2", "3"]) {
        await context.broker.publish(bytes(text));
        context.pass(1);
      }
      equal(await drainTexts(await restart(context)), ["1", "2", "3"], "What is receivable after a restart");
    },
  },
  {
    id: "reopen-payloads",
    title: "payloads and headers survive",
    needs: ["reopen", "headers"],
    async run(context) {
      const published = [];
      for (const size of [0, 1, 4_096, 65_537, 1_048_576]) {
        const payload = new Uint8Array(size).fill(size % 251);
        published.push(await context.broker.publish(payload, { headers: { size: `${size}`, empty: "" } }));
        context.pass(1);
      }
      const received = await (await restart(context)).receive(10);
      equal(received.map(({ message }) => message), published, "The messages after a restart");
    },
  },
  {
    id: "reopen-ids",
    title: "ids go on being unique",
    needs,
    async run(context) {
      const { id } = await context.broker.publish(bytes("work"));
      const broker = await restart(context);
      notEqual((await broker.publish(bytes("work"))).id, id, "The id after a restart");
    },
  },
  {
    id: "reopen-lease",
    title: "a lease survives the consumer: until its end nobody else gets the message, then somebody does",
    needs,
    async run(context) {
      const first = await lease(context.broker);
      const broker = await restart(context);
      context.pass(29_999);
      await receiveNothing(broker, "one tick before the lease's end");
      context.pass(1);
      const second = await receiveOne(broker);
      equal([second.message, second.deliveries], [first.message, 2], "The redelivery");
    },
  },
  {
    id: "reopen-receipt",
    title: "a receipt settles through another broker over the store",
    needs: ["reopen", "LeaseExtender", "Releaser"],
    async run(context) {
      const first = await lease(context.broker, "acked");
      const second = await lease(context.broker, "nacked");
      const third = await lease(context.broker, "renewed");
      const fourth = await lease(context.broker, "released");
      const broker = await restart(context);
      await broker.ack(first.lease.receipt);
      await broker.nack(second.lease.receipt);
      const renewed = await broker.extend(third.lease.receipt, 60_000);
      await broker.release(fourth.lease.receipt);
      const counts = (await broker.receive(10)).map((delivery) => `${payloadText(delivery)} ${delivery.deliveries}`);
      equal(counts.sort(), ["nacked 2", "released 1"], "What is receivable");
      await refuses(() => broker.ack(third.lease.receipt), "LEASE_EXPIRED", "An ack with the replaced receipt");
      await broker.ack(renewed.receipt);
    },
  },
  {
    id: "reopen-stale",
    title: "a receipt that lapsed is refused by another broker too, before and after the redelivery",
    needs,
    async run(context) {
      const { lease: held } = await lease(context.broker);
      const broker = await restart(context);
      context.pass(30_000);
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack at the lease's end");
      const next = await receiveOne(broker);
      await refuses(() => broker.nack(held.receipt), "LEASE_EXPIRED", "A nack after the redelivery");
      await broker.ack(next.lease.receipt);
    },
  },
  {
    id: "reopen-retry",
    title: "a named delay is neither cut short nor lost",
    needs: ["reopen", "DelayedNacker"],
    async run(context) {
      const { lease: held } = await lease(context.broker);
      await context.broker.nackAfter(held.receipt, undefined, 3_600_000);
      const broker = await restart(context);
      context.pass(3_599_999);
      await receiveNothing(broker, "one tick before the delay's end");
      context.pass(1);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "reopen-deferred",
    title: "deferred messages come at their instants",
    needs: ["reopen", "at"],
    async run(context) {
      const start = context.clock.now();
      for (const delay of [60_000, 3_600_000, 1_000]) {
        await context.broker.publish(bytes(`${delay}`), { at: new Date(start + delay) });
      }
      const broker = await restart(context);
      await receiveNothing(broker, "before the first instant");
      context.pass(1_000);
      equal(await drainTexts(broker), ["1000"], "What is receivable at the first instant");
      context.pass(59_000);
      equal((await broker.receive(10)).map(payloadText).includes("60000"), true, "Whether the second came");
    },
  },
  {
    id: "reopen-levels",
    title: "levels survive",
    needs: ["reopen", "priority"],
    async run(context) {
      for (const priority of [-2, 2, 0] as const) await context.broker.publish(bytes(`${priority}`), { priority });
      equal(await drainTexts(await restart(context)), ["2", "0", "-2"], "The order of delivery");
    },
  },
  {
    id: "reopen-dead",
    title: "dead letters survive and can be replayed",
    needs: ["reopen", "DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run(context) {
      const { message } = await bury(context.broker, "work", new RangeError("private"));
      const before = await allDeadLetters(context.broker);
      const broker = await restart(context);
      equal(await allDeadLetters(broker), before, "The dead letters after a restart");
      await broker.replayDeadLetter(message.id);
      equal((await receiveOne(broker)).message, message, "The message replayed");
    },
  },
  {
    id: "reopen-once",
    title: "keys stay reserved",
    needs: ["reopen", "OncePublisher"],
    async run(context) {
      await context.broker.publishOnce("key", bytes("first"), 60_000);
      const broker = await restart(context);
      equal((await broker.publishOnce("key", bytes("second"), 60_000)).published, false, "After a restart");
      context.pass(60_000);
      equal((await broker.publishOnce("key", bytes("third"), 60_000)).published, true, "At the window's end");
      equal((await drainTexts(broker)).sort(), ["first", "third"], "What is receivable");
    },
  },
  {
    id: "reopen-last-failure",
    title: "what went wrong last survives",
    needs: ["reopen", "lastFailure"],
    async run(context) {
      await lease(context.broker);
      context.pass(30_000);
      const broker = await restart(context);
      equal((await receiveOne(broker)).lastFailure?.reason, "LEASE_EXPIRED", "The last failure");
    },
  },
  {
    id: "reopen-beside",
    title: "two brokers over one store are one queue: neither sees what the other holds, either settles it",
    needs,
    async run({ broker, reopen, pass }) {
      const other = await reopen();
      await broker.publish(bytes("one"));
      await other.publish(bytes("two"));
      const first = await receiveOne(broker);
      const second = await receiveOne(other);
      equal([payloadText(first), payloadText(second)].sort(), ["one", "two"], "What the two received");
      await receiveNothing(broker, "while all is leased");
      await receiveNothing(other, "while all is leased");
      await other.ack(first.lease.receipt);
      await broker.nack(second.lease.receipt);
      equal((await receiveOne(other)).message, second.message, "What came back");
      pass(60_000);
      equal((await broker.receive(10)).length, 1, "The number of messages in the end");
    },
  },
  {
    id: "reopen-race",
    title: "two brokers that drain one store get every message exactly once",
    needs,
    async run({ broker, reopen }) {
      const other = await reopen();
      const texts = Array.from({ length: 300 }, (_, index) => `${index}`);
      await Promise.all(texts.map((text, index) => (index % 2 === 0 ? broker : other).publish(bytes(text))));
      const seen: string[] = [];
      const consume = async (mine: AnyBroker) => {
        for (let batch = await mine.receive(7); batch.length > 0; batch = await mine.receive(7)) {
          for (const delivery of batch) {
            seen.push(payloadText(delivery));
            await mine.ack(delivery.lease.receipt);
          }
        }
      };
      await Promise.all([consume(broker), consume(other), consume(broker), consume(other)]);
      equal(seen.sort(), [...texts].sort(), "What was seen");
    },
  },
  {
    id: "reopen-once-race",
    title: "of two brokers that race for one key exactly one publishes",
    needs: ["reopen", "OncePublisher"],
    async run({ broker, reopen }) {
      const other = await reopen();
      for (let round = 0; round < 10; round++) {
        const results = await Promise.all([
          broker.publishOnce(`key ${round}`, bytes("mine"), 60_000),
          other.publishOnce(`key ${round}`, bytes("theirs"), 60_000),
        ]);
        equal(results.filter(({ published }) => published).length, 1, "The number that published");
      }
      equal((await broker.receive(100)).length, 10, "The number of messages");
    },
  },
  {
    id: "reopen-purge",
    title: "a purge through one broker takes the other's leases",
    needs: ["reopen", "Purger"],
    async run({ broker, reopen }) {
      const other = await reopen();
      const { lease: held } = await lease(broker);
      await other.publish(bytes("waiting"));
      equal(await other.purge(), { queued: 1, leased: 1 }, "What the purge answers");
      await refuses(() => broker.ack(held.receipt), "LEASE_EXPIRED", "An ack of a purged lease");
      await receiveNothing(broker, "after the purge");
    },
  },
];
