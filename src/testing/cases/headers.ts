/**
 * Headers: what is kept, in which form, and what is refused.
 *
 * @module
 */

import { ensure, equal, refuses } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition } from "../case.ts";
import { bury, drain, onlyDeadLetter, receiveNothing, receiveOne } from "../steps.ts";

type Headers = Record<string, string>;

/** Awkward headers that are accepted, with names in lower case already. */
const awkward: Headers = {
  "content-type": "application/json; charset=utf-8",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  empty: "",
  spaces: "  two in front, two behind  ",
  "line-break": "one\r\ntwo\n",
  nul: "a\u0000b",
  quotes: `"'\`\\`,
  emoji: "\u{1f600}\u{1f468}\u200d\u{1f469}",
  "not-normal": "e\u0301",
  constructor: "c",
  tostring: "t",
  length: "9",
  "a:b/c..%2e|<>*?": "odd",
  "0": "digit",
};

function prototypeNamed(): Headers {
  return JSON.parse(`{"__proto__":"p","a":"b"}`);
}

const refusedHeaders: readonly (readonly [what: string, headers: unknown])[] = [
  ["an empty name", { "": "x" }],
  ["a name with a space", { "a b": "x" }],
  ["a name with a line break", { "a\n": "x" }],
  ["a name that is not ASCII", { "\u00e9": "x" }],
  ["a name with DEL", { "a\u007f": "x" }],
  ["a name that is a lone surrogate", { "\ud800": "x" }],
  ["two names that differ in case only", { Name: "x", name: "y" }],
  ["a value that is a lone surrogate", { name: "\ud800" }],
  ["a value that is a number", { name: 5 }],
  ["a value that is null", { name: null }],
  ["a value that is undefined", { name: undefined }],
  ["a string for the whole", "name=x"],
];

async function publishInEveryWay(broker: AnyBroker, headers: Headers, needs: string): Promise<void> {
  const payload = bytes(needs);
  await broker.publish(payload, { headers });
  await broker.publishAt(payload, new Date(0), { headers });
  await broker.publishPriority(payload, 0, { headers });
  await broker.publishOnce("key", payload, 1_000, { headers });
  await broker.publishMany([{ payload, headers }]);
}

/** Headers. */
export const headerCases: readonly CaseDefinition[] = [
  {
    id: "headers-kept",
    title: "headers come back as given, the awkward ones too",
    needs: ["headers"],
    async run({ broker }) {
      const published = await broker.publish(bytes("work"), { headers: awkward });
      equal({ ...published.headers }, awkward, "The headers that publish returns");
      const { message } = await receiveOne(broker);
      equal({ ...message.headers }, awkward, "The headers delivered");
    },
  },
  {
    id: "headers-form",
    title: "names come back in lower case, in a frozen object without a prototype",
    needs: ["headers"],
    async run({ broker }) {
      await broker.publish(bytes("work"), { headers: { "Content-TYPE": "Text/Plain" } });
      await broker.publish(bytes("work"));
      const [first, second] = await broker.receive(2);
      equal({ ...first!.message.headers }, { "content-type": "Text/Plain" }, "The headers delivered");
      equal({ ...second!.message.headers }, {}, "The headers of a message without");
      for (const delivery of [first!, second!]) {
        ensure(Object.getPrototypeOf(delivery.message.headers) === null, "The headers have a prototype");
        ensure(Object.isFrozen(delivery.message.headers), "The headers are not frozen");
      }
    },
  },
  {
    id: "headers-prototype",
    title: `a header named "__proto__" is a header like any other`,
    needs: ["headers"],
    async run({ broker }) {
      await broker.publish(bytes("work"), { headers: prototypeNamed() });
      const { message } = await receiveOne(broker);
      equal(Object.keys(message.headers).sort(), ["__proto__", "a"], "The names delivered");
      equal(message.headers["__proto__"], "p", "The value delivered");
    },
  },
  {
    id: "headers-copied",
    title: "a headers object that the producer changes afterwards changes nothing",
    needs: ["headers"],
    async run({ broker }) {
      const headers: Headers = { name: "value" };
      await broker.publish(bytes("work"), { headers });
      headers.name = "other";
      headers.more = "more";
      equal({ ...(await receiveOne(broker)).message.headers }, { name: "value" }, "The headers delivered");
    },
  },
  {
    id: "headers-redelivered",
    title: "headers stay with the message through a nack, a lapse and another delivery",
    needs: ["headers"],
    async run({ broker, pass }) {
      await broker.publish(bytes("work"), { headers: awkward });
      await broker.nack((await receiveOne(broker)).lease.receipt);
      equal({ ...(await receiveOne(broker)).message.headers }, awkward, "The headers after a nack");
      pass(30_000);
      equal({ ...(await receiveOne(broker)).message.headers }, awkward, "The headers after a lapse");
    },
  },
  {
    id: "headers-dead",
    title: "headers stay with the message into the dead letter and through a replay",
    needs: ["headers", "DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { id } = await broker.publish(bytes("work"), { headers: awkward });
      await broker.nack((await receiveOne(broker)).lease.receipt);
      const { message } = await onlyDeadLetter(broker);
      equal({ ...message.headers }, awkward, "The headers of the dead letter");
      ensure(Object.getPrototypeOf(message.headers) === null, "The headers of the dead letter have a prototype");
      await broker.replayDeadLetter(id);
      equal({ ...(await receiveOne(broker)).message.headers }, awkward, "The headers after a replay");
    },
  },
  {
    id: "headers-none-dead",
    title: "a dead letter without headers has an empty object",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      await bury(broker, "work");
      equal({ ...(await onlyDeadLetter(broker)).message.headers }, {}, "The headers of the dead letter");
    },
  },
  {
    id: "headers-refused",
    title: "ill-formed headers are refused and nothing is published",
    needs: ["headers"],
    async run({ broker }) {
      for (const [what, headers] of refusedHeaders) {
        const options = { headers: headers as Headers };
        await refuses(() => broker.publish(bytes("work"), options), "QUEUE_MISCONFIGURED", what, "headers");
      }
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "headers-bounds",
    title: "headers exactly at the policy's bounds are accepted, beyond them they are too large",
    needs: ["headers"],
    policy: { maxHeaders: 3, maxHeaderBytes: 20 },
    async run({ broker }) {
      const refused: readonly Headers[] = [
        { a: "1", b: "2", c: "3", d: "4" },
        { name: "x".repeat(17) },
        { name: "\u00e9".repeat(8) + "x" },
        { name: "\u{1f600}".repeat(4) + "x" },
      ];
      for (const headers of refused) {
        await refuses(
          () => broker.publish(bytes("work"), { headers }),
          "MESSAGE_TOO_LARGE",
          `The headers ${JSON.stringify(headers)}`,
          "headers",
        );
      }
      await receiveNothing(broker, "after the refusals");
      const accepted: readonly Headers[] = [
        { a: "1", b: "2", c: "3" },
        { name: "x".repeat(16) },
        { name: "\u00e9".repeat(8) },
        { name: "\u{1f600}".repeat(4) },
      ];
      for (const headers of accepted) await broker.publish(bytes("work"), { headers });
      const headers = (await drain(broker)).map(({ message }) => ({ ...message.headers }));
      equal(headers, accepted as Headers[], "The headers delivered");
    },
  },
  {
    id: "headers-default-bounds",
    title: "without bounds, 64 headers and 8 192 bytes are accepted and one more of either is not",
    needs: ["headers"],
    async run({ broker }) {
      const many = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [`h${index}`, "v"]));
      const large: Headers = { name: "x".repeat(8_188) };
      await broker.publish(bytes("many"), { headers: many });
      await broker.publish(bytes("large"), { headers: large });
      const [first, second] = await broker.receive(2);
      equal({ ...first!.message.headers }, many, "64 headers");
      equal({ ...second!.message.headers }, large, "8 192 bytes of headers");
      const one = { ...many, h64: "v" };
      await refuses(() => broker.publish(bytes("x"), { headers: one }), "MESSAGE_TOO_LARGE", "65 headers", "headers");
      const more = { name: large.name + "x" };
      await refuses(() => broker.publish(bytes("x"), { headers: more }), "MESSAGE_TOO_LARGE", "8 193 bytes", "headers");
    },
  },
  {
    id: "headers-everywhere",
    title: "every publishing method keeps headers",
    needs: ["headers", "DelayedPublisher", "PriorityPublisher", "OncePublisher", "BatchPublisher"],
    async run({ broker }) {
      await publishInEveryWay(broker, awkward, "work");
      const drained = await drain(broker);
      equal(drained.length, 5, "The number of messages");
      for (const { message } of drained) equal({ ...message.headers }, awkward, "The headers delivered");
    },
  },
  {
    id: "headers-large-payload",
    title: "headers and a payload at its bound go together",
    needs: ["headers"],
    async run({ broker }) {
      const payload = new Uint8Array(1_048_576).fill(3);
      await broker.publish(payload, { headers: awkward });
      const { message } = await receiveOne(broker);
      equal(message.payload, payload, "The payload");
      equal({ ...message.headers }, awkward, "The headers");
    },
  },
];
