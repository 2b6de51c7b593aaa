import assert from "node:assert/strict";
import { QueueError } from "../../src/core/error.ts";
import { expiredFailure, recordableText, recordFailure, withDescription } from "../../src/core/failure.ts";
import { doNotRetry, retryAfter } from "../../src/core/marks.ts";
import { reasons } from "../../src/core/reasons.ts";
import { test } from "../support/test.ts";

const secret = "card 4111 1111 1111 1111";

test("recordFailure() of no cause says that nobody reported one", () => {
  const expected = { reason: "UNREPORTED", cause: "", code: 0, trail: [] };
  assert.deepEqual(recordFailure(undefined), expected);
  assert.deepEqual(recordFailure(null), expected);
});

test("recordFailure() of a foreign error keeps its name and nothing of its text", () => {
  assert.deepEqual(recordFailure(new RangeError(secret)), {
    reason: "UNCLASSIFIED",
    cause: "RangeError",
    code: 0,
    trail: [],
  });
  assert.deepEqual(recordFailure(secret), { reason: "UNCLASSIFIED", cause: "", code: 0, trail: [] });
  const named = Object.assign(new Error(secret), { name: `Line\nbreak ${"x".repeat(200)}` });
  const { cause } = recordFailure(named);
  assert.ok(cause.startsWith("Line break x") && [...cause].length === 120);
});

test("recordFailure() keeps the identity of the deepest of our errors, and the others as its trail", () => {
  const origin = new QueueError("MESSAGE_TOO_LARGE", `Cannot do it: ${secret}`);
  const inner = new QueueError("QUEUE_BACKEND_FAILED", undefined, { cause: new Error("foreign", { cause: origin }) });
  const outer = new QueueError("TASK_TIMEOUT", undefined, { cause: inner });
  assert.deepEqual(recordFailure(new Error("outermost", { cause: outer })), {
    reason: "MESSAGE_TOO_LARGE",
    cause: reasons.MESSAGE_TOO_LARGE.text,
    code: 136962,
    trail: [210177, 262660],
  });
});

test("recordFailure() keeps the newest 16 codes of a trail", () => {
  let error = new QueueError("MESSAGE_TOO_LARGE");
  for (let depth = 0; depth < 20; depth++) {
    error = new QueueError(depth < 4 ? "LEASE_EXPIRED" : "TASK_TIMEOUT", undefined, { cause: error });
  }
  assert.deepEqual(recordFailure(error).trail, new Array(16).fill(262660));
});

test("recordFailure() of a mark around a foreign error takes the mark's identity", () => {
  assert.deepEqual(recordFailure(doNotRetry(new TypeError(secret))), {
    reason: "NOT_RETRYABLE",
    cause: "TypeError",
    code: 136966,
    trail: [],
  });
  assert.deepEqual(recordFailure(retryAfter(new TypeError(secret), 5)).reason, "RETRY_REQUESTED");
  assert.equal(recordFailure(doNotRetry(retryAfter(new Error(secret), 5))).reason, "NOT_RETRYABLE");
  assert.equal(recordFailure(retryAfter(doNotRetry(new Error(secret)), 5)).reason, "NOT_RETRYABLE");
  assert.equal(recordFailure(doNotRetry()).cause, reasons.NOT_RETRYABLE.text);
});

test("recordFailure() of a mark around one of ours keeps that one's identity and the mark in the trail", () => {
  const { reason, trail } = recordFailure(doNotRetry(new QueueError("TASK_TIMEOUT")));
  assert.deepEqual([reason, trail], ["TASK_TIMEOUT", [136966]]);
});

test("recordFailure() records what a caller described, within bounds, and the rest as by default", () => {
  const error = new RangeError(secret);
  const described = recordFailure(withDescription(error, { reason: "OUT_OF_STOCK", cause: "none\nleft", code: 7 }));
  assert.deepEqual(described, { reason: "OUT_OF_STOCK", cause: "none left", code: 7, trail: [] });
  const part = recordFailure(withDescription(doNotRetry(error), { cause: "none left", code: -1 }));
  assert.deepEqual(part, { reason: "NOT_RETRYABLE", cause: "none left", code: 136966, trail: [] });
});

test("recordableText() cuts to one line of 120 code points and never through a character", () => {
  assert.equal(recordableText("a\r\nb\nc"), "a b c");
  assert.equal([...recordableText("😀".repeat(200))].length, 120);
  assert.ok(recordableText("😀".repeat(200)).isWellFormed());
  assert.ok(recordableText("\ud800").isWellFormed());
});

test("expiredFailure() keeps the code of the last failure as its trail", () => {
  assert.deepEqual(expiredFailure(0).trail, []);
  assert.deepEqual([expiredFailure(262660).code, expiredFailure(262660).trail], [136971, [262660]]);
});
