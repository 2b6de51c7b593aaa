/**
 * Publishing once per key.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { drainTexts, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Keys that differ in bytes and are alike in some other eye. */
const keys: readonly string[] = [
  "a",
  "A",
  " a",
  "a ",
  "a\u0000",
  "\u0000",
  "e\u0301",
  "\u00e9",
  "../a",
  "a/../a",
  "/",
  ".",
  "..",
  "__proto__",
  "constructor",
  "\u{1f600}",
  "k".repeat(10_000),
  "k".repeat(10_001),
  "'; DROP TABLE jobs; --",
  "key\n",
];

/** Publishing once. */
export const onceCases: readonly CaseDefinition[] = [
  {
    id: "once-first",
    title: "the first use of a key publishes, and says so with the message",
    needs: ["OncePublisher"],
    async run({ broker, clock }) {
      const result = await broker.publishOnce("key", bytes("work"), 60_000);
      ensure(result.published, "The first use did not publish");
      equal(result.message.enqueuedAt, new Date(clock.now()), "The instant of the message");
      equal((await receiveOne(broker)).message, result.message, "The message delivered");
    },
  },
  {
    id: "once-duplicate",
    title: "a reserved key publishes nothing, as a result and not as an error",
    needs: ["OncePublisher"],
    async run({ broker }) {
      await broker.publishOnce("key", bytes("first"), 60_000);
      const result = await broker.publishOnce("key", bytes("second"), 60_000);
      equal(result, { published: false }, "What the second use answers");
      equal("message" in result, false, "Whether the second use names a message");
      equal(await drainTexts(broker), ["first"], "What is receivable");
    },
  },
  {
    id: "once-window",
    title: "at exactly the window's end the key is free, and publishing reserves it anew",
    needs: ["OncePublisher"],
    async run({ broker, pass }) {
      await broker.publishOnce("key", bytes("first"), 60_000);
      pass(59_999);
      equal((await broker.publishOnce("key", bytes("second"), 60_000)).published, false, "One tick before the end");
      pass(1);
      equal((await broker.publishOnce("key", bytes("third"), 60_000)).published, true, "At the end");
      pass(59_999);
      equal((await broker.publishOnce("key", bytes("fourth"), 60_000)).published, false, "In the second window");
      equal((await drainTexts(broker)).sort(), ["first", "third"], "What is receivable");
    },
  },
  {
    id: "once-not-prolonged",
    title: "a duplicate does not prolong the window, however long its own is",
    needs: ["OncePublisher"],
    async run({ broker, pass }) {
      await broker.publishOnce("key", bytes("first"), 60_000);
      pass(30_000);
      await broker.publishOnce("key", bytes("second"), 3_600_000);
      pass(30_000);
      equal((await broker.publishOnce("key", bytes("third"), 60_000)).published, true, "At the first window's end");
    },
  },
  {
    id: "once-after-ack",
    title: "the end of the message does not free the key",
    needs: ["OncePublisher"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      for (const [key, settle] of [["acked", "ack"], ["dead", "nack"]] as const) {
        await broker.publishOnce(key, bytes("work"), 60_000);
        await broker[settle]((await receiveOne(broker)).lease.receipt);
        equal((await broker.publishOnce(key, bytes("work"), 60_000)).published, false, `After the ${settle}`);
      }
    },
  },
  {
    id: "once-after-purge",
    title: "a purge frees no key",
    needs: ["OncePublisher", "Purger"],
    async run({ broker }) {
      await broker.publishOnce("key", bytes("work"), 60_000);
      await broker.purge();
      equal((await broker.publishOnce("key", bytes("work"), 60_000)).published, false, "After the purge");
    },
  },
  {
    id: "once-keys",
    title: "keys compare byte for byte, the awkward ones too",
    needs: ["OncePublisher"],
    async run({ broker }) {
      for (const key of keys) {
        const what = JSON.stringify(key.slice(0, 20));
        equal((await broker.publishOnce(key, bytes("work"), 60_000)).published, true, `The first use of ${what}`);
      }
      for (const key of keys) {
        const what = JSON.stringify(key.slice(0, 20));
        equal((await broker.publishOnce(key, bytes("work"), 60_000)).published, false, `The second use of ${what}`);
      }
    },
  },
  {
    id: "once-key-refused",
    title: "an empty or ill-formed key is refused and nothing is published",
    needs: ["OncePublisher"],
    async run({ broker }) {
      for (const key of ["", "\ud800", "a\udfff", undefined, null, 5]) {
        const publish = () => broker.publishOnce(key as string, bytes("work"), 60_000);
        await refuses(publish, "QUEUE_MISCONFIGURED", `The key ${JSON.stringify(key)}`, "key");
      }
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "once-window-refused",
    title: "a window that is nothing or cannot be recorded is refused, and the key stays free",
    needs: ["OncePublisher"],
    async run({ broker, clock }) {
      for (const window of [0, -1, 0.5, NaN, Infinity, "1", undefined, maxInstant - clock.now() + 1]) {
        const publish = () => broker.publishOnce("key", bytes("work"), window as number);
        await refuses(publish, "QUEUE_MISCONFIGURED", `A window of ${window}`, "window");
      }
      await receiveNothing(broker, "after the refusals");
      const longest = maxInstant - clock.now();
      equal((await broker.publishOnce("key", bytes("work"), longest)).published, true, "The longest window");
    },
  },
  {
    id: "once-size-first",
    title: "a payload that is too large is refused before the key is touched",
    needs: ["OncePublisher"],
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      const oversized = () => broker.publishOnce("key", new Uint8Array(11), 60_000);
      await refuses(oversized, "MESSAGE_TOO_LARGE", "11 bytes", "payload");
      equal((await broker.publishOnce("key", bytes("work"), 60_000)).published, true, "The next use of the key");
      await refuses(oversized, "MESSAGE_TOO_LARGE", "11 bytes under a reserved key", "payload");
    },
  },
  {
    id: "once-racing",
    title: "of racing publishers of one key exactly one publishes",
    needs: ["OncePublisher"],
    async run({ broker }) {
      const racing = Array.from({ length: 20 }, (_, index) => broker.publishOnce("key", bytes(`${index}`), 60_000));
      const winners = (await Promise.all(racing)).filter((result) => result.published);
      equal(winners.length, 1, "The number that published");
      const delivery = await receiveOne(broker);
      equal(delivery.message.id, winners[0]!.published ? winners[0]!.message.id : "", "The id delivered");
      await receiveNothing(broker, "beside the one");
    },
  },
  {
    id: "once-options",
    title: "instant, level and headers go with a key",
    needs: ["OncePublisher", "at", "priority", "headers"],
    async run({ broker, clock, pass }) {
      const options = { at: new Date(clock.now() + 5_000), priority: 2, headers: { Name: "value" } } as const;
      await broker.publishOnce("key", bytes("work"), 60_000, options);
      await broker.publish(bytes("normal"));
      equal(payloadText(await receiveOne(broker)), "normal", "What is receivable before the instant");
      await broker.publish(bytes("later"));
      pass(5_000);
      const { message, priority } = await receiveOne(broker);
      equal([message.payload, priority], [bytes("work"), 2], "What comes first at the instant");
      equal({ ...message.headers }, { name: "value" }, "The headers");
    },
  },
  {
    id: "once-options-refused",
    title: "a bad option is refused before the key is touched",
    needs: ["OncePublisher", "priority"],
    async run({ broker }) {
      const publish = () => broker.publishOnce("key", bytes("work"), 60_000, { priority: 9 as 2 });
      await refuses(publish, "QUEUE_MISCONFIGURED", "A level of 9", "priority");
      equal((await broker.publishOnce("key", bytes("work"), 60_000)).published, true, "The next use of the key");
    },
  },
  {
    id: "once-invisible",
    title: "reservations are neither delivered nor listed nor counted",
    needs: ["OncePublisher", "Counter", "MessageReader"],
    async run({ broker }) {
      for (let index = 0; index < 5; index++) await broker.publishOnce(`${index}`, bytes("work"), 60_000);
      for (const { lease } of await broker.receive(10)) await broker.ack(lease.receipt);
      const { queued, leased, dead } = await broker.stats();
      equal([queued, leased, dead], [0, 0, 0], "The counts");
      equal((await broker.messages({ max: 10 })).length, 0, "The number of messages listed");
      await receiveNothing(broker, "when all was acknowledged");
    },
  },
];
