import assert from "node:assert/strict";
import { consume, type ConsumeOptions, deliveries } from "../../src/consume/mod.ts";
import { resolveConsume } from "../../src/consume/options.ts";
import { isQueueError, systemClock } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { nothing, Stage } from "./stage.ts";

const required = { handler: () => {}, handlerIsIdempotent: true } as const;

function resolve(options: Record<string, unknown>) {
  return resolveConsume(new Stage().broker, { ...required, ...options } as unknown as ConsumeOptions);
}

async function refusedField(options: Record<string, unknown>): Promise<unknown> {
  const stage = new Stage();
  await stage.publish(1);
  try {
    await consume(stage.broker, options as unknown as ConsumeOptions);
  } catch (error) {
    assert.ok(isQueueError(error, "CONSUMER_MISCONFIGURED"), String(error));
    assert.equal(stage.count("receive"), 0);
    return error.fields.field;
  }
  assert.fail("It was not refused");
}

test("consume refuses to start without a handler or the statement that it is idempotent", async () => {
  assert.equal(await refusedField({ handlerIsIdempotent: true }), "handler");
  assert.equal(await refusedField({ handler: "no", handlerIsIdempotent: true }), "handler");
  assert.equal(await refusedField({ handler: () => {} }), "handlerIsIdempotent");
  assert.equal(await refusedField({ handler: () => {}, handlerIsIdempotent: 1 }), "handlerIsIdempotent");
});

test("the statement is a literal type", () => {
  // @ts-expect-error: it cannot be a boolean that somebody computed
  const options: ConsumeOptions = { handler: () => {}, handlerIsIdempotent: false };
  assert.equal(options.handlerIsIdempotent, false);
});

test("options are checked before the signal is looked at", async () => {
  assert.equal(await refusedField({ signal: AbortSignal.abort(), handlerIsIdempotent: true }), "handler");
  const stage = new Stage();
  const running = stage.consume({ signal: AbortSignal.abort() });
  await running.done;
  assert.deepEqual(running.events, [{ kind: "stopped", why: "signal" }]);
  assert.deepEqual(await stage.left(), nothing);
  assert.equal(stage.calls.length, 0);
});

test("numbers that are none are refused by field", async () => {
  for (const field of ["parallelism", "batchSize", "ackedWindow", "settleTimeout"]) {
    for (const value of [NaN, Infinity, -Infinity, "1", null]) {
      assert.equal(await refusedField({ ...required, [field]: value }), field, `${field} ${value}`);
    }
  }
  for (const field of ["pollInterval", "drainTimeout", "storagePatience"]) {
    for (const value of [NaN, -Infinity, "1", null]) {
      assert.equal(await refusedField({ ...required, [field]: value }), field, `${field} ${value}`);
    }
  }
  for (const field of ["parallelism", "batchSize", "ackedWindow"]) {
    assert.equal(await refusedField({ ...required, [field]: 1.5 }), field);
  }
});

test("what has the wrong type is refused by field", async () => {
  for (
    const [field, value] of [
      ["prefetch", "yes"],
      ["autoExtend", 1],
      ["describe", {}],
      ["onEvent", {}],
      ["signal", {}],
      ["clock", { now: () => 0 }],
    ] as const
  ) {
    assert.equal(await refusedField({ ...required, [field]: value }), field);
  }
  await assert.rejects(consume({} as never, required), { reason: "CONSUMER_MISCONFIGURED" });
  await assert.rejects(consume(new Stage().broker, undefined as never), { reason: "CONSUMER_MISCONFIGURED" });
});

test("what is out of range is clamped, and fractions of a millisecond are cut", () => {
  const defaults = resolve({});
  assert.equal(defaults.parallelism, 1);
  assert.equal(defaults.batchSize, 1);
  assert.equal(defaults.pollInterval, undefined);
  assert.equal(defaults.settleTimeout, 5_000);
  assert.equal(defaults.drainTimeout, 0);
  assert.equal(defaults.storagePatience, 300_000);
  assert.equal(defaults.ackedWindow, 0);
  assert.equal(defaults.autoExtend, false);
  assert.equal(defaults.prefetch, true);
  assert.equal(defaults.clock, systemClock);
  assert.ok(Object.isFrozen(defaults));

  const low = resolve({
    parallelism: -3,
    batchSize: 0,
    pollInterval: -1,
    settleTimeout: -1,
    drainTimeout: -1,
    storagePatience: -1,
    ackedWindow: -1,
  });
  assert.equal(low.parallelism, 1);
  assert.equal(low.batchSize, 1);
  assert.equal(low.pollInterval, undefined);
  assert.equal(low.settleTimeout, 5_000);
  assert.equal(low.drainTimeout, 0);
  assert.equal(low.storagePatience, 0);
  assert.equal(low.ackedWindow, 0);

  const given = resolve({ pollInterval: 7.9, settleTimeout: 0.5, drainTimeout: Infinity, storagePatience: Infinity });
  assert.equal(given.pollInterval, 7);
  assert.equal(given.settleTimeout, 5_000);
  assert.equal(given.drainTimeout, Infinity);
  assert.equal(given.storagePatience, Infinity);
});

test("deliveries refuses bad options when it is called", () => {
  const { broker } = new Stage();
  assert.throws(() => deliveries(broker, { batchSize: 0.5 }), { reason: "CONSUMER_MISCONFIGURED" });
  assert.throws(() => deliveries({} as never), { reason: "CONSUMER_MISCONFIGURED" });
});
