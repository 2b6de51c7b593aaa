/**
 * Payloads of every awkward size and content come back byte for byte.
 *
 * @module
 */

import { equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { receiveOne } from "../steps.ts";

/** Sizes around what buffers, pages, slabs and segments are made of. */
const sizes: readonly number[] = [
  ...[0, 1, 2, 7, 8, 9, 63, 64, 65, 119, 120, 121, 127, 128, 255, 256, 257, 511, 512, 1_000, 1_023, 1_024, 1_025],
  ...[4_095, 4_096, 4_097, 8_191, 8_192, 8_193, 16_383, 16_384, 16_385, 32_767, 32_768, 65_534, 65_535, 65_536, 65_537],
  ...[131_071, 131_072, 131_073, 524_288, 1_000_000, 1_048_575, 1_048_576],
];

/** Bytes that differ with the position and the size, without a short period. */
function pattern(size: number): Uint8Array {
  const payload = new Uint8Array(size);
  let state = size + 1;
  for (let index = 0; index < size; index++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    payload[index] = state >>> 16;
  }
  return payload;
}

const contents: readonly (readonly [what: string, payload: Uint8Array])[] = [
  ["every byte value", Uint8Array.from({ length: 256 }, (_, index) => index)],
  ["only NUL", new Uint8Array(300)],
  ["only 0xFF", new Uint8Array(300).fill(0xff)],
  ["line breaks", bytes("\n\r\n\n\r\n\n")],
  ["a byte order mark", Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)],
  ["ill-formed UTF-8", Uint8Array.of(0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf5, 0xff)],
  ["an emoji cut in two", bytes("\u{1f600}").subarray(0, 2)],
  ["JSON", bytes(JSON.stringify({ id: "0", deliveries: 9, payload: null }))],
  ["what looks like headers", bytes("id: 1\nenqueued: 2\n\npayload")],
  ["what looks like an SQL statement", bytes("'; DROP TABLE jobs; --")],
];

/** Payloads. */
export const payloadCases: readonly CaseDefinition[] = [
  {
    id: "payload-sizes",
    title: "every size comes back byte for byte",
    async run({ broker }) {
      for (const size of sizes) {
        const payload = pattern(size);
        await broker.publish(payload);
        const { message, lease } = await receiveOne(broker);
        equal(message.payload, payload, `The payload of ${size} bytes`);
        await broker.ack(lease.receipt);
      }
    },
  },
  {
    id: "payload-sizes-waiting",
    title: "sizes that wait side by side do not get into each other",
    async run({ broker }) {
      const mixed = sizes.filter((size) => size <= 65_537);
      await Promise.all(mixed.map((size) => broker.publish(pattern(size))));
      const received = await broker.receive(mixed.length);
      equal(received.length, mixed.length, "The number of messages received");
      for (const { message } of received) {
        equal(message.payload, pattern(message.payload.length), `The payload of ${message.payload.length} bytes`);
      }
      const lengths = received.map(({ message }) => message.payload.length);
      equal(lengths.sort((a, b) => a - b), mixed, "The sizes received");
    },
  },
  {
    id: "payload-contents",
    title: "nothing is read into a payload",
    async run({ broker }) {
      for (const [what, payload] of contents) {
        await broker.publish(payload);
        const { message, lease } = await receiveOne(broker);
        equal(message.payload, payload, `The payload of ${what}`);
        await broker.ack(lease.receipt);
      }
    },
  },
  {
    id: "payload-views",
    title: "of a view of a larger buffer, and of a subclass, the bytes in view are published",
    async run({ broker }) {
      class Buffer extends Uint8Array {}
      const whole = pattern(1_000);
      const views = [whole.subarray(0, 10), whole.subarray(990), whole.subarray(500, 500), Buffer.from(whole)];
      for (const view of views) {
        const expected = Uint8Array.from(view);
        await broker.publish(view);
        const { message, lease } = await receiveOne(broker);
        equal(message.payload, expected, "The payload of a view");
        await broker.ack(lease.receipt);
      }
    },
  },
  {
    id: "payload-mutated",
    title: "a handler that overwrites its payload does not change the redelivery",
    async run({ broker }) {
      const payload = pattern(300);
      await broker.publish(Uint8Array.from(payload));
      const first = await receiveOne(broker);
      first.message.payload.fill(7);
      await broker.nack(first.lease.receipt);
      equal((await receiveOne(broker)).message.payload, payload, "The payload of the redelivery");
    },
  },
];
