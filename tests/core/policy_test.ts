import assert from "node:assert/strict";
import { isQueueError } from "../../src/core/error.ts";
import { maxDeadlineOffset, maxDeliveryCount } from "../../src/core/limits.ts";
import { normalizePolicy, type Policy, validatePolicy } from "../../src/core/policy.ts";
import { test } from "../support/test.ts";

const good: Policy = { visibilityTimeout: 30_000, maxDeliveries: 5 };
const grown: Policy = { ...good, retryDelay: 1_000, maxRetryDelay: 60_000 };

/** The field that a policy is refused for, `undefined` when it is accepted. */
function refusedField(policy: unknown): unknown {
  try {
    validatePolicy(policy as Policy);
    return undefined;
  } catch (error) {
    assert.ok(isQueueError(error, "QUEUE_MISCONFIGURED"), String(error));
    assert.match(error.message, /^[A-Z].*[^.]$/, "capital first, no final period");
    assert.ok(error.message.includes(`"${error.fields.field}"`), "the message names the field");
    return error.fields.field;
  }
}

const refused: readonly (readonly [string, unknown, string])[] = [
  ["no policy", undefined, "policy"],
  ["an empty policy", {}, "policy.visibilityTimeout"],
  ["all zero", { visibilityTimeout: 0, maxDeliveries: 0 }, "policy.visibilityTimeout"],
  ["a negative lease", { ...good, visibilityTimeout: -1 }, "policy.visibilityTimeout"],
  ["a lease below 1 ms", { ...good, visibilityTimeout: 0.9 }, "policy.visibilityTimeout"],
  ["a lease of more than a century", { ...good, visibilityTimeout: maxDeadlineOffset + 1 }, "policy.visibilityTimeout"],
  ["a lease that is no number", { ...good, visibilityTimeout: "30s" }, "policy.visibilityTimeout"],
  ["a lease without end", { ...good, visibilityTimeout: Infinity }, "policy.visibilityTimeout"],
  ["no attempt", { ...good, maxDeliveries: 0 }, "policy.maxDeliveries"],
  ["half an attempt", { ...good, maxDeliveries: 1.5 }, "policy.maxDeliveries"],
  ["more attempts than are counted", { ...good, maxDeliveries: maxDeliveryCount + 1 }, "policy.maxDeliveries"],
  ["a negative size", { ...good, maxMessageBytes: -1 }, "policy.maxMessageBytes"],
  ["NaN bytes", { ...good, maxMessageBytes: NaN }, "policy.maxMessageBytes"],
  ["a delay of more than a century", { ...good, retryDelay: maxDeadlineOffset + 1 }, "policy.retryDelay"],
  ["a NaN delay", { ...good, retryDelay: NaN }, "policy.retryDelay"],
  ["an infinitely negative delay", { ...good, retryDelay: -Infinity }, "policy.retryDelay"],
  ["a negative ceiling", { ...good, maxRetryDelay: -1 }, "policy.maxRetryDelay"],
  ["a ceiling of more than a century", { ...grown, maxRetryDelay: maxDeadlineOffset + 1 }, "policy.maxRetryDelay"],
  ["a ceiling with nothing to grow from", { ...good, maxRetryDelay: 1_000 }, "policy.maxRetryDelay"],
  ["a ceiling over a negative delay", { ...good, retryDelay: -5, maxRetryDelay: 1_000 }, "policy.maxRetryDelay"],
  ["a ceiling below the delay", { ...good, retryDelay: 2_000, maxRetryDelay: 1_000 }, "policy.maxRetryDelay"],
  ["a negative age", { ...good, maxAge: -1 }, "policy.maxAge"],
  ["an age of more than a century", { ...good, maxAge: maxDeadlineOffset + 1 }, "policy.maxAge"],
  ["a negative retention", { ...good, deadLetterRetention: -1 }, "policy.deadLetterRetention"],
  ["a retention of NaN", { ...good, deadLetterRetention: NaN }, "policy.deadLetterRetention"],
  ["jitter above 1", { ...grown, retryJitter: 1.1 }, "policy.retryJitter"],
  ["negative jitter", { ...grown, retryJitter: -0.1 }, "policy.retryJitter"],
  ["NaN jitter", { ...grown, retryJitter: NaN }, "policy.retryJitter"],
  ["jitter of a constant delay", { ...good, retryDelay: 5, retryJitter: 0.5 }, "policy.retryJitter"],
  ["an unknown mode", { ...grown, retryJitterMode: "half" }, "policy.retryJitterMode"],
  ["a mode of a constant delay", { ...good, retryJitterMode: "full" }, "policy.retryJitterMode"],
  ["jitter beside full", { ...grown, retryJitterMode: "full", retryJitter: 0.5 }, "policy.retryJitter"],
  ["jitter beside decorrelated", { ...grown, retryJitterMode: "decorrelated", retryJitter: 0.5 }, "policy.retryJitter"],
  ["half a header", { ...good, maxHeaders: 0.5 }, "policy.maxHeaders"],
  ["negative header bytes", { ...good, maxHeaderBytes: -1 }, "policy.maxHeaderBytes"],
];

for (const [name, policy, field] of refused) {
  test(`validatePolicy() refuses ${name} as "${field}"`, () => {
    assert.equal(refusedField(policy), field);
  });
}

test("validatePolicy() accepts every bound that is still in range", () => {
  const accepted: readonly Policy[] = [
    good,
    { visibilityTimeout: maxDeadlineOffset, maxDeliveries: 1 },
    { visibilityTimeout: 1, maxDeliveries: maxDeliveryCount },
    { ...good, retryDelay: -Number.MAX_VALUE },
    { ...good, retryDelay: maxDeadlineOffset, maxRetryDelay: maxDeadlineOffset },
    { ...good, maxAge: maxDeadlineOffset, deadLetterRetention: maxDeadlineOffset },
    { ...grown, maxRetryDelay: 1_000, retryJitter: 1 },
    { ...grown, retryJitterMode: "decorrelated", retryJitter: 0 },
    { ...good, visibilityTimeout: maxDeadlineOffset + 0.5 },
  ];
  for (const policy of accepted) assert.equal(refusedField(policy), undefined, JSON.stringify(policy));
});

test("validatePolicy() reports the first bad field in one fixed order", () => {
  const order = [
    "visibilityTimeout",
    "maxDeliveries",
    "maxMessageBytes",
    "retryDelay",
    "maxRetryDelay",
    "maxAge",
    "deadLetterRetention",
    "retryJitter",
    "retryJitterMode",
    "maxHeaders",
    "maxHeaderBytes",
  ] as const;
  for (let from = 0; from < order.length; from++) {
    const policy: Record<string, unknown> = { ...grown };
    for (const field of order.slice(from)) policy[field] = NaN;
    assert.equal(refusedField(policy), `policy.${order[from]}`);
  }
});

test("normalizePolicy() fills in defaults, cuts fractions and freezes", () => {
  const policy = normalizePolicy({ visibilityTimeout: 1.9, maxDeliveries: 2, retryDelay: -5, maxMessageBytes: 0 });
  assert.deepEqual(policy, {
    visibilityTimeout: 1,
    maxDeliveries: 2,
    retryDelay: 0,
    maxRetryDelay: 0,
    retryJitter: 0,
    retryJitterMode: "additive",
    maxMessageBytes: 1_048_576,
    maxAge: 0,
    deadLetterRetention: 0,
    maxHeaders: 64,
    maxHeaderBytes: 8_192,
  });
  assert.ok(Object.isFrozen(policy));
});
