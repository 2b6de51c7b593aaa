import assert from "node:assert/strict";
import type { HandlerContext } from "../../src/consume/mod.ts";
import { acknowledged, type Delivery, doNotRetry, QueueError, retryAfter } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { gate, nothing, quiet, Stage, until } from "./stage.ts";

interface Open {
  readonly number: number;
  readonly delivery: Delivery;
  readonly context: HandlerContext;
  returns(value?: unknown): void;
  throws(error: unknown): void;
}

/** A consumer whose handlers end when and how the test says. */
async function consuming(
  stage: Stage,
  messages: number,
  options: Parameters<Stage["consume"]>[0] = {},
  broker: Parameters<Stage["consume"]>[1] = stage.broker,
) {
  await stage.publish(messages);
  const open: Open[] = [];
  const running = stage.consume({
    handler: (delivery, context) => {
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      open.push({ number: delivery.message.payload[0]!, delivery, context, returns: resolve, throws: reject });
      return promise;
    },
    ...options,
  }, broker);
  await until(() => open.length === Math.min(messages, options.parallelism ?? 1), "The handlers' begin");
  await quiet();
  return { running, open };
}

/** The counts with which the messages would be delivered now. */
async function counts(stage: Stage): Promise<number[]> {
  return (await stage.inner.receive(100)).map((delivery) => delivery.deliveries);
}

test("a stop resolves, and leases nothing more", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 100, { parallelism: 2, drainTimeout: 1_000 });
  const receives = stage.count("receive");
  running.stop();
  open[0]!.returns();
  await quiet();
  assert.equal(running.ended(), false, "Not before every worker has ended");
  open[1]!.returns();
  await running.done;
  assert.equal(stage.count("receive"), receives);
  assert.equal(open.length, 2);
  assert.deepEqual(await stage.left(), { ...nothing, queued: 98 });
  assert.deepEqual(running.events.at(-1), { kind: "stopped", why: "signal" });
});

test("a handler that finishes inside the drain is acknowledged, one that fails is settled as usual", async () => {
  const stage = new Stage({ retryDelay: 10 });
  const { running, open } = await consuming(stage, 2, { parallelism: 2, drainTimeout: 1_000 });
  running.stop();
  await stage.clock.advance(999);
  assert.equal(open[0]!.context.signal.aborted, false);
  open[0]!.returns();
  open[1]!.throws(new RangeError());
  await running.done;
  assert.deepEqual(running.kinds().sort(), ["acknowledged", "retried"]);
  await stage.clock.advance(10);
  assert.deepEqual(await counts(stage), [2]);
  assert.equal(stage.clock.timers, 0);
});

test("a handler cut short by the stop is handed back uncounted, whatever it then throws", async () => {
  const reason = new Error("Deploy");
  for (
    const fails of [
      (signal: AbortSignal) => signal.reason,
      () => new QueueError("TASK_TIMEOUT"),
      () => "a panic",
    ]
  ) {
    for (const drainTimeout of [0, 500]) {
      const stage = new Stage({ maxDeliveries: 1 });
      const { running, open } = await consuming(stage, 1, { drainTimeout });
      const { signal } = open[0]!.context;
      running.stop(reason);
      await stage.clock.advance(drainTimeout);
      assert.equal(signal.reason, reason);
      open[0]!.throws(fails(signal));
      await running.done;
      assert.deepEqual(running.kinds(), ["released"]);
      assert.deepEqual(await counts(stage), [1]);
      assert.equal(stage.clock.timers, 0);
    }
  }
});

test("without a drain the signal aborts at once, even for a handler that had not looked at it", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1);
  running.stop();
  assert.equal(open[0]!.context.signal.aborted, true);
  open[0]!.throws(new Error());
  await running.done;
  assert.deepEqual(await counts(stage), [1]);
});

test("marks, an own acknowledgement and a late return are honoured after the cut", async () => {
  for (
    const [end, kind] of [
      [(open: Open) => open.throws(doNotRetry(new Error())), "deadLettered"],
      [(open: Open) => open.throws(retryAfter(new Error(), 50)), "retried"],
      [(open: Open) => open.throws(acknowledged), "acknowledged"],
      [(open: Open) => open.returns(acknowledged), "acknowledged"],
      [(open: Open) => open.returns(), "acknowledged"],
    ] as const
  ) {
    const stage = new Stage();
    const { running, open } = await consuming(stage, 1);
    running.stop();
    end(open[0]!);
    await running.done;
    assert.deepEqual(running.kinds(), [kind]);
  }
});

test("a handler that was cut by its lease before the stop is nacked, not handed back", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1, { drainTimeout: 60_000 });
  running.stop();
  await stage.clock.advance(27_000);
  assert.equal(open[0]!.context.signal.aborted, true, "The lease's bound rules during the drain too");
  open[0]!.throws(open[0]!.context.signal.reason);
  await running.done;
  assert.deepEqual(running.kinds(), ["retried"]);
});

test("the first reason for a handler's end stands", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1);
  await stage.clock.advance(27_000);
  const { reason } = open[0]!.context.signal;
  running.stop();
  assert.equal(open[0]!.context.signal.reason, reason);
  open[0]!.throws(new Error());
  await running.done;
  assert.deepEqual(running.kinds(), ["retried"], "Its lease had ended it, not the stop");
});

test("what was not started is handed back at once and uncounted, what was leased ahead first", async () => {
  const stage = new Stage();
  await stage.publish(12);
  const held = gate();
  let runs = 0;
  const started: number[] = [];
  const releases: number[] = [];
  const numberOf = new Map<string, number>();
  const running = stage.consume({
    batchSize: 3,
    drainTimeout: Infinity,
    handler: ({ message }) => {
      started.push(message.payload[0]!);
      if (++runs > 4) return held.opened;
    },
  });
  stage.on("receive", async (_call, proceed) => {
    const deliveries = await proceed() as Delivery[];
    for (const { lease, message } of deliveries) numberOf.set(lease.receipt, message.payload[0]!);
    return deliveries;
  });
  const parallel: number[] = [];
  let underWay = 0;
  stage.on("release", async (call, proceed) => {
    releases.push(numberOf.get(call.args[0] as string)!);
    parallel.push(++underWay);
    await quiet();
    await proceed();
    underWay--;
  });
  await until(() => runs === 5);
  await quiet();
  running.stop();
  await quiet();
  assert.ok(releases.length >= 3, "Both kinds are there");
  assert.equal(Math.max(...parallel), releases.length, "All at once");
  assert.deepEqual(
    [...releases].sort((a, b) => a - b),
    releases.length === 5 ? [6, 7, 8, 9, 10] : [...releases].sort((a, b) => a - b),
  );
  assert.notDeepEqual(
    releases,
    [...releases].sort((a, b) => a - b),
    "The rest of the batch comes after what was ahead",
  );
  held.open();
  await running.done;
  assert.deepEqual(started, [1, 2, 3, 4, 5]);
  assert.deepEqual(await counts(stage), Array.from({ length: 7 }, () => 1));
});

test("what a receive brings after the stop began is handed back uncounted", async () => {
  const stage = new Stage();
  await stage.publish(3);
  const held = gate();
  stage.on("receive", async (_call, proceed) => {
    const deliveries = await proceed();
    await held.opened;
    return deliveries;
  });
  const running = stage.consume({ batchSize: 5 });
  await until(() => stage.count("receive") === 1);
  running.stop();
  await quiet();
  assert.equal(running.ended(), false);
  held.open();
  await running.done;
  assert.deepEqual(await counts(stage), [1, 1, 1]);
  assert.deepEqual(running.kinds(), ["released", "released", "released"]);
});

test("a receive that hangs is waited for until the last deadline; what it brings later is still handed back", async () => {
  const stage = new Stage();
  await stage.publish(1);
  const held = gate();
  let signal: AbortSignal | undefined;
  stage.on("receive", async (call, proceed) => {
    signal = (call.args[1] as { signal: AbortSignal }).signal;
    await held.opened;
    return await proceed([1]);
  });
  const running = stage.consume({ settleTimeout: 700 });
  await until(() => stage.count("receive") === 1);
  running.stop();
  await stage.clock.advance(699);
  assert.equal(running.ended(), false);
  assert.equal(signal!.aborted, false, "The stop itself does not cut a call");
  await stage.clock.advance(1);
  await running.done;
  assert.equal(signal!.aborted, true);
  held.open();
  await quiet();
  assert.deepEqual(await counts(stage), [1]);
});

test("outcomes are sent without the stop's cancellation, and one deadline bounds them all", async () => {
  const stage = new Stage();
  const held = gate();
  const signals: (AbortSignal | undefined)[] = [];
  for (const method of ["ackMany", "nack", "release"]) {
    stage.on(method, async (call, proceed) => {
      signals.push((call.args.at(-1) as { signal?: AbortSignal }).signal);
      await held.opened;
      return await proceed();
    });
  }
  const { running, open } = await consuming(stage, 3, { parallelism: 3, drainTimeout: 1_000, settleTimeout: 2_000 });
  running.stop();
  await stage.clock.advance(500);
  open[0]!.returns();
  open[1]!.throws(new Error());
  await quiet();
  await stage.clock.advance(500);
  open[2]!.throws(open[2]!.context.signal.reason);
  await stage.clock.advance(1_999);
  assert.equal(running.ended(), false);
  for (const signal of signals) assert.equal(signal!.aborted, false);
  await stage.clock.advance(1);
  await running.done;
  assert.deepEqual(
    running.events.map((event) => event.kind === "unsettled" ? event.operation : event.kind),
    ["ack", "nack", "release", "stopped"],
  );
  for (const event of running.events) {
    if (event.kind === "unsettled") assert.equal((event.error as QueueError).reason, "QUEUE_BACKEND_FAILED");
  }
  assert.ok(signals.every((signal) => signal!.aborted));
  assert.equal(stage.clock.timers, 0);
  held.open();
  await quiet();
  assert.equal(running.events.at(-1)!.kind, "stopped", "What lands later is not told");
});

test("while running, an outcome is not timed", async () => {
  const stage = new Stage({ visibilityTimeout: 10_000_000 });
  const held = gate();
  stage.on("ackMany", async (_call, proceed) => {
    await held.opened;
    return await proceed();
  });
  const { running, open } = await consuming(stage, 1);
  open[0]!.returns();
  await stage.clock.advance(60_000);
  held.open();
  await until(() => running.kinds().length === 1);
  assert.deepEqual(running.kinds(), ["acknowledged"]);
  running.stop();
  await running.done;
});

test("a handler that ignores its signal is left behind at the last deadline, its lease to lapse", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1, { drainTimeout: 1_000, settleTimeout: 2_000 });
  running.stop();
  await stage.clock.advance(2_999);
  assert.equal(running.ended(), false);
  await stage.clock.advance(1);
  await running.done;
  assert.deepEqual(running.kinds(), ["abandonedHandler"]);
  assert.deepEqual(await stage.left(), { ...nothing, leased: 1 });
  const calls = stage.calls.length;
  open[0]!.throws(new Error("Too late"));
  await quiet();
  assert.equal(stage.calls.length, calls);
  await stage.clock.advance(30_000);
  assert.deepEqual(await counts(stage), [2]);
});

test("the deadline counts from the end of the last handler, so an early end is not waited out", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1, { drainTimeout: Infinity, settleTimeout: 2_000 });
  stage.on("ackMany", () => gate().opened);
  running.stop();
  await stage.clock.advance(10_000);
  assert.equal(running.ended(), false);
  open[0]!.returns();
  await quiet();
  await stage.clock.advance(1_999);
  assert.equal(running.ended(), false);
  await stage.clock.advance(1);
  assert.equal(running.ended(), true);
});

test("renewal goes on during the drain and ends with it", async () => {
  const stage = new Stage({ visibilityTimeout: 9_000 });
  const { running, open } = await consuming(stage, 1, { autoExtend: true, drainTimeout: 20_000 });
  running.stop();
  await stage.clock.advance(19_999);
  assert.equal(stage.count("extend"), 6);
  assert.equal(open[0]!.context.signal.aborted, false);
  await stage.clock.advance(1);
  assert.equal(open[0]!.context.signal.aborted, true);
  await stage.clock.advance(4_000);
  assert.equal(stage.count("extend"), 6);
  open[0]!.throws(new Error());
  await running.done;
  assert.deepEqual(running.kinds(), ["released"]);
});

test("without a Releaser what was not handled is left to lapse", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 3, { batchSize: 3 }, stage.bare());
  running.stop();
  open[0]!.throws(new Error());
  await running.done;
  assert.deepEqual(running.kinds(), ["released", "released", "released"]);
  assert.equal((await stage.inner.stats()).leased, 3);
  await stage.clock.advance(30_000);
  assert.deepEqual(await counts(stage), [2, 2, 2]);
});

test("a handler may stop its own consumer", async () => {
  const stage = new Stage();
  await stage.publish(3);
  const controller = new AbortController();
  const running = stage.consume({ batchSize: 3, signal: controller.signal, handler: () => controller.abort() });
  await running.done;
  assert.deepEqual(running.kinds().sort(), ["acknowledged", "released", "released"]);
});

test("a stop between the handler's end and its acknowledgement does not abandon it", async () => {
  const stage = new Stage();
  const held = gate();
  stage.on("ackMany", async (_call, proceed) => {
    await held.opened;
    return await proceed();
  });
  const { running, open } = await consuming(stage, 1);
  open[0]!.returns();
  await quiet();
  running.stop();
  await quiet();
  held.open();
  await running.done;
  assert.deepEqual(running.kinds(), ["acknowledged"]);
  assert.deepEqual(await stage.left(), nothing);
});

test("rolling deployments never bring a message nearer to the dead letters", async () => {
  const stage = new Stage({ maxDeliveries: 2 });
  await stage.publish(5);
  for (let rollout = 0; rollout < 10; rollout++) {
    const { running, open } = await consuming(stage, 0, { parallelism: 2, batchSize: 2 });
    await until(() => open.length === 2);
    running.stop();
    for (const { throws, context } of open) throws(context.signal.reason);
    await running.done;
  }
  assert.deepEqual(await counts(stage), [1, 1, 1, 1, 1]);
});

test("errors seen after the caller's stop are read as the stop", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 2, { parallelism: 2, drainTimeout: 1_000 });
  running.stop();
  stage.fail("ackMany", new QueueError("UNKNOWN_RECEIPT"));
  stage.fail("nack", new Error("Disk gone"));
  open[0]!.returns();
  open[1]!.throws(new Error());
  await running.done;
  assert.deepEqual(running.kinds(), ["unsettled", "unsettled"]);
  assert.deepEqual(running.events.at(-1), { kind: "stopped", why: "signal" });
});

test("stopping twice, or after the end, changes nothing", async () => {
  const stage = new Stage();
  const { running, open } = await consuming(stage, 1, { drainTimeout: 100 });
  running.stop("one");
  running.stop("two");
  await stage.clock.advance(100);
  assert.equal(open[0]!.context.signal.reason, "one");
  open[0]!.returns();
  await running.done;
  assert.equal(running.events.filter((event) => event.kind === "stopped").length, 1);
});
