/**
 * Publishing many at a time.
 *
 * @module
 */

import type { PublishItem } from "../../core/capabilities/mod.ts";
import { ensure, equal, refusal, refuses, rejectsWith } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { abortedSignal, drainTexts, ensureAscending, payloadText, receiveNothing, receiveOne } from "../steps.ts";

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${index}`);
}

/** Publishing many. */
export const batchCases: readonly CaseDefinition[] = [
  {
    id: "batch-order",
    title: "every payload is published in order, with one message each in the same order",
    needs: ["BatchPublisher"],
    async run({ broker, clock }) {
      const payloads = texts(50).map(bytes);
      const messages = await broker.publishMany(payloads);
      equal(messages.map(({ payload }) => payload), payloads, "The payloads answered");
      equal(new Set(messages.map(({ id }) => id)).size, 50, "The number of different ids");
      for (const { enqueuedAt } of messages) equal(enqueuedAt, new Date(clock.now()), "The instant of a message");
      const received = await broker.receive(50);
      const byId = new Map(received.map((delivery) => [delivery.message.id, payloadText(delivery)]));
      equal(messages.map(({ id }) => byId.get(id)), texts(50), "The payload under each id");
    },
  },
  {
    id: "batch-ordered",
    title: "the ids of a batch ascend, and it is received in order",
    needs: ["BatchPublisher", "orderedIds"],
    async run({ broker }) {
      const messages = await broker.publishMany(texts(100).map(bytes));
      ensureAscending(messages.map(({ id }) => id), "Ids of a batch");
      equal(await drainTexts(broker), texts(100), "The order of delivery");
    },
  },
  {
    id: "batch-large",
    title: "thousands of messages and megabytes of payload go through whole",
    needs: ["BatchPublisher"],
    async run({ broker }) {
      const sizes = Array.from({ length: 2_100 }, (_, index) => index % 7 === 0 ? 5_000 : 20);
      const items = sizes.map((size, index) => new Uint8Array(size).fill(index % 256));
      const messages = await broker.publishMany(items);
      const indexes = new Map(messages.map(({ id }, index) => [id, index]));
      let received = 0;
      for (let batch = await broker.receive(500); batch.length > 0; batch = await broker.receive(500)) {
        for (const { message } of batch) {
          const index = indexes.get(message.id);
          ensure(index !== undefined && indexes.delete(message.id), "An unknown id was delivered, or one twice");
          equal(message.payload, items[index]!, `The payload of item ${index}`);
          received++;
        }
      }
      equal(received, 2_100, "The number of messages received");
    },
  },
  {
    id: "batch-iterables",
    title: "any iterable will do, and bytes and items mix",
    needs: ["BatchPublisher"],
    async run({ broker, pass }) {
      function* items(): Generator<Uint8Array | PublishItem> {
        yield bytes("1");
        yield { payload: bytes("2") };
      }
      await broker.publishMany(items());
      pass(1);
      await broker.publishMany(new Set([bytes("3")]));
      equal((await drainTexts(broker)).sort(), ["1", "2", "3"], "What is receivable");
    },
  },
  {
    id: "batch-empty",
    title: "an empty batch publishes nothing and is no error",
    needs: ["BatchPublisher"],
    async run({ broker }) {
      equal(await broker.publishMany([]), [], "What an empty batch answers");
      await receiveNothing(broker, "after an empty batch");
    },
  },
  {
    id: "batch-oversized",
    title: "one payload that is too large refuses the whole batch",
    needs: ["BatchPublisher"],
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      const items = [bytes("fits"), new Uint8Array(11), bytes("fits too")];
      await refuses(() => broker.publishMany(items), "MESSAGE_TOO_LARGE", "A batch with 11 bytes", "payload");
      await receiveNothing(broker, "after the refusal");
    },
  },
  {
    id: "batch-bad-item",
    title: "one bad item refuses the whole batch",
    needs: ["BatchPublisher", "at", "priority", "headers"],
    async run({ broker }) {
      const bad: readonly (readonly [field: string, item: unknown])[] = [
        ["priority", { payload: bytes("x"), priority: 3 }],
        ["at", { payload: bytes("x"), at: new Date(NaN) }],
        ["headers", { payload: bytes("x"), headers: { "": "y" } }],
      ];
      for (const [field, item] of bad) {
        const publish = () => broker.publishMany([bytes("good"), item as PublishItem]);
        await refuses(publish, "QUEUE_MISCONFIGURED", `A batch with a bad ${field}`, field);
      }
      for (const item of ["text", null, 5, {}, { payload: "text" }]) {
        const publish = () => broker.publishMany([bytes("good"), item as unknown as PublishItem]);
        const error = await refusal(publish, "A batch with no bytes");
        ensure(error instanceof TypeError, "A batch with no bytes is a TypeError");
      }
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "batch-throwing",
    title: "an iterable that throws publishes nothing and its error comes out",
    needs: ["BatchPublisher"],
    async run({ broker }) {
      const error = new Error("The producer failed");
      function* items(): Generator<Uint8Array> {
        yield bytes("1");
        throw error;
      }
      await rejectsWith(() => broker.publishMany(items()), error, "A batch whose iterable throws");
      await receiveNothing(broker, "after the failure");
    },
  },
  {
    id: "batch-options",
    title: "every item has its own instant, level and headers",
    needs: ["BatchPublisher", "at", "priority", "headers"],
    async run({ broker, clock, pass }) {
      await broker.publishMany([
        bytes("plain"),
        { payload: bytes("late"), at: new Date(clock.now() + 5_000), priority: 2 },
        { payload: bytes("high"), priority: 1, headers: { name: "value" } },
        { payload: bytes("low"), priority: -1 },
      ]);
      const first = await receiveOne(broker);
      equal([payloadText(first), first.priority], ["high", 1], "The first delivery");
      equal({ ...first.message.headers }, { name: "value" }, "Its headers");
      equal(await drainTexts(broker), ["plain", "low"], "The rest before the instant");
      pass(5_000);
      const last = await receiveOne(broker);
      equal([payloadText(last), last.priority], ["late", 2], "The delivery at the instant");
    },
  },
  {
    id: "batch-copies",
    title: "a buffer that the producer overwrites afterwards changes nothing",
    needs: ["BatchPublisher"],
    async run({ broker }) {
      const payload = bytes("work");
      await broker.publishMany([payload, payload]);
      payload.fill(0);
      equal(await drainTexts(broker), ["work", "work"], "What is receivable");
    },
  },
  {
    id: "batch-aborted",
    title: "an aborted batch publishes nothing",
    needs: ["BatchPublisher"],
    async run({ broker }) {
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.publishMany([bytes("work")], { signal }), reason, "An aborted batch");
      await receiveNothing(broker, "after the abort");
    },
  },
];
