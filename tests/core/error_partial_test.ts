import assert from "node:assert/strict";
import { inspect } from "node:util";
import { QueueError } from "../../src/core/error.ts";
import { test } from "../support/test.ts";

test("an error keeps what a call had done, and printing it prints no payload", () => {
  const payload = new TextEncoder().encode("secret");
  const error = new QueueError("QUEUE_BACKEND_FAILED", undefined, { partial: [{ id: "1", payload }] });
  assert.equal(error.partial?.[0]?.payload, payload);
  assert.ok(!inspect(error, { depth: 9 }).includes(`${payload[0]}, ${payload[1]}`));
  assert.ok(!JSON.stringify(error).includes("payload"));
});

test("an error of a call that did nothing has no partial", () => {
  assert.equal("partial" in new QueueError("QUEUE_BACKEND_FAILED"), false);
});
