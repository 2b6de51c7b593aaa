import assert from "node:assert/strict";
import { OnceKeys } from "../../../src/brokers/memory/once_keys.ts";
import { test } from "../../support/test.ts";

test("OnceKeys forgets ended reservations when a later one is made", () => {
  const keys = new OnceKeys();
  for (let key = 0; key < 100; key++) keys.reserve(`key ${key}`, 1_000 + key, 0);
  assert.ok(keys.isReserved("key 0", 999));
  assert.ok(!keys.isReserved("key 0", 1_000));
  assert.equal(keys.size, 100);
  keys.reserve("late", 5_000, 1_050);
  assert.equal(keys.size, 50);
});

test("OnceKeys keeps a key that was reserved again when its first window is cleared away", () => {
  const keys = new OnceKeys();
  keys.reserve("other", 500, 0);
  keys.reserve("key", 1_000, 0);
  keys.reserve("key", 3_000, 1_000);
  keys.reserve("more", 4_000, 2_000);
  assert.ok(keys.isReserved("key", 2_000));
  assert.equal(keys.size, 2);
});
