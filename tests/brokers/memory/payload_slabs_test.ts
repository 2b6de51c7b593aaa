import assert from "node:assert/strict";
import {
  copyPayload,
  paddedLength,
  PayloadSlabs,
  type StoredPayload,
} from "../../../src/brokers/memory/payload_slabs.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";

/** Stores a payload. */
function keep(slabs: PayloadSlabs, bytes: Uint8Array): StoredPayload {
  const stored: StoredPayload = { slab: undefined, offset: 0, length: bytes.length };
  slabs.store(stored, bytes);
  return stored;
}

test("PayloadSlabs gives every payload back unchanged, over random stores and frees", async () => {
  await withSeeds([1, 2, 3], (seed) => {
    const random = new SeededRandom(seed);
    const slabs = new PayloadSlabs();
    const stored: { payload: StoredPayload; expected: Uint8Array }[] = [];
    const check = ({ payload, expected }: typeof stored[number]) => assert.deepEqual(copyPayload(payload), expected);
    let bytes = 0;
    for (let step = 0; step < 8_000; step++) {
      const draining = Math.floor(step / 1_000) % 2 === 1;
      if (random.below(10) < (draining ? 7 : 3) && stored.length > 0) {
        const [gone] = stored.splice(random.below(random.oneIn(2) ? 1 : stored.length), 1);
        check(gone!);
        slabs.free(gone!.payload);
        slabs.free(gone!.payload);
        bytes -= shared(gone!.expected.length);
      } else {
        const given = new Uint8Array(random.pick([0, 1, 8, 64, 90, 500, 4_096, 4_097])!).fill(random.below(256));
        stored.push({ payload: keep(slabs, given), expected: given.slice() });
        given.fill(255);
        bytes += shared(given.length);
      }
      // Four times what is stored, the slab that is being filled, and one kept for the next.
      assert.ok(slabs.count <= Math.ceil(bytes * 4 / 65_536) + 2, `${slabs.count} slabs for ${bytes} bytes`);
      if (random.oneIn(500)) stored.forEach(check);
    }
    stored.forEach(check);
  });
});

function shared(length: number): number {
  return length > 4_096 ? 0 : paddedLength(length);
}

test("PayloadSlabs keeps no byte of a freed payload, however large", () => {
  const slabs = new PayloadSlabs();
  for (const size of [10, 5_000]) {
    const stored = keep(slabs, new Uint8Array(size));
    slabs.free(stored);
    assert.equal(stored.slab, undefined);
  }
});

test("PayloadSlabs holds one slab for a million short-lived payloads beside an old one", () => {
  const slabs = new PayloadSlabs();
  const old = keep(slabs, new Uint8Array(64).fill(1));
  const payload = new Uint8Array(64);
  for (let round = 0; round < 1_000_000; round++) slabs.free(keep(slabs, payload));
  assert.equal(slabs.count, 1);
  assert.deepEqual(copyPayload(old), new Uint8Array(64).fill(1));
});

test("PayloadSlabs lets no old payload keep its neighbours' slab", () => {
  const slabs = new PayloadSlabs();
  const old: StoredPayload[] = [];
  for (let slab = 0; slab < 100; slab++) {
    const batch = Array.from({ length: 1_024 }, () => keep(slabs, new Uint8Array(64).fill(slab)));
    old.push(batch.shift()!);
    for (const payload of batch) slabs.free(payload);
  }
  assert.ok(slabs.count <= 2, `${slabs.count} slabs for ${old.length} payloads of 64 bytes`);
  old.forEach((payload, slab) => assert.deepEqual(copyPayload(payload), new Uint8Array(64).fill(slab)));
});
