import assert from "node:assert/strict";
import {
  encodeHeaders,
  encodeWithFooter,
  readRecord,
  recordLength,
  splitFooter,
  writeRecord,
} from "../../../src/brokers/file/records.ts";
import { noHeaders } from "../../../src/core/headers.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "../memory/random.ts";
import { bytes } from "./queue.ts";

const id = "01JGFJJZ00ABCDEFGHJKMNPQRS";
const otherId = "01JGFJJZ00ABCDEFGHJKMNPQRT";

function record(headers: Uint8Array, payload: Uint8Array, owner: string = id): Uint8Array {
  const written = new Uint8Array(recordLength(headers, payload));
  assert.equal(writeRecord(written, 0, owner, headers, payload), written.byteLength);
  return written;
}

test("a record comes back whole, empty and large payloads and awkward headers too", () => {
  const headers = {
    "content-type": "text/plain",
    empty: "",
    umlaut: "ü 🥐 \u2028",
    quote: '"\\',
    ["__proto__"]: "own",
  };
  for (const payload of [new Uint8Array(), new Uint8Array(1), new Uint8Array(1_048_576).fill(7), bytes("QEND")]) {
    assert.deepEqual(readRecord(record(encodeHeaders(noHeaders), payload), id), { headers: noHeaders, payload });
    const read = readRecord(record(encodeHeaders(headers), payload), id)!;
    assert.deepEqual({ ...read.headers }, { ...headers });
    assert.equal(Object.getPrototypeOf(read.headers), null);
    assert.ok(Object.isFrozen(read.headers));
    assert.deepEqual(read.payload, payload);
  }
});

test("a record that lies inside other bytes is written and read there alone", () => {
  const headers = encodeHeaders({ a: "b" });
  const target = new Uint8Array(500).fill(0xaa);
  const end = writeRecord(target, 100, id, headers, bytes("payload"));
  assert.ok(target.subarray(0, 100).every((byte) => byte === 0xaa));
  assert.ok(target.subarray(end).every((byte) => byte === 0xaa));
  assert.deepEqual(readRecord(target.subarray(100, end), id)!.payload, bytes("payload"));
});

test("torn, truncated, foreign and future records are refused", () => {
  const whole = record(encodeHeaders({ a: "b" }), bytes("payload"));
  for (let length = 0; length < whole.byteLength; length++) {
    assert.equal(readRecord(whole.subarray(0, length), id), undefined, `cut to ${length} bytes`);
  }
  assert.equal(readRecord(new Uint8Array([...whole, 0]), id), undefined, "a byte too many");
  assert.equal(readRecord(new Uint8Array(whole.byteLength), id), undefined, "never written");
  assert.equal(readRecord(whole, otherId), undefined, "another message's");
  assert.equal(readRecord(record(noBytes, bytes("x"), otherId), id), undefined, "another message's");
  const future = whole.slice();
  future[1] = 2;
  assert.equal(readRecord(future, id), undefined, "a version to come");
  const wrapped = whole.slice();
  // Lengths whose sum is right modulo 2 ** 32 only.
  new DataView(wrapped.buffer).setUint32(4, 0xffff_ffff, true);
  assert.equal(readRecord(wrapped, id), undefined, "lengths beyond the file");
});

const noBytes = new Uint8Array(0);

test("headers that are no flat object of texts are refused", () => {
  for (const json of ["{", "null", "42", '"text"', '{"a":1}', '{"a":null}', '{"a":["b"]}', '{"a":{}}', "\0\0", "{}x"]) {
    assert.equal(readRecord(record(bytes(json), bytes("payload")), id), undefined, json);
  }
});

test("a footer comes back, and the record before it is the message", () => {
  const footer = { end: 5, text: "ü", list: [1, 2] };
  for (const payload of [noBytes, bytes("payload"), bytes('{"end":1}QEND')]) {
    const file = encodeWithFooter(id, encodeHeaders({ a: "b" }), payload, footer);
    const split = splitFooter(file)!;
    assert.deepEqual(split.footer, footer);
    assert.deepEqual(readRecord(split.record, id)!.payload, payload);
    for (let length = 0; length < file.byteLength; length++) {
      const cut = splitFooter(file.subarray(0, length));
      // What a payload may imitate is no record of the message all the same.
      assert.equal(cut && readRecord(cut.record, id), undefined, `cut to ${length} bytes`);
    }
  }
  for (const bad of [null, 42, "text"]) {
    assert.equal(splitFooter(encodeWithFooter(id, noBytes, noBytes, bad)), undefined);
  }
});

test("no change of a record's bytes makes another message or throws", () => {
  return withSeeds([1, 2, 3, 4290528816], (seed) => {
    const random = new SeededRandom(seed);
    for (let round = 0; round < 3_000; round++) {
      const payload = new Uint8Array(random.below(60)).map(() => random.below(256));
      const headers = random.oneIn(2) ? noBytes : encodeHeaders({ ["h".repeat(random.below(9) + 1)]: "v" });
      const footed = random.oneIn(2);
      const file = footed ? encodeWithFooter(id, headers, payload, { round }) : record(headers, payload);
      const changed = file.slice();
      const at = random.below(changed.byteLength);
      changed[at] = changed[at]! ^ (1 + random.below(255));
      const read = readRecord(footed ? splitFooter(changed)?.record ?? noBytes : changed, id);
      // A record's frame is checked; what a flipped bit does to the payload itself only a checksum would tell.
      if (read !== undefined) assert.equal(read.payload.byteLength, payload.byteLength);
    }
  });
});
