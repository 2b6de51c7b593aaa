import assert from "node:assert/strict";
import { normalizePolicy, type Policy } from "../../src/core/policy.ts";
import { retryDelay } from "../../src/core/retry.ts";
import { test } from "../support/test.ts";

const base: Policy = { visibilityTimeout: 30_000, maxDeliveries: 5, retryDelay: 2_000 };
const neverDrawn = () => assert.fail("nothing is drawn");

function delays(policy: Policy, random: () => number, ...counts: number[]): number[] {
  return counts.map((count) => retryDelay(normalizePolicy(policy), count, random));
}

test("retryDelay() is constant without a ceiling, and draws nothing", () => {
  assert.deepEqual(delays(base, neverDrawn, 1, 2, 50), [2_000, 2_000, 2_000]);
});

test("retryDelay() doubles up to the ceiling", () => {
  assert.deepEqual(delays({ ...base, maxRetryDelay: 6_000 }, neverDrawn, 1, 2, 3, 4), [2_000, 4_000, 6_000, 6_000]);
});

test("retryDelay() holds the ceiling however many failures there were, and reads below 1 as 1", () => {
  const policy = { ...base, maxRetryDelay: 6_000 };
  const counts = [1_000_000, Number.MAX_SAFE_INTEGER, 2_147_483_647, 0, -7];
  assert.deepEqual(delays(policy, neverDrawn, ...counts), [6_000, 6_000, 6_000, 2_000, 2_000]);
});

test("retryDelay() lays additive jitter on after the ceiling", () => {
  const policy: Policy = { ...base, maxRetryDelay: 6_000, retryJitter: 0.5 };
  assert.deepEqual(delays(policy, () => 0.5, 1, 3), [2_500, 7_500]);
  assert.deepEqual(delays(policy, () => 0, 1, 3), [2_000, 6_000]);
  const [most] = delays(policy, () => 0.999999, 3);
  assert.ok(most! >= 8_999 && most! < 9_000);
});

test("retryDelay() leaves a delay alone whose jitter is less than a millisecond", () => {
  assert.deepEqual(delays({ ...base, retryDelay: 1, maxRetryDelay: 1, retryJitter: 0.5 }, () => 0.9, 1), [1]);
});

test("retryDelay() in full mode draws from nothing to the grown delay", () => {
  const policy: Policy = { ...base, maxRetryDelay: 6_000, retryJitterMode: "full" };
  assert.deepEqual(delays(policy, () => 0, 1, 4), [0, 0]);
  assert.deepEqual(delays(policy, () => 0.5, 1, 2, 3), [1_000, 2_000, 3_000]);
});

test("retryDelay() in decorrelated mode draws from the delay to thrice the one before, held at the ceiling", () => {
  const policy: Policy = { ...base, maxRetryDelay: 9_000, retryJitterMode: "decorrelated" };
  // n = 1: 2000 + r * 4000; n = 2: 2000 + r * (3 * 2000 - 2000); n = 3: 2000 + r * (3 * 4000 - 2000).
  assert.deepEqual(delays(policy, () => 0.5, 1, 2, 3), [4_000, 4_000, 7_000]);
  assert.deepEqual(delays(policy, () => 0.999999, 3, 30), [9_000, 9_000]);
  assert.deepEqual(delays(policy, () => 0, 5), [2_000]);
});

test("retryDelay() draws once for a jittered delay", () => {
  for (
    const policy of [{ retryJitter: 0.1 }, { retryJitterMode: "full" }, { retryJitterMode: "decorrelated" }] as const
  ) {
    let draws = 0;
    delays({ ...base, maxRetryDelay: 6_000, ...policy }, () => (draws++, 0.3), 3);
    assert.equal(draws, 1);
  }
});
