import assert from "node:assert/strict";
import { isTransient, StoragePatience, waitAfterFailure } from "../../src/consume/storage_patience.ts";
import { type Delivery, QueueError } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { gate, nothing, quiet, Stage, transient, until } from "./stage.ts";

test("what passes by itself is told by the system's code, or by the broker", () => {
  for (const code of ["EINTR", "EAGAIN", "EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "ESTALE", "EIO"]) {
    assert.equal(isTransient(transient(code)), true, code);
    assert.equal(isTransient(new QueueError("QUEUE_BACKEND_FAILED", "x", { cause: transient(code) })), true, code);
  }
  for (
    const error of [transient("EACCES"), transient("ENOENT"), transient("42601"), new TypeError(), "EIO", undefined]
  ) {
    assert.equal(isTransient(error), false);
  }
  const said = (transient: boolean, cause?: unknown) =>
    new QueueError("QUEUE_BACKEND_FAILED", "x", { fields: { transient }, cause });
  assert.equal(isTransient(said(true)), true);
  assert.equal(isTransient(new Error("Outer", { cause: said(true) })), true);
  assert.equal(isTransient(said(false, transient("EIO"))), false, "The broker knows better");
});

test("waits grow from 100 ms to 10 s, and end with the patience", () => {
  assert.deepEqual([1, 2, 3, 4, 7, 8, 1_000_000].map(waitAfterFailure), [100, 200, 400, 800, 6_400, 10_000, 10_000]);
  const patience = new StoragePatience(350);
  assert.equal(patience.afterFailure(0), 100);
  assert.equal(patience.afterFailure(100), 200);
  assert.equal(patience.afterFailure(300), 50);
  assert.equal(patience.afterFailure(350), undefined);
  patience.afterSuccess();
  assert.equal(patience.afterFailure(1_000), 100);
  assert.equal(new StoragePatience(0).afterFailure(0), undefined);
  const endless = new StoragePatience(Infinity);
  for (let now = 0; now < 1e9; now += 1e7) assert.ok(endless.afterFailure(now)! <= 10_000);
});

test("a receive that fails for a moment is retried; everybody works on afterwards", async () => {
  const stage = new Stage();
  await stage.publish(4);
  stage.fail("receive", transient(), 3);
  const held = gate();
  let open = 0;
  const running = stage.consume({ parallelism: 4, handler: () => (open++, held.opened) });
  await until(() => stage.clock.timers === 1);
  await stage.clock.advance(100 + 200 + 400 - 1);
  assert.equal(open, 0);
  await stage.clock.advance(1);
  await until(() => open === 4);
  assert.deepEqual(
    running.events.map((event) => event.kind === "storageFailure" && [event.operation, event.retryIn]),
    [["receive", 100], ["receive", 200], ["receive", 400]],
  );
  held.open();
  running.stop();
  await running.done;
  assert.deepEqual(await stage.left(), nothing);
});

test("a receive that keeps failing ends the consumer once patience has run out", async () => {
  const stage = new Stage();
  const error = transient("EIO");
  stage.fail("receive", error, Infinity);
  const running = stage.consume({ storagePatience: 1_000 });
  await stage.clock.advance(999);
  assert.equal(running.ended(), false);
  await stage.clock.advance(1);
  await assert.rejects(running.done, (thrown) => thrown === error);
  assert.deepEqual(running.events.at(-1), { kind: "stopped", why: "failure", error });
  assert.equal(stage.clock.timers, 0);
});

test("without patience, and for what does not pass, the first failure ends it", async () => {
  for (
    const [error, storagePatience] of [[transient(), 0], [transient("EACCES"), undefined], [
      new QueueError("QUEUE_BACKEND_FAILED"),
      undefined,
    ]] as const
  ) {
    const stage = new Stage();
    stage.fail("receive", error);
    const running = stage.consume(storagePatience === undefined ? {} : { storagePatience });
    await assert.rejects(running.done, (thrown) => thrown === error);
    assert.equal(stage.count("receive"), 1);
  }
});

test("patience counts failures in a row", async () => {
  const stage = new Stage();
  let failing = true;
  stage.on("receive", async (_call, proceed) => {
    if (failing) throw transient();
    return await proceed();
  });
  const running = stage.consume({ storagePatience: 1_000 });
  for (let outage = 0; outage < 4; outage++) {
    failing = true;
    await stage.publish(1);
    await stage.clock.advance(700);
    failing = false;
    await stage.clock.advance(5_000);
  }
  assert.equal(running.ended(), false);
  running.stop();
  await running.done;
});

test("an endless outage is waited out where patience is infinite", async () => {
  const stage = new Stage();
  await stage.publish(1);
  stage.fail("receive", transient(), 100);
  const running = stage.consume({ storagePatience: Infinity });
  await stage.clock.advance(1_000_000);
  assert.equal(running.ended(), false);
  assert.deepEqual(running.kinds(), ["acknowledged"]);
  running.stop();
  await running.done;
});

test("a stop cuts the wait before a receive's retry short", async () => {
  const stage = new Stage();
  stage.fail("receive", transient(), Infinity);
  const running = stage.consume({});
  await until(() => stage.clock.timers === 1);
  running.stop();
  await running.done;
  assert.equal(stage.clock.timers, 0);
});

/** One message, handled in the given way, while a call fails. */
async function outcome(
  stage: Stage,
  handler: () => unknown,
  options: Parameters<Stage["consume"]>[0] = {},
  broker: Parameters<Stage["consume"]>[1] = stage.broker,
) {
  await stage.publish(1);
  const running = stage.consume({ handler, pollInterval: Infinity, ...options }, broker);
  await until(() => running.events.length > 0);
  return running;
}

test("every outcome that fails for a moment is retried within its lease", async () => {
  const fails = () => {
    throw new Error();
  };
  for (
    const [method, handler, kind, capabilities] of [
      ["ackMany", () => {}, "acknowledged", ["ackMany", "wake"]],
      ["ack", () => {}, "acknowledged", ["wake"]],
      ["nack", fails, "retried", ["ackMany", "wake"]],
      ["release", () => {}, "released", ["release", "ackMany", "wake"]],
    ] as const
  ) {
    const stage = new Stage({ retryDelay: 1_000_000 });
    stage.fail(method, transient(), 2);
    let running;
    if (method === "release") {
      const held = gate();
      await stage.publish(2);
      running = stage.consume({ batchSize: 2, drainTimeout: Infinity, handler: () => held.opened });
      await until(() => stage.count("receive") > 0);
      await quiet();
      running.stop();
      await stage.clock.advance(300);
      held.open();
      await running.done;
      assert.ok(running.kinds().includes("released"));
      assert.deepEqual(await stage.left(), { ...nothing, queued: 1 });
      continue;
    }
    running = await outcome(stage, handler, {}, stage.bare(...capabilities));
    await stage.clock.advance(99);
    assert.deepEqual(running.kinds(), []);
    await stage.clock.advance(201);
    assert.deepEqual(running.kinds(), [kind]);
    assert.equal(stage.count(method), 3);
    running.stop();
    await running.done;
  }
});

test("an outcome is not retried past its lease: the loss is told and the consumer goes on", async () => {
  for (const capabilities of [["ackMany"], []] as "ackMany"[][]) {
    const stage = new Stage({ visibilityTimeout: 1_000 });
    const method = capabilities[0] ?? "ack";
    stage.fail(method, transient(), Infinity);
    const running = await outcome(stage, () => {}, {}, stage.bare(...capabilities));
    await stage.clock.advance(3_000);
    const kinds = running.kinds();
    assert.ok(kinds.length >= 1 && kinds.every((kind) => kind === "leaseLost"));
    assert.equal(running.ended(), false);
    running.stop();
    await stage.clock.advance(5_000);
    await running.done;
  }
});

test("an outcome that keeps failing ends the consumer once patience has run out", async () => {
  const stage = new Stage({ visibilityTimeout: 1_000_000 });
  const error = transient("ENOSPC");
  stage.fail("ackMany", error, Infinity);
  const running = await outcome(stage, () => {}, { storagePatience: 2_000 });
  await stage.clock.advance(1_999);
  assert.equal(running.ended(), false);
  await stage.clock.advance(1);
  await assert.rejects(running.done, (thrown) => thrown === error);
  assert.deepEqual(running.kinds(), ["unsettled"]);
});

test("an outcome whose failure does not pass ends the consumer at once", async () => {
  for (const [method, handler] of [["ackMany", () => {}], ["nack", () => Promise.reject(new Error())]] as const) {
    const stage = new Stage();
    const error = new QueueError("QUEUE_BACKEND_FAILED");
    stage.fail(method, error);
    const running = await outcome(stage, handler);
    await assert.rejects(running.done, (thrown) => thrown === error);
    assert.equal(stage.count(method), 1);
    assert.deepEqual(running.kinds(), ["unsettled"]);
    assert.equal((await stage.inner.stats()).leased, 1);
  }
});

test("an acknowledgement whose reply was lost had taken effect: the refusal of its retry is passed over", async () => {
  const stage = new Stage();
  stage.fail("ackMany", transient(), 1, "after");
  const running = await outcome(stage, () => {});
  await stage.clock.advance(100);
  assert.deepEqual(running.kinds(), ["leaseLost"]);
  assert.equal(running.ended(), false);
  running.stop();
  await running.done;
  assert.deepEqual(await stage.left(), nothing);
});

test("what a failed ackMany had done counts, and only the rest is tried again", async () => {
  const stage = new Stage();
  await stage.publish(3);
  let first = true;
  stage.on("ackMany", async (call, proceed) => {
    if (!first) return await proceed();
    first = false;
    const receipts = call.args[0] as Delivery["lease"]["receipt"][];
    assert.equal(receipts.length, 3);
    await stage.inner.ack(receipts[0]!);
    throw new QueueError("QUEUE_BACKEND_FAILED", "x", { fields: { transient: true }, partial: [1, 2, 0] });
  });
  const running = stage.consume({ parallelism: 3 });
  await until(() => running.kinds().length === 2);
  assert.deepEqual(running.kinds(), ["acknowledged", "leaseLost"]);
  await stage.clock.advance(100);
  assert.deepEqual(running.kinds(), ["acknowledged", "leaseLost", "acknowledged"]);
  assert.equal((stage.calls.filter((call) => call.method === "ackMany")[1]!.args[0] as unknown[]).length, 1);
  running.stop();
  await running.done;
});

test("after a failure the siblings drain and hand back as on a stop, then consume rejects", async () => {
  const stage = new Stage();
  const error = new QueueError("QUEUE_BACKEND_FAILED");
  await stage.publish(8);
  const ends: ((value?: unknown) => void)[] = [];
  const contexts: AbortSignal[] = [];
  const running = stage.consume({
    parallelism: 3,
    batchSize: 2,
    drainTimeout: 1_000,
    handler: (_delivery, { signal }) => {
      const { promise, resolve } = Promise.withResolvers<unknown>();
      ends.push(resolve);
      contexts.push(signal);
      return promise.then((value) => {
        if (value !== undefined) throw value;
      });
    },
  });
  await until(() => ends.length === 3);
  await quiet();
  stage.fail("ackMany", error);
  ends[0]!();
  await until(() => running.events.length > 0);
  await quiet();
  assert.equal(running.ended(), false);
  assert.equal(ends.length, 4, "Its worker had gone on, and nothing is started any more");
  ends[1]!();
  ends[3]!();
  await stage.clock.advance(1_000);
  assert.equal(contexts[2]!.reason, error);
  ends[2]!(contexts[2]!.reason);
  await assert.rejects(running.done, (thrown) => thrown === error);
  assert.deepEqual(await stage.left(), { ...nothing, queued: 5, leased: 1 });
  assert.equal((error as QueueError).others, undefined, "Who was only cancelled adds nothing");
});

test("several failures: the first, with the others on it", async () => {
  const stage = new Stage({ retryDelay: 1_000_000 });
  await stage.publish(3);
  const errors = [1, 2, 3].map(() => new QueueError("QUEUE_BACKEND_FAILED"));
  const thrown = [...errors];
  stage.on("nack", () => Promise.reject(thrown.shift()));
  const held = gate();
  const running = stage.consume({
    parallelism: 3,
    drainTimeout: 1_000,
    handler: async () => {
      await held.opened;
      throw new Error();
    },
  });
  await until(() => stage.count("receive") > 0);
  await quiet();
  held.open();
  await assert.rejects(running.done, (error) => error === errors[0]);
  assert.deepEqual(errors[0]!.others, errors.slice(1));
});

test("a fault outside the handler is no handler's failure: it ends the consumer", async () => {
  const stage = new Stage();
  stage.on("receive", () => Promise.resolve(null));
  const running = stage.consume({});
  await assert.rejects(running.done, TypeError);
  assert.equal(stage.clock.timers, 0);
});

test("no text of a driver and no payload is in what the consumer makes of a failure", async () => {
  const stage = new Stage({ visibilityTimeout: 500 });
  stage.fail("ackMany", transient(), Infinity);
  const running = await outcome(stage, () => {});
  await stage.clock.advance(1_000);
  const lost = running.events.find((event) => event.kind === "leaseLost")!;
  assert.doesNotMatch(JSON.stringify(lost), /secret/);
  running.stop();
  await stage.clock.advance(5_000);
  await running.done;
});
