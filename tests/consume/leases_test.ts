import assert from "node:assert/strict";
import type { HandlerContext } from "../../src/consume/mod.ts";
import { acknowledged, type Delivery, doNotRetry, isQueueError, QueueError, type Receipt } from "../../src/core/mod.ts";
import { ManualClock } from "../../src/testing/manual_clock.ts";
import { test } from "../support/test.ts";
import { type Gate, gate, nothing, quiet, Stage, transient, until } from "./stage.ts";

/** One message whose handler stays open until the test says how it ends. */
async function open(
  stage: Stage,
  options: Parameters<Stage["consume"]>[0] = {},
  broker: Parameters<Stage["consume"]>[1] = stage.broker,
) {
  await stage.publish(1);
  let begun: { delivery: Delivery; context: HandlerContext } | undefined;
  const end = Promise.withResolvers<unknown>();
  end.promise.catch(() => {});
  const running = stage.consume({
    handler: (delivery, context) => {
      begun ??= { delivery, context };
      return end.promise;
    },
    ...options,
  }, broker);
  await until(() => begun !== undefined, "The handler's begin");
  await quiet();
  return { running, ...begun!, returns: end.resolve, throws: end.reject };
}

test("handlers that end within the turn cost no timer", async () => {
  for (const handler of [() => {}, async () => {}, async () => await Promise.resolve().then(() => {})]) {
    for (const [parallelism, batchSize] of [[1, 1], [64, 1], [1, 64], [4, 4]]) {
      const stage = new Stage();
      await stage.publish(200);
      // Else an idle consumer would wait for the deadlines of the leases that are held.
      stage.on("wake", (_call, proceed) => ({ ...proceed() as object, scheduled: false, in: 0 }));
      let timers = 0;
      const clock = {
        now: () => stage.clock.now(),
        setTimer(delay: number, callback: () => void) {
          timers++;
          return stage.clock.setTimer(delay, callback);
        },
      };
      const running = stage.consume({ handler, clock, parallelism, batchSize, pollInterval: Infinity });
      await until(() => running.kinds().length === 200);
      assert.equal(timers, 0, `${parallelism} x ${batchSize}`);
      running.stop();
      await running.done;
    }
  }
});

test("many slow handlers share one timer", async () => {
  const stage = new Stage();
  await stage.publish(20);
  const held = gate();
  const running = stage.consume({ handler: () => held.opened, parallelism: 20, pollInterval: Infinity });
  await until(() => stage.clock.timers > 0);
  await quiet();
  assert.equal(stage.clock.timers, 1);
  held.open();
  await until(() => running.kinds().length === 20);
  await quiet();
  assert.equal(stage.clock.timers, 0, "An idle consumer watches no lease");
  running.stop();
  await running.done;
});

test("the handler's signal aborts at the lease's margin: a tenth of it, at most the settle timeout", async () => {
  for (
    const [visibilityTimeout, settleTimeout, margin] of [
      [30_000, undefined, 3_000],
      [600_000, undefined, 5_000],
      [600_000, 20_000, 20_000],
    ] as const
  ) {
    const stage = new Stage({ visibilityTimeout });
    const { running, context, returns } = await open(stage, { settleTimeout });
    const { signal } = context;
    await stage.clock.advance(visibilityTimeout - margin - 1);
    assert.equal(signal.aborted, false);
    await stage.clock.advance(1);
    assert.equal(signal.aborted, true);
    assert.ok(isQueueError(signal.reason, "LEASE_EXPIRED"));
    returns(undefined);
    await until(() => running.kinds().length === 1);
    assert.deepEqual(running.kinds(), ["acknowledged"], "One that returns all the same is acknowledged");
    running.stop();
    await running.done;
  }
});

test("a signal that is first looked at late says what it would have said", async () => {
  const stage = new Stage();
  const { running, context, returns } = await open(stage);
  await stage.clock.advance(27_000);
  assert.ok(context.signal.aborted);
  assert.ok(isQueueError(context.signal.reason, "LEASE_EXPIRED"));
  assert.equal(context.signal, context.signal);
  returns(undefined);
  running.stop();
  await running.done;
});

test("a handler stopped by the margin that fails is nacked: with its own error, or with the lease's end", async () => {
  for (
    const [fails, reason] of [
      [(signal: AbortSignal) => signal.reason, "LEASE_EXPIRED"],
      [(signal: AbortSignal) => new Error("Outer", { cause: signal.reason }), "LEASE_EXPIRED"],
      [() => new QueueError("TASK_TIMEOUT"), "TASK_TIMEOUT"],
      [() => new RangeError(), "UNCLASSIFIED"],
    ] as const
  ) {
    const stage = new Stage();
    const { running, context, throws } = await open(stage);
    await stage.clock.advance(27_000);
    const error = fails(context.signal);
    throws(error);
    await until(() => running.kinds().length === 1);
    running.stop();
    await running.done;
    assert.deepEqual(running.kinds(), ["retried"]);
    const cause = stage.calls.find((call) => call.method === "nack")!.args[1];
    assert.equal(cause, reason === "LEASE_EXPIRED" ? context.signal.reason : error);
    const [again] = await stage.inner.receive(1);
    assert.equal(again!.deliveries, 2);
    assert.equal(again!.lastFailure!.reason, reason);
  }
});

test("a lease that had ended at receipt on the consumer's clock bounds nothing", async () => {
  const stage = new Stage();
  const ahead = new ManualClock(stage.clock.now() + 60_000);
  const { running, context, returns } = await open(stage, { clock: ahead, autoExtend: true });
  assert.equal(context.signal.aborted, false);
  await ahead.advance(600_000);
  assert.equal(context.signal.aborted, false);
  returns(undefined);
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["acknowledged"]);
  running.stop();
  await running.done;
  assert.equal(ahead.timers, 0);
});

/** Two messages in one batch, the first of which takes its time. */
async function batchOfTwo(stage: Stage, autoExtend: boolean) {
  await stage.publish(2);
  const begun: number[] = [];
  const gates: Gate[] = [];
  const running = stage.consume({
    batchSize: 2,
    autoExtend,
    handler: async ({ message }) => {
      begun.push(message.payload[0]!);
      gates.push(gate());
      await gates.at(-1)!.opened;
    },
  });
  await until(() => begun.length === 1);
  await quiet();
  return { running, begun, gates };
}

test("a batched message whose lease is down to the margin before its turn is handed back uncounted", async () => {
  const stage = new Stage();
  const { running, begun, gates } = await batchOfTwo(stage, false);
  await stage.clock.advance(26_999);
  assert.equal((await stage.inner.stats()).leased, 2);
  await stage.clock.advance(1);
  assert.equal((await stage.inner.stats()).leased, 1);
  assert.equal(running.events[0]!.kind, "released");
  assert.equal((running.events[0] as { why: string }).why, "lease");
  gates[0]!.open();
  await until(() => begun.length === 2);
  const [second] = running.events.filter((event) => event.kind === "acknowledged");
  assert.equal(second!.deliveries, 1);
  gates[1]!.open();
  await until(() => running.kinds().length === 3);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds(), ["released", "acknowledged", "acknowledged"]);
  assert.equal((running.events[2] as { deliveries: number }).deliveries, 1);
  assert.deepEqual(await stage.left(), nothing);
});

test("a handler that blocks the loop past the margin does not let the next one start", async () => {
  const stage = new Stage();
  await stage.publish(2);
  const handled: number[] = [];
  const running = stage.consume({
    batchSize: 2,
    pollInterval: Infinity,
    handler: ({ message }) => {
      handled.push(message.payload[0]!);
      stage.clock.set(stage.clock.now() + 27_000);
    },
  });
  await until(() => running.kinds().length >= 2);
  assert.ok(running.events.some((event) => event.kind === "released" && event.why === "lease"));
  running.stop();
  await running.done;
});

test("with autoExtend it is renewed instead, and its handler starts", async () => {
  const stage = new Stage();
  const { running, begun, gates } = await batchOfTwo(stage, true);
  await stage.clock.advance(60_000);
  assert.equal((await stage.inner.stats()).leased, 2);
  gates[0]!.open();
  await until(() => begun.length === 2);
  gates[1]!.open();
  await until(() => running.kinds().length === 2);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds(), ["acknowledged", "acknowledged"]);
  assert.deepEqual(await stage.left(), nothing);
});

test("with autoExtend a batched message whose lease is a third spent is renewed before its handler starts", async () => {
  for (const [spent, renewals] of [[9_999, 0], [10_000, 1]] as const) {
    const stage = new Stage();
    const { running, begun, gates } = await batchOfTwo(stage, true);
    await stage.clock.advance(spent);
    const before = stage.count("extend");
    gates[0]!.open();
    await until(() => begun.length === 2);
    assert.equal(stage.count("extend") - before, renewals);
    gates[1]!.open();
    running.stop();
    await running.done;
  }
});

test("autoExtend renews at each third of the lease, for the length first granted, and settles the newest receipt", async () => {
  const stage = new Stage();
  const { running, context, delivery, returns } = await open(stage, { autoExtend: true });
  await stage.clock.advance(9_999);
  assert.equal(stage.count("extend"), 0);
  for (let renewals = 1; renewals <= 9; renewals++) {
    await stage.clock.advance(renewals === 1 ? 1 : 10_000);
    assert.equal(stage.count("extend"), renewals);
    assert.equal(stage.calls.at(-1)!.args[1], 30_000);
  }
  assert.equal(context.signal.aborted, false);
  assert.notEqual(context.lease.receipt, delivery.lease.receipt);
  assert.equal(context.lease.expiresAt.getTime(), stage.clock.now() + 30_000);
  returns(undefined);
  await until(() => running.kinds().length === 1);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds(), ["acknowledged"]);
  assert.deepEqual(await stage.left(), nothing);
});

test("without autoExtend, or on a broker that cannot renew, nothing is renewed", async () => {
  for (const autoExtend of [true, false]) {
    const stage = new Stage();
    const broker = autoExtend ? stage.bare("release") : stage.broker;
    const { running, context, returns } = await open(stage, { autoExtend }, broker);
    await stage.clock.advance(27_000);
    assert.ok(context.signal.aborted);
    assert.equal(stage.count("extend"), 0);
    returns(undefined);
    running.stop();
    await running.done;
  }
});

test("a refused renewal aborts the handler with the refusal", async () => {
  for (
    const [error, kinds] of [
      [new QueueError("LEASE_EXPIRED"), ["leaseLost"]],
      [new QueueError("QUEUE_BACKEND_FAILED"), ["acknowledged"]],
    ] as const
  ) {
    const stage = new Stage();
    stage.fail("extend", error, Infinity);
    const { running, context, returns } = await open(stage, { autoExtend: true });
    await stage.clock.advance(10_000);
    assert.equal(context.signal.reason, error);
    if (error.reason === "LEASE_EXPIRED") stage.fail("ackMany", error);
    returns(undefined);
    await until(() => running.kinds().length === 1);
    await quiet();
    running.stop();
    await running.done;
    assert.deepEqual(running.kinds(), kinds, "Told once");
  }
});

test("a renewal that fails for a moment is tried again while the lease is held", async () => {
  const stage = new Stage();
  stage.fail("extend", transient(), 3);
  const { running, context, returns } = await open(stage, { autoExtend: true });
  await stage.clock.advance(10_000);
  await stage.clock.advance(100 + 200 + 400);
  assert.equal(context.signal.aborted, false);
  assert.equal(context.lease.expiresAt.getTime(), stage.clock.now() + 30_000);
  assert.deepEqual(
    running.events.map((event) => event.kind === "storageFailure" ? [event.operation, event.retryIn] : event.kind),
    [["extend", 100], ["extend", 200], ["extend", 400]],
  );
  returns(undefined);
  running.stop();
  await running.done;

  const gone = new Stage();
  const error = transient("EIO");
  gone.fail("extend", error, Infinity);
  const second = await open(gone, { autoExtend: true });
  await gone.clock.advance(27_000);
  assert.equal(second.context.signal.aborted, true);
  second.returns(undefined);
  second.running.stop();
  await second.running.done;
});

test("a renewal that hangs is given the settle timeout; one that lands late is adopted", async () => {
  const stage = new Stage();
  const held = gate();
  stage.on("extend", async (_call, proceed) => {
    const lease = await proceed();
    await held.opened;
    return lease;
  });
  const { running, context, returns } = await open(stage, { autoExtend: true, settleTimeout: 1_000 });
  await stage.clock.advance(10_000);
  await stage.clock.advance(999);
  assert.equal(context.signal.aborted, false);
  await stage.clock.advance(1);
  assert.ok(isQueueError(context.signal.reason, "QUEUE_BACKEND_FAILED"));
  held.open();
  await quiet();
  returns(undefined);
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["acknowledged"], "With the receipt that came late");
  running.stop();
  await running.done;
  assert.deepEqual(await stage.left(), nothing);
});

test("an outcome waits for the renewal that is under way, and uses its receipt", async () => {
  for (const outcome of ["returns", "throws"] as const) {
    const stage = new Stage({ retryDelay: 1_000 });
    const held = gate();
    stage.on("extend", async (_call, proceed) => {
      await held.opened;
      return await proceed();
    });
    const handler = await open(stage, { autoExtend: true });
    await stage.clock.advance(10_000);
    handler[outcome](new Error());
    await quiet();
    assert.equal(stage.count("ackMany") + stage.count("nack"), 0);
    held.open();
    await until(() => handler.running.kinds().length === 1);
    handler.running.stop();
    await handler.running.done;
    assert.deepEqual(handler.running.kinds(), [outcome === "returns" ? "acknowledged" : "retried"]);
  }
});

test("context.extend renews, moves the handler's end and spares the automatic renewals it makes needless", async () => {
  const stage = new Stage();
  const { running, context, delivery, returns } = await open(stage, { autoExtend: true });
  const lease = await context.extend(100_000);
  assert.equal(context.lease, lease);
  assert.notEqual(lease.receipt, delivery.lease.receipt);
  assert.equal(stage.count("extend"), 1);
  await stage.clock.advance(69_999);
  assert.equal(stage.count("extend"), 1, "The lease ends later than a renewal would set");
  await stage.clock.advance(10_001);
  assert.equal(stage.count("extend"), 2);
  assert.equal(context.signal.aborted, false);
  returns(undefined);
  await until(() => running.kinds().length === 1);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds(), ["acknowledged"]);

  const plain = new Stage();
  const second = await open(plain);
  await second.context.extend(100_000);
  await plain.clock.advance(94_999);
  assert.equal(second.context.signal.aborted, false);
  await plain.clock.advance(1);
  assert.equal(second.context.signal.aborted, true, "The margin of the new lease, held to the settle timeout");
  second.returns(undefined);
  second.running.stop();
  await second.running.done;
});

test("context.extend to something shorter is renewed in time", async () => {
  const stage = new Stage();
  const { running, context, returns } = await open(stage, { autoExtend: true });
  await context.extend(3_000);
  await stage.clock.advance(1_000);
  assert.equal(stage.count("extend"), 2);
  assert.equal(context.lease.expiresAt.getTime(), stage.clock.now() + 30_000);
  returns(undefined);
  running.stop();
  await running.done;
});

test("context.extend refuses once it is not the handler's to do", async () => {
  const stage = new Stage();
  const { running, context, returns } = await open(stage);
  await assert.rejects(context.extend(0), { reason: "QUEUE_MISCONFIGURED" });
  assert.equal((await stage.inner.stats()).leased, 1);
  returns(undefined);
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["acknowledged"], "The refused renewal changed nothing");
  await assert.rejects(context.extend(5_000), { reason: "LEASE_EXPIRED" });
  running.stop();
  await running.done;

  const bare = new Stage();
  const second = await open(bare, {}, bare.bare("release"));
  await assert.rejects(second.context.extend(5_000), { reason: "QUEUE_MISCONFIGURED" });
  second.returns(undefined);
  second.running.stop();
  await second.running.done;
});

test("context.takeOver stops the renewals and hands out the newest receipt", async () => {
  const stage = new Stage();
  const held = gate();
  stage.on("extend", async (_call, proceed) => {
    await held.opened;
    return await proceed();
  });
  const { running, context, returns } = await open(stage, { autoExtend: true });
  await stage.clock.advance(10_000);
  let receipt: Receipt | undefined;
  const taken = context.takeOver().then((newest) => receipt = newest);
  await quiet();
  assert.equal(receipt, undefined, "A renewal is under way");
  held.open();
  await taken;
  assert.equal(receipt, context.lease.receipt);
  await stage.clock.advance(20_000);
  assert.equal(stage.count("extend"), 1);
  await assert.rejects(context.extend(5_000), { reason: "LEASE_EXPIRED" });
  await stage.inner.ack(receipt!);
  returns(acknowledged);
  await until(() => running.kinds().length === 1);
  running.stop();
  await running.done;
  assert.equal((running.events[0] as { by: string }).by, "handler");
  assert.deepEqual(await stage.left(), nothing);
});

test("a handler that renews behind the engine's back parks the message: it returns counted", async () => {
  const stage = new Stage();
  const { running, delivery, returns } = await open(stage);
  await stage.inner.extend(delivery.lease.receipt, 50_000);
  returns(undefined);
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["leaseLost"]);
  await stage.clock.advance(49_999);
  assert.equal((await stage.inner.stats()).leased, 1);
  running.stop();
  await running.done;
  await stage.clock.advance(1);
  assert.equal((await stage.inner.receive(1))[0]!.deliveries, 2);
});

test("a slow handler with autoExtend runs once, however long it takes", async () => {
  const stage = new Stage({ maxDeliveries: 1 });
  let runs = 0;
  const held = gate();
  await stage.publish(1);
  const handler = () => {
    runs++;
    return held.opened;
  };
  const one = stage.consume({ autoExtend: true, handler });
  const other = stage.consume({ autoExtend: true, handler });
  await stage.clock.advance(300_000);
  held.open();
  await until(() => one.kinds().length + other.kinds().length === 1);
  one.stop();
  other.stop();
  await Promise.all([one.done, other.done]);
  assert.equal(runs, 1);
  assert.deepEqual(await stage.left(), nothing);
});

test("a handler that blocks the loop beyond its lease is told so, and the loss is told once", async () => {
  const stage = new Stage({ retryDelay: 1_000_000 });
  const { running, context, throws } = await open(stage, { autoExtend: true });
  // The renewal's timer was due long ago when the loop is free again.
  stage.clock.set(stage.clock.now() + 31_000);
  const other = (await stage.inner.receive(1))[0]!;
  assert.equal(other.deliveries, 2);
  await stage.clock.advance(0);
  assert.ok(isQueueError(context.signal.reason, "LEASE_EXPIRED"));
  throws(context.signal.reason);
  await quiet();
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds(), ["leaseLost"]);
  await stage.inner.ack(other.lease.receipt);
});

test("a mark is honoured from a handler whose lease was about to end", async () => {
  const stage = new Stage();
  const { running, throws } = await open(stage);
  await stage.clock.advance(27_000);
  throws(doNotRetry(new Error()));
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["deadLettered"]);
  running.stop();
  await running.done;
});
