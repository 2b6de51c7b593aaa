import assert from "node:assert/strict";
import { runInNewContext } from "node:vm";
import { hasCode, isError, isQueueError, QueueError } from "../../src/core/error.ts";
import { acknowledged, doNotRetry, isMarkedFinal, markedDelay, retryAfter } from "../../src/core/marks.ts";
import { maxInstant } from "../../src/core/limits.ts";
import { type QueueReason, reasonOfCode, reasons } from "../../src/core/reasons.ts";
import { test } from "../support/test.ts";

/** The codes as they are published: a change here breaks whoever stored one. */
const published: Readonly<Record<QueueReason, readonly [string, number]>> = {
  QUEUE_MISCONFIGURED: ["0.2.23.1", 136961],
  MESSAGE_TOO_LARGE: ["0.2.23.2", 136962],
  UNKNOWN_RECEIPT: ["0.2.23.3", 136963],
  LEASE_EXPIRED: ["0.2.23.4", 136964],
  INVALID_BATCH_SIZE: ["0.2.23.5", 136965],
  NOT_RETRYABLE: ["0.2.23.6", 136966],
  DEAD_LETTER_NOT_FOUND: ["0.2.23.7", 136967],
  INVALID_DEAD_LETTER: ["0.2.23.8", 136968],
  INVALID_MESSAGE: ["0.2.23.9", 136969],
  RETRY_REQUESTED: ["0.2.23.10", 136970],
  MESSAGE_EXPIRED: ["0.2.23.11", 136971],
  ACKNOWLEDGED: ["0.2.23.12", 136972],
  QUEUE_CLOSED: ["0.2.23.13", 136973],
  QUEUE_BACKEND_FAILED: ["0.3.53.1", 210177],
  QUEUE_DIRECTORY_UNUSABLE: ["0.3.53.2", 210178],
  CONSUMER_MISCONFIGURED: ["0.3.53.3", 210179],
  HANDLER_PANICKED: ["0.3.53.4", 210180],
  SQL_QUEUE_MISCONFIGURED: ["0.3.53.5", 210181],
  UNSUPPORTED_PLATFORM: ["0.4.1.1", 262401],
  REDIS_QUEUE_MISCONFIGURED: ["0.4.1.2", 262402],
  TASK_MISCONFIGURED: ["0.4.2.1", 262657],
  TASK_UNDECODABLE: ["0.4.2.2", 262658],
  TASK_EXHAUSTED: ["0.4.2.3", 262659],
  TASK_TIMEOUT: ["0.4.2.4", 262660],
  SAGA_DEFINITION_CHANGED: ["0.4.3.1", 262913],
};

test("reasons keep their published codes, each its own", () => {
  assert.deepEqual(Object.keys(reasons).sort(), Object.keys(published).sort());
  for (const [reason, [dotted, code]] of Object.entries(published)) {
    assert.deepEqual([reasons[reason as QueueReason].dotted, reasons[reason as QueueReason].code], [dotted, code]);
    assert.equal(reasonOfCode(code), reason);
    const [layer, pack, serial] = dotted.split(".").slice(1).map(Number);
    assert.equal(code, 65536 * layer! + 256 * pack! + serial!);
  }
  assert.equal(new Set(Object.values(reasons).map(({ code }) => code)).size, Object.keys(reasons).length);
  assert.equal(reasonOfCode(1), undefined);
});

test("public texts are one line of at most 120 code points", () => {
  for (const { text } of Object.values(reasons)) {
    assert.ok(text.length > 0 && [...text].length <= 120 && !/[\r\n]/.test(text), text);
  }
});

test("QueueError carries reason, code, fields and cause", () => {
  const cause = new Error("behind it");
  const error = new QueueError("LEASE_EXPIRED", "Cannot do it", { fields: { field: "x" }, cause });
  assert.deepEqual([error.name, error.reason, error.code, error.dotted], [
    "QueueError",
    "LEASE_EXPIRED",
    136964,
    "0.2.23.4",
  ]);
  assert.deepEqual([error.message, error.fields.field, error.cause], ["Cannot do it", "x", cause]);
  assert.equal(error.publicMessage, reasons.LEASE_EXPIRED.text);
  assert.equal(new QueueError("LEASE_EXPIRED").message, reasons.LEASE_EXPIRED.text);
  assert.ok(!("cause" in new QueueError("LEASE_EXPIRED")));
});

test("isQueueError() knows errors of another copy of the module by their brand, and no others", () => {
  const twin = Object.assign(new Error("twin"), { reason: "LEASE_EXPIRED", [Symbol.for("@x/queue.error")]: true });
  assert.ok(isQueueError(twin) && isQueueError(twin, "LEASE_EXPIRED") && !isQueueError(twin, "QUEUE_CLOSED"));
  for (const other of [new Error("x"), { reason: "LEASE_EXPIRED" }, null, undefined, "LEASE_EXPIRED", 136964]) {
    assert.ok(!isQueueError(other));
  }
});

test("isError() accepts errors of another realm and refuses what only looks like one", () => {
  assert.ok(isError(new TypeError("x")));
  assert.ok(isError(runInNewContext("new Error('x')")));
  for (const other of [{ name: "Error", message: "x" }, "x", null, undefined]) assert.ok(!isError(other));
});

test("hasCode() finds a code anywhere in a chain, in joined branches and in circles", () => {
  const inner = new QueueError("MESSAGE_TOO_LARGE");
  const joined = new AggregateError([new Error("a"), new Error("b", { cause: inner })], "joined");
  const outer = new Error("outer", { cause: joined });
  assert.ok(hasCode(outer, "MESSAGE_TOO_LARGE") && hasCode(outer, 136962));
  assert.ok(!hasCode(outer, "LEASE_EXPIRED") && !hasCode(undefined, "LEASE_EXPIRED"));
  const circle = new Error("circle");
  circle.cause = new Error("back", { cause: circle });
  assert.ok(!hasCode(circle, "LEASE_EXPIRED"));
});

test("doNotRetry() marks an error anywhere in a chain and keeps it as the cause", () => {
  const cause = new Error("x");
  assert.equal(doNotRetry(cause).cause, cause);
  assert.ok(isMarkedFinal(new Error("wrapped", { cause: doNotRetry(cause) })) && isMarkedFinal(doNotRetry()));
  assert.ok(!isMarkedFinal(cause) && !isMarkedFinal(retryAfter(cause, 5)));
});

test("retryAfter() clamps its delay, and the outermost mark wins", () => {
  assert.equal(markedDelay(retryAfter(new Error("x"), 1_500.9)), 1_500);
  assert.equal(markedDelay(retryAfter(new Error("x"), -5)), 0);
  assert.equal(markedDelay(retryAfter(new Error("x"), Infinity)), maxInstant);
  assert.equal(markedDelay(retryAfter(retryAfter(new Error("x"), 1), 2)), 2);
  assert.equal(markedDelay(new Error("x")), undefined);
  assert.throws(() => retryAfter(new Error("x"), NaN), TypeError);
  assert.throws(() => retryAfter(new Error("x"), "5" as unknown as number), /"delay" is 5, expected a number of ms/);
});

test("acknowledged is a mark of its own", () => {
  assert.ok(isQueueError(acknowledged, "ACKNOWLEDGED") && !isMarkedFinal(acknowledged));
});
