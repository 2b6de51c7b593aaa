import assert from "node:assert/strict";
import { isQueueError } from "../../src/core/error.ts";
import { noHeaders, normalizeHeaders } from "../../src/core/headers.ts";
import { test } from "../support/test.ts";

const bounds = { maxHeaders: 3, maxHeaderBytes: 20 };

function refusal(headers: unknown): [string, unknown] | undefined {
  try {
    normalizeHeaders(headers as Record<string, string>, bounds);
    return undefined;
  } catch (error) {
    assert.ok(isQueueError(error), String(error));
    return [error.reason, error.fields.field];
  }
}

test("normalizeHeaders() brings names to lower case in a frozen object without a prototype", () => {
  const headers = normalizeHeaders({ "Content-Type": "a", b: "é" }, bounds);
  assert.deepEqual({ ...headers }, { "content-type": "a", b: "é" });
  assert.equal(Object.getPrototypeOf(headers), null);
  assert.ok(Object.isFrozen(headers));
});

test("normalizeHeaders() gives every message without headers one empty object", () => {
  assert.equal(normalizeHeaders(undefined, bounds), noHeaders);
  assert.equal(normalizeHeaders({}, bounds), noHeaders);
});

test("normalizeHeaders() keeps a name that an object's prototype has", () => {
  const headers = normalizeHeaders(JSON.parse('{"__proto__":"a","constructor":"b"}'), {
    maxHeaders: 3,
    maxHeaderBytes: 99,
  });
  assert.deepEqual(Object.entries(headers), [["__proto__", "a"], ["constructor", "b"]]);
});

test("normalizeHeaders() refuses ill-formed names and values", () => {
  for (
    const headers of [{ "": "a" }, { "a b": "a" }, { "é": "a" }, { "a\n": "b" }, { a: 1 }, { a: null }, { a: "\ud800" }]
  ) {
    assert.deepEqual(refusal(headers), ["QUEUE_MISCONFIGURED", "headers"], JSON.stringify(headers));
  }
  assert.deepEqual(refusal("a=b"), ["QUEUE_MISCONFIGURED", "headers"]);
  assert.deepEqual(refusal(null), ["QUEUE_MISCONFIGURED", "headers"]);
});

test("normalizeHeaders() refuses two names that differ only in case", () => {
  assert.deepEqual(refusal({ a: "1", A: "2" }), ["QUEUE_MISCONFIGURED", "headers"]);
});

test("normalizeHeaders() counts headers and their bytes in UTF-8", () => {
  assert.equal(refusal({ a: "x".repeat(19) }), undefined);
  assert.deepEqual(refusal({ a: "x".repeat(20) }), ["MESSAGE_TOO_LARGE", "headers"]);
  assert.equal(refusal({ a: "é".repeat(9) }), undefined);
  assert.deepEqual(refusal({ a: "é".repeat(10) }), ["MESSAGE_TOO_LARGE", "headers"]);
  assert.deepEqual(refusal({ a: "", b: "", c: "", d: "" }), ["MESSAGE_TOO_LARGE", "headers"]);
});
