import assert from "node:assert/strict";
import type { ConsumeEvent, Handler } from "../../src/consume/mod.ts";
import {
  acknowledged,
  doNotRetry,
  hasCode,
  isQueueError,
  maxInstant,
  QueueError,
  retryAfter,
} from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { nothing, quiet, Stage, until } from "./stage.ts";

/** Runs a handler on one message until its outcome is recorded, then stops. */
async function outcomeOf(handler: Handler, stage = new Stage({ retryDelay: 1_000 }), bare?: Parameters<Stage["bare"]>) {
  await stage.publish(1);
  let runs = 0;
  const running = stage.consume({
    handler: (delivery, context) => {
      runs++;
      return handler(delivery, context);
    },
  }, bare === undefined ? stage.broker : stage.bare(...bare));
  await until(() => running.kinds().length > 0, "The outcome");
  running.stop();
  await running.done;
  return { stage, runs, event: running.events[0]!, dead: await stage.inner.deadLetters({ max: 5 }) };
}

test("a handler that returns, at once or later, acknowledges", async () => {
  for (const handler of [() => {}, () => 7, async () => {}, () => Promise.resolve(undefined)]) {
    const { stage, event, runs } = await outcomeOf(handler);
    assert.equal(event.kind, "acknowledged");
    assert.equal((event as { by: string }).by, "consumer");
    assert.equal(runs, 1);
    assert.deepEqual(await stage.left(), nothing);
  }
});

test("a thenable of another make is awaited", async () => {
  const { event } = await outcomeOf(() => ({ then: (resolve: (value: unknown) => void) => resolve(1) }));
  assert.equal(event.kind, "acknowledged");
});

test("an error hands the message back with that very error", async () => {
  for (const how of ["throws", "rejects"]) {
    const stage = new Stage({ retryDelay: 1_000 });
    const error = new QueueError("MESSAGE_TOO_LARGE");
    const { event } = await outcomeOf(() => {
      if (how === "throws") throw error;
      return Promise.reject(error);
    }, stage);
    assert.equal(event.kind, "retried");
    const nack = stage.calls.find((call) => call.method === "nack")!;
    assert.equal(nack.args[1], error);
    await stage.clock.advance(1_000);
    const [again] = await stage.inner.receive(1);
    assert.equal(again!.deliveries, 2);
    assert.deepEqual(again!.lastFailure, { reason: "MESSAGE_TOO_LARGE", code: 136962 });
  }
});

test("a foreign error is recorded by its name, or as the caller describes it", async () => {
  const secret = "the secret text";
  const plain = await outcomeOf(() => {
    throw new RangeError(secret);
  }, new Stage({ maxDeliveries: 1 }));
  assert.equal(plain.event.kind, "deadLettered");
  assert.equal(plain.dead[0]!.reason, "UNCLASSIFIED");
  assert.equal(plain.dead[0]!.cause, "RangeError");
  assert.doesNotMatch(JSON.stringify(plain.dead), new RegExp(secret));

  const stage = new Stage({ maxDeliveries: 1 });
  await stage.publish(2);
  const running = stage.consume({
    handler: ({ message }) => {
      throw new RangeError(message.payload[0] === 1 ? "described" : "not");
    },
    describe: (error) => {
      if ((error as Error).message !== "described") throw new Error("No description");
      return { reason: "OUT_OF_RANGE", cause: "A number", code: 7 };
    },
  });
  await until(() => running.kinds().length === 2);
  running.stop();
  await running.done;
  const [described, not] = await stage.inner.deadLetters({ max: 5 });
  assert.deepEqual([described!.reason, described!.cause, described!.code], ["OUT_OF_RANGE", "A number", 7]);
  assert.deepEqual([not!.reason, not!.cause, not!.code], ["UNCLASSIFIED", "RangeError", 0]);
});

test("doNotRetry gives the message up at the first failure, wherever the mark is in the chain", async () => {
  for (
    const [error, reason] of [
      [doNotRetry(), "NOT_RETRYABLE"],
      [doNotRetry(new RangeError()), "NOT_RETRYABLE"],
      [doNotRetry(new QueueError("TASK_UNDECODABLE")), "TASK_UNDECODABLE"],
      [new Error("Outer", { cause: doNotRetry(new Error()) }), "NOT_RETRYABLE"],
      [doNotRetry(retryAfter(new Error(), 5)), "NOT_RETRYABLE"],
      [retryAfter(doNotRetry(new Error()), 5), "NOT_RETRYABLE"],
      [new AggregateError([new Error(), doNotRetry(new Error())]), "NOT_RETRYABLE"],
    ] as const
  ) {
    const { stage, event, runs, dead } = await outcomeOf(() => Promise.reject(error));
    assert.equal(event.kind, "deadLettered");
    assert.equal((event as { error: unknown }).error, error);
    assert.equal(runs, 1);
    assert.equal(dead[0]!.reason, reason);
    assert.equal(dead[0]!.deliveries, 1);
    assert.equal(stage.calls.find((call) => call.method === "reject")!.args[1], error);
  }
});

test("without a Rejecter a final failure is nacked until the attempts are used up", async () => {
  const stage = new Stage({ maxDeliveries: 3 });
  await stage.publish(1);
  let runs = 0;
  const running = stage.consume({
    handler: () => {
      runs++;
      throw doNotRetry(new RangeError());
    },
  }, stage.bare("wake"));
  await until(() => running.kinds().includes("deadLettered"));
  running.stop();
  await running.done;
  assert.equal(runs, 3);
  const [dead] = await stage.inner.deadLetters({ max: 1 });
  assert.deepEqual([dead!.reason, dead!.cause], ["NOT_RETRYABLE", "RangeError"]);
});

test("retryAfter hands back for the delay that the outermost mark names", async () => {
  const { stage, event } = await outcomeOf(() => {
    throw retryAfter(new Error("Outer", { cause: retryAfter(new Error(), 9) }), 700);
  }, new Stage({ retryDelay: 5 }));
  assert.equal(event.kind, "retried");
  assert.equal((event as { visibleAt: Date }).visibleAt.getTime(), stage.clock.now() + 700);
  await stage.clock.advance(699);
  assert.equal((await stage.inner.receive(1)).length, 0);
  await stage.clock.advance(1);
  assert.equal((await stage.inner.receive(1))[0]!.deliveries, 2);
});

test("retryAfter without a DelayedNacker is an ordinary nack", async () => {
  const { stage, event } = await outcomeOf(
    () => {
      throw retryAfter(new Error(), 700);
    },
    new Stage({ retryDelay: 1_000 }),
    [],
  );
  assert.equal(event.kind, "retried");
  assert.equal(stage.count("nack"), 1);
});

test("a delay beyond the recordable instants is cut, and one that the broker refuses all the same is a nack", async () => {
  const far = await outcomeOf(() => {
    throw retryAfter(new Error(), Infinity);
  });
  const visibleAt = (far.event as { visibleAt: Date }).visibleAt.getTime();
  assert.ok(visibleAt <= maxInstant && visibleAt > maxInstant - 2 * 86_400_000);

  const stage = new Stage({ retryDelay: 1_000 });
  stage.fail("nackAfter", new QueueError("QUEUE_MISCONFIGURED"));
  const refused = await outcomeOf(() => {
    throw retryAfter(new Error(), 5);
  }, stage);
  assert.equal(refused.event.kind, "retried");
  assert.equal(stage.count("nack"), 1);
});

test("a handler that acknowledged the message itself is left alone", async () => {
  for (
    const say of [
      () => acknowledged,
      () => Promise.resolve(acknowledged),
      () => {
        throw acknowledged;
      },
      () => Promise.reject(new Error("Done", { cause: acknowledged })),
    ]
  ) {
    const stage = new Stage();
    const { event } = await outcomeOf(async ({ lease }) => {
      await stage.inner.ack(lease.receipt);
      return say();
    }, stage);
    assert.deepEqual({ ...event }, {
      kind: "acknowledged",
      id: (event as { id: string }).id,
      deliveries: 1,
      by: "handler",
    });
    for (const method of ["ack", "ackMany", "nack", "release", "reject"]) assert.equal(stage.count(method), 0);
    assert.deepEqual(await stage.left(), nothing);
  }
});

test("a thrown value that is no Error is a panic: recorded as such, never as what it says it is", async () => {
  const disguised = { name: "QueueError", reason: "NOT_RETRYABLE", code: 136966, [Symbol.for("@x/queue.error")]: true };
  for (const value of ["text", undefined, null, 7, disguised, Object.create(null)]) {
    const stage = new Stage({ retryDelay: 1_000 });
    const { event, dead } = await outcomeOf(() => {
      throw value;
    }, stage);
    assert.equal(event.kind, "retried");
    const { error } = event as { error: unknown };
    assert.ok(isQueueError(error, "HANDLER_PANICKED"));
    assert.equal(error.fields.value, value);
    assert.equal(hasCode(error, "NOT_RETRYABLE"), false);
    assert.deepEqual(dead, []);
    await stage.clock.advance(1_000);
    assert.equal((await stage.inner.receive(1))[0]!.lastFailure!.reason, "HANDLER_PANICKED");
  }
});

test("the consumer outlives every failure of a handler", async () => {
  const stage = new Stage({ maxDeliveries: 1 });
  await stage.publish(4);
  const throws: unknown[] = [new Error(), "text", doNotRetry()];
  const running = stage.consume({
    handler: () => {
      if (throws.length > 0) throw throws.shift();
    },
  });
  await until(() => running.kinds().length === 4);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds().sort(), ["acknowledged", "deadLettered", "deadLettered", "deadLettered"]);
  assert.deepEqual(await stage.left(), { ...nothing, dead: 3 });
});

test("a message that kills its consumers becomes a dead letter, since deliveries are counted", async () => {
  const stage = new Stage({ maxDeliveries: 3 });
  await stage.publish(1);
  for (let death = 1; death <= 3; death++) {
    const [delivery] = await stage.inner.receive(1);
    assert.equal(delivery!.deliveries, death);
    await stage.clock.advance(30_000);
  }
  let runs = 0;
  const running = stage.consume({ handler: () => void runs++ });
  await quiet();
  running.stop();
  await running.done;
  assert.equal(runs, 0);
  assert.equal((await stage.inner.deadLetters({ max: 1 }))[0]!.reason, "LEASE_EXPIRED");
});

test("events name the message, show no payload when printed, and a listener that throws disturbs nothing", async () => {
  const stage = new Stage();
  const [id] = await stage.publish(3);
  const running = stage.consume({
    onEvent: (event) => {
      if ("id" in event && event.id === id) throw new Error("The listener's");
      return Promise.reject(new Error("The listener's")) as unknown as void;
    },
  });
  await until(() => running.kinds().length === 3);
  running.stop();
  await running.done;
  const [first] = running.events as (ConsumeEvent & { id: string })[];
  assert.equal(first!.id, id);
  assert.deepEqual(Object.keys(first!).sort(), ["by", "deliveries", "id", "kind"]);
  assert.equal((first as unknown as { delivery: { message: { id: string } } }).delivery.message.id, id);
  assert.deepEqual(running.events.at(-1), { kind: "stopped", why: "signal" });
});
