import assert from "node:assert/strict";
import { type BrokerEvent, QueueError } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { gate, nothing, quiet, Stage, transient, until } from "./stage.ts";

const hour = 3_600_000;

/** A consumer that has found nothing and waits. */
async function idle(stage: Stage, options: Parameters<Stage["consume"]>[0] = {}, broker = stage.broker) {
  const handled: number[] = [];
  const running = stage.consume(
    { handler: ({ message }) => void handled.push(message.payload[0]!), ...options },
    broker,
  );
  await until(() => stage.count("receive") > 0);
  await quiet();
  return { running, handled };
}

test("a publication wakes an idle consumer without the clock moving", async () => {
  const stage = new Stage();
  const { running, handled } = await idle(stage, { pollInterval: hour });
  assert.deepEqual(handled, []);
  await stage.publish(1);
  await until(() => handled.length === 1);
  running.stop();
  await running.done;
  assert.deepEqual(await stage.left(), nothing);
});

test("a replay wakes an idle consumer", async () => {
  const stage = new Stage({ maxDeliveries: 1 });
  const [id] = await stage.publish(1);
  await stage.inner.reject((await stage.inner.receive(1))[0]!.lease.receipt);
  const { running, handled } = await idle(stage, { pollInterval: hour });
  await stage.inner.replayDeadLetter(id!);
  await until(() => handled.length === 1);
  running.stop();
  await running.done;
});

test("a publication between an empty receive and the wait is not missed", async () => {
  const stage = new Stage();
  let first = true;
  stage.on("receive", async (_call, proceed) => {
    const empty = await proceed();
    if (first) await stage.publish(1);
    first = false;
    return empty;
  });
  const { running, handled } = await idle(stage, { pollInterval: hour });
  assert.deepEqual(handled, [1]);
  running.stop();
  await running.done;
});

test("a retry comes after exactly its delay, a dead consumer's message at exactly its deadline", async () => {
  const stage = new Stage({ retryDelay: 700 });
  await stage.publish(1);
  let runs = 0;
  const { running } = await idle(stage, {
    pollInterval: hour,
    handler: () => {
      if (++runs === 1) throw new Error();
    },
  });
  assert.equal(runs, 1);
  await stage.clock.advance(699);
  assert.equal(runs, 1);
  await stage.clock.advance(1);
  await until(() => runs === 2);
  running.stop();
  await running.done;

  const other = new Stage();
  await other.publish(1);
  await other.inner.receive(1);
  const second = await idle(other, { pollInterval: hour });
  await other.clock.advance(29_999);
  assert.deepEqual(second.handled, []);
  await other.clock.advance(1);
  await until(() => second.handled.length === 1);
  second.running.stop();
  await second.running.done;
});

test("the poll: 100 ms where nothing can watch, 5 s while a watch is held, as told where told", async () => {
  for (
    const [pollInterval, watched, expected] of [
      [undefined, false, 100],
      [0, false, 100],
      [-5, false, 100],
      [undefined, true, 5_000],
      [250, true, 250],
      [250, false, 250],
    ] as const
  ) {
    const stage = new Stage();
    const broker = watched ? stage.broker : stage.bare();
    const { running } = await idle(
      stage,
      pollInterval === undefined ? {} : { pollInterval },
      broker as typeof stage.broker,
    );
    const before = stage.count("receive");
    assert.equal(stage.clock.nextTimer, stage.clock.now() + expected);
    await stage.clock.advance(expected - 1);
    assert.equal(stage.count("receive"), before);
    await stage.clock.advance(1);
    assert.ok(stage.count("receive") > before);
    running.stop();
    await running.done;
    assert.equal(stage.clock.timers, 0);
  }
});

test("an infinite poll sets no timer at all", async () => {
  const stage = new Stage();
  const { running } = await idle(stage, { pollInterval: Infinity });
  assert.equal(stage.clock.timers, 0);
  running.stop();
  await running.done;
});

test("the time until something becomes receivable is read after the receive", async () => {
  const stage = new Stage();
  let ends = 0;
  stage.on("wake", (_call, proceed) => ({
    ...(proceed() as object),
    scheduled: true,
    in: stage.count("receive") === 0 ? 1 : 40 + ends++,
  }));
  const { running } = await idle(stage, { pollInterval: hour });
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 40);
  running.stop();
  await running.done;
});

test("something receivable now, or already, is looked for at once", async () => {
  for (const due of [0, -5_000]) {
    const stage = new Stage();
    let early = 3;
    stage.on("wake", (_call, proceed) => {
      const wake = proceed() as object;
      return early-- > 0 ? { ...wake, scheduled: true, in: due } : wake;
    });
    const { running } = await idle(stage);
    await until(() => stage.clock.timers === 1);
    assert.ok(stage.count("receive") >= 2);
    running.stop();
    await running.done;
  }
});

test("after messages the next receive follows at once", async () => {
  const stage = new Stage();
  await stage.publish(5);
  const { running, handled } = await idle(stage, { prefetch: false, pollInterval: hour }, stage.bare() as never);
  await until(() => handled.length === 5);
  assert.deepEqual(handled, [1, 2, 3, 4, 5]);
  running.stop();
  await running.done;
});

test("a message nacked on a broker that cannot tell comes back without waiting for the poll", async () => {
  const stage = new Stage();
  await stage.publish(1);
  let runs = 0;
  const running = stage.consume({
    parallelism: 8,
    pollInterval: hour,
    handler: () => {
      if (++runs === 1) throw new Error();
    },
  }, stage.bare("nackAfter"));
  await until(() => runs === 2);
  running.stop();
  await running.done;
});

test("a worker that becomes idle asks again at once, though a look ahead had found nothing", async () => {
  const stage = new Stage();
  await stage.publish(2);
  const held = gate();
  let runs = 0;
  const running = stage.consume({
    pollInterval: hour,
    handler: () => ++runs === 2 ? held.opened : undefined,
  }, stage.bare());
  await until(() => runs === 2);
  await quiet();
  await stage.publish(1);
  await quiet();
  assert.equal(runs, 2);
  held.open();
  await until(() => runs === 3);
  running.stop();
  await running.done;
});

test("an idle wait leaves no listener behind on the wake signal", async () => {
  const stage = new Stage();
  let added = 0;
  let removed = 0;
  stage.on("wake", (_call, proceed) => {
    const wake = proceed() as { signal: AbortSignal };
    const { signal } = wake;
    if (!Object.hasOwn(signal, "addEventListener")) {
      const { addEventListener, removeEventListener } = EventTarget.prototype;
      Object.defineProperty(signal, "addEventListener", {
        value: (...args: Parameters<EventTarget["addEventListener"]>) => {
          added++;
          addEventListener.apply(signal, args);
        },
      });
      Object.defineProperty(signal, "removeEventListener", {
        value: (...args: Parameters<EventTarget["removeEventListener"]>) => {
          removed++;
          removeEventListener.apply(signal, args);
        },
      });
    }
    return wake;
  });
  const { running } = await idle(stage);
  await stage.clock.advance(5_000);
  await stage.clock.advance(5_000);
  running.stop();
  await running.done;
  assert.ok(added >= 3);
  assert.equal(removed, added);
});

test("the caller's signal has no listener left after the end", async () => {
  const stage = new Stage();
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    return Reflect.apply(add, signal, args);
  };
  signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    return Reflect.apply(remove, signal, args);
  };
  const { running } = await idle(stage, { signal });
  assert.equal(listeners, 1);
  controller.abort();
  await running.done;
  assert.equal(listeners, 0);
});

test("a watch is held while the consumer runs, and its broker's events are passed on", async () => {
  const stage = new Stage();
  let held = 0;
  let tell = (_event: BrokerEvent) => {};
  stage.on("watch", (call) => {
    held++;
    tell = (call.args[0] as { onEvent: (event: BrokerEvent) => void }).onEvent;
    return {
      [Symbol.asyncDispose]: () => {
        held--;
        return Promise.reject(new Error("Ignored"));
      },
    };
  });
  const { running } = await idle(stage);
  assert.equal(held, 1);
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 5_000);
  tell({ kind: "entrySkipped", path: "p", why: "w" });
  await quiet();
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 5_000);
  const error = new Error("No more watches");
  tell({ kind: "watchFailed", error });
  await quiet();
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 100);
  running.stop();
  await running.done;
  assert.equal(held, 0);
  assert.deepEqual(running.events, [
    { kind: "entrySkipped", path: "p", why: "w" },
    { kind: "watchFailed", error },
    { kind: "stopped", why: "signal" },
  ]);
});

test("where watching cannot even begin the poll takes over", async () => {
  const stage = new Stage();
  stage.on("watch", () => {
    throw transient("EMFILE");
  });
  const { running } = await idle(stage);
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 100);
  assert.equal(running.events[0]!.kind, "watchFailed");
  running.stop();
  await running.done;
});

test("a watch that never ends does not keep the consumer beyond its last deadline", async () => {
  const stage = new Stage();
  stage.on("watch", () => ({ [Symbol.asyncDispose]: () => gate().opened }));
  const { running } = await idle(stage);
  running.stop();
  await quiet();
  assert.equal(running.ended(), false);
  await stage.clock.advance(5_000);
  assert.equal(running.ended(), true);
  assert.equal(stage.clock.timers, 0);
});

test("the broker's close ends the consumer as a stop does", async () => {
  const stage = new Stage();
  const { running } = await idle(stage, { pollInterval: hour });
  await stage.inner.close();
  await until(() => running.ended());
  await running.done;
  assert.equal(running.events.at(-1)!.kind, "stopped");
  assert.equal((running.events.at(-1) as { why: string }).why, "closed");
  assert.equal(stage.clock.timers, 0);
});

test("a close found by a wake or an outcome ends it as well", async () => {
  const stage = new Stage();
  await stage.publish(2);
  const running = stage.consume({ handler: () => stage.inner.close() });
  await until(() => running.ended());
  await running.done;
  assert.ok(running.kinds().includes("unsettled"));

  const other = new Stage();
  other.on("wake", () => {
    throw new QueueError("QUEUE_CLOSED");
  });
  await other.consume({}).done;
});

test("the rest of the process runs while a broker that never makes it wait is drained", async () => {
  const stage = new Stage();
  await stage.publish(1);
  const controller = new AbortController();
  let runs = 0;
  const running = stage.consume({
    parallelism: 4,
    signal: controller.signal,
    handler: async () => {
      if (++runs === 1) setTimeout(() => controller.abort(), 0);
      await stage.inner.publish(new Uint8Array());
    },
  });
  await running.done;
  assert.ok(runs > 1);
});
