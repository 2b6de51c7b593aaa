/**
 * Publishing.
 *
 * @module
 */

import { isQueueError } from "../../core/error.ts";
import { ensure, equal, notEqual, refusal, refuses, rejectsWith, render } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import {
  abortedSignal,
  drain,
  drainTexts,
  ensureAscending,
  payloadText,
  receiveNothing,
  receiveOne,
} from "../steps.ts";

/** Publishing. */
export const publishCases: readonly CaseDefinition[] = [
  {
    id: "publish-mints",
    title: "a publication mints an id and takes the broker's instant",
    async run({ broker, clock }) {
      const payload = bytes("work");
      const message = await broker.publish(payload);
      ensure(typeof message.id === "string" && message.id !== "", "The id is empty");
      equal(message.enqueuedAt, new Date(clock.now()), "The instant of the message");
      equal(message.payload, payload, "The payload");
      equal({ ...message.headers }, {}, "The headers");
    },
  },
  {
    id: "publish-own-buffer",
    title: "the message that publish returns carries the caller's own buffer",
    async run({ broker }) {
      const payload = bytes("work");
      ensure((await broker.publish(payload)).payload === payload, "The payload is another buffer");
    },
  },
  {
    id: "publish-delivered",
    title: "what is delivered is the message that publish returned",
    async run({ broker }) {
      const published = await broker.publish(bytes("work"));
      equal((await receiveOne(broker)).message, published, "The message delivered");
    },
  },
  {
    id: "publish-copies",
    title: "a buffer that the producer overwrites afterwards changes nothing",
    async run({ broker }) {
      const payload = bytes("work");
      await broker.publish(payload);
      payload.fill(0);
      equal(payloadText(await receiveOne(broker)), "work", "The payload delivered");
    },
  },
  {
    id: "publish-unique-ids",
    title: "ids are unique, within one instant too",
    async run({ broker, pass }) {
      const ids = new Set<string>();
      for (let index = 0; index < 100; index++) {
        ids.add((await broker.publish(bytes("work"))).id);
        if (index % 10 === 0) pass(1);
      }
      equal(ids.size, 100, "The number of different ids");
    },
  },
  {
    id: "publish-ordered-ids",
    title: "the byte order of ids is the order of publication, within one instant too",
    needs: ["orderedIds"],
    async run({ broker, pass }) {
      const ids: string[] = [];
      for (let index = 0; index < 60; index++) {
        ids.push((await broker.publish(bytes("work"))).id);
        if (index % 20 === 0) pass(1);
      }
      ensureAscending(ids, "Ids in order of publication");
    },
  },
  {
    id: "publish-bound",
    title: "a payload exactly at the bound is accepted, one byte more is refused and not written",
    policy: { maxMessageBytes: 100 },
    async run({ broker }) {
      const error = await refusal(() => broker.publish(new Uint8Array(101)), "A payload of 101 bytes");
      ensure(isQueueError(error, "MESSAGE_TOO_LARGE"), `The refusal is ${render(error)}`);
      equal([error.fields.size, error.fields.max], [101, 100], "The size and the bound that the refusal names");
      await receiveNothing(broker, "after the refusal");
      await broker.publish(new Uint8Array(100));
      equal((await receiveOne(broker)).message.payload.length, 100, "The size delivered");
    },
  },
  {
    id: "publish-default-bound",
    title: "without a bound, one MiB is accepted and one byte more is refused",
    async run({ broker }) {
      await refuses(
        () => broker.publish(new Uint8Array(1_048_577)),
        "MESSAGE_TOO_LARGE",
        "1 MiB and a byte",
        "payload",
      );
      await broker.publish(new Uint8Array(1_048_576));
      equal((await receiveOne(broker)).message.payload.length, 1_048_576, "The size delivered");
    },
  },
  {
    id: "publish-no-bytes",
    title: "anything but a Uint8Array is a TypeError and not written",
    async run({ broker }) {
      for (const value of ["text", null, undefined, 5, [1, 2], {}, new ArrayBuffer(4)]) {
        const error = await refusal(
          () => broker.publish(value as unknown as Uint8Array),
          `A payload of ${render(value)}`,
        );
        ensure(error instanceof TypeError, `The refusal of ${render(value)} is ${render(error)}`);
      }
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "publish-aborted",
    title: "an aborted signal rejects with its own reason, before the size is looked at, and nothing is published",
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.publish(bytes("work"), { signal }), reason, "An aborted publish");
      await rejectsWith(() => broker.publish(new Uint8Array(11), { signal }), reason, "An aborted, oversized publish");
      await receiveNothing(broker, "after the abort");
    },
  },
  {
    id: "publish-abort-later",
    title: "a signal that aborts after the publication is over changes nothing",
    async run({ broker }) {
      const controller = new AbortController();
      await broker.publish(bytes("work"), { signal: controller.signal });
      controller.abort();
      equal(payloadText(await receiveOne(broker)), "work", "The payload delivered");
    },
  },
  {
    id: "publish-concurrently",
    title: "publications that are made at once all arrive, each under its own id",
    async run({ broker }) {
      const texts = Array.from({ length: 200 }, (_, index) => `work ${index}`);
      const messages = await Promise.all(texts.map((text) => broker.publish(bytes(text))));
      const drained = await drain(broker);
      equal(drained.map(payloadText).sort(), [...texts].sort(), "The payloads delivered");
      const byId = new Map(drained.map((delivery) => [delivery.message.id, payloadText(delivery)]));
      messages.forEach((message, index) => equal(byId.get(message.id), texts[index], "The payload under an id"));
    },
  },
  {
    id: "publish-same-payload",
    title: "the same payload twice is two messages",
    async run({ broker }) {
      const first = await broker.publish(bytes("work"));
      const second = await broker.publish(bytes("work"));
      notEqual(first.id, second.id, "The second id");
      equal(await drainTexts(broker), ["work", "work"], "The payloads delivered");
    },
  },
];
