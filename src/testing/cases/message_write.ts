/**
 * Writing a live message that was recorded elsewhere.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import type { LiveMessage } from "../../core/values.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition, type Feature } from "../case.ts";
import { allLive, payloadText, receiveNothing, receiveOne } from "../steps.ts";

const needs: readonly Feature[] = ["MessageReader", "MessageWriter"];

function liveMessage(changes: Partial<LiveMessage> = {}, message: Partial<LiveMessage["message"]> = {}): LiveMessage {
  return {
    message: {
      id: "",
      enqueuedAt: new Date(Date.UTC(2025, 5, 1)),
      payload: bytes("recorded elsewhere"),
      headers: {},
      ...message,
    },
    visibleAt: new Date(Date.UTC(2025, 5, 1)),
    deliveries: 2,
    leased: false,
    priority: 0,
    ...changes,
  };
}

function withoutId(live: LiveMessage): LiveMessage {
  return { ...live, message: { ...live.message, id: "", headers: { ...live.message.headers } } };
}

const kept: readonly LiveMessage[] = [
  liveMessage(),
  liveMessage({ deliveries: 0 }),
  liveMessage({ deliveries: 2_147_483_647 }),
  liveMessage({ visibleAt: new Date(0) }, { enqueuedAt: new Date(0) }),
  liveMessage({ visibleAt: new Date(maxInstant) }),
  liveMessage({ visibleAt: new Date(Date.UTC(2030, 0, 1)) }, { enqueuedAt: new Date(maxInstant) }),
  liveMessage({}, { payload: new Uint8Array(0) }),
  liveMessage({}, { payload: new Uint8Array(100_000).fill(9) }),
];

const refused: readonly (readonly [field: string, live: LiveMessage])[] = [
  ["message.id", liveMessage({}, { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" })],
  ["leased", liveMessage({ leased: true })],
  ["deliveries", liveMessage({ deliveries: -1 })],
  ["deliveries", liveMessage({ deliveries: 2_147_483_648 })],
  ["deliveries", liveMessage({ deliveries: 0.5 })],
  ["deliveries", liveMessage({ deliveries: NaN })],
  ["message.enqueuedAt", liveMessage({}, { enqueuedAt: new Date(-1) })],
  ["message.enqueuedAt", liveMessage({}, { enqueuedAt: new Date(maxInstant + 1) })],
  ["message.enqueuedAt", liveMessage({}, { enqueuedAt: new Date(NaN) })],
  ["visibleAt", liveMessage({ visibleAt: new Date(-1) })],
  ["visibleAt", liveMessage({ visibleAt: new Date(maxInstant + 1) })],
  ["visibleAt", liveMessage({ visibleAt: new Date(NaN) })],
  ["priority", liveMessage({ priority: -3 as -2 })],
  ["priority", liveMessage({ priority: 0.5 as 0 })],
];

/** Writing live messages. */
export const messageWriteCases: readonly CaseDefinition[] = [
  {
    id: "put-message-kept",
    title: "it is kept as given but for the id, which is minted",
    needs: [...needs, "Purger"],
    async run({ broker }) {
      for (const live of kept) {
        const id = await broker.putMessage(live);
        const listed = await allLive(broker);
        ensure(id !== "" && listed[0]?.message.id === id, `The id answered is ${id}, the listing has ${listed.length}`);
        equal(listed.map(withoutId), [withoutId(live)], "What is listed");
        await broker.purge();
      }
    },
  },
  {
    id: "put-message-options",
    title: "its level and headers are kept",
    needs: [...needs, "headers", "priority"],
    async run({ broker }) {
      const live = liveMessage({ priority: 1 }, { headers: { name: "value" } });
      await broker.putMessage(live);
      equal((await allLive(broker)).map(withoutId), [withoutId(live)], "What is listed");
      const delivery = await receiveOne(broker);
      equal([delivery.priority, { ...delivery.message.headers }], [1, { name: "value" }], "The level and the headers");
    },
  },
  {
    id: "put-message-delivered",
    title: "it is not delivered before its instant, and its delivery counts one more",
    needs: ["MessageWriter"],
    policy: { maxDeliveries: 10 },
    async run({ broker, clock, pass }) {
      const live = liveMessage({ visibleAt: new Date(clock.now() + 5_000), deliveries: 3 });
      const id = await broker.putMessage(live);
      pass(4_999);
      await receiveNothing(broker, "one tick before the instant");
      pass(1);
      const delivery = await receiveOne(broker);
      equal(delivery.message, { ...live.message, id }, "The message delivered");
      equal(delivery.deliveries, 4, "The delivery count");
      equal((await broker.nack(delivery.lease.receipt)).deliveries, 4, "The count at the nack");
    },
  },
  {
    id: "put-message-saturates",
    title: "the delivery count stops at its end",
    needs: ["MessageWriter", "Releaser"],
    policy: { maxDeliveries: 2_147_483_647 },
    async run({ broker }) {
      await broker.putMessage(liveMessage({ deliveries: 2_147_483_647 }));
      const delivery = await receiveOne(broker);
      equal(delivery.deliveries, 2_147_483_647, "The delivery count");
      await broker.ack(delivery.lease.receipt);
    },
  },
  {
    id: "put-message-refused",
    title: "what cannot be recorded is refused by field, and nothing is written",
    needs,
    async run({ broker }) {
      for (const [field, live] of refused) {
        await refuses(() => broker.putMessage(live), "INVALID_MESSAGE", `A message with a bad "${field}"`, field);
      }
      equal(await allLive(broker), [], "The listing");
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "put-message-oversized",
    title: "a payload that is too large is refused, and nothing is written",
    needs,
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      await refuses(() => broker.putMessage(liveMessage()), "MESSAGE_TOO_LARGE", "18 bytes", "payload");
      equal(await allLive(broker), [], "The listing");
    },
  },
  {
    id: "put-message-copied",
    title: "a record that the caller changes afterwards changes nothing",
    needs: ["MessageWriter"],
    policy: { maxDeliveries: 10 },
    async run({ broker }) {
      const payload = bytes("work");
      await broker.putMessage(liveMessage({}, { payload }));
      payload.fill(0);
      equal(payloadText(await receiveOne(broker)), "work", "The payload delivered");
    },
  },
  {
    id: "put-message-beside",
    title: "ids of messages that are written do not disturb the ids of those that are published",
    needs: [...needs, "orderedIds"],
    async run({ broker, clock }) {
      const first = await broker.publish(bytes("1"));
      await broker.putMessage(liveMessage({}, { enqueuedAt: new Date(clock.now() + 3_600_000) }));
      const second = await broker.publish(bytes("2"));
      ensure(first.id < second.id, "The second publication sorts before the first");
      const ids = (await allLive(broker)).map(({ message }) => message.id);
      equal(ids.slice(0, 2), [first.id, second.id], "The first two of the listing");
    },
  },
];
