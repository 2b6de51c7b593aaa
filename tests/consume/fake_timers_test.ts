import assert from "node:assert/strict";
import FakeTimers from "@sinonjs/fake-timers";
import { type MemoryBroker, newMemory } from "../../src/brokers/memory/mod.ts";
import { consume, type ConsumeEvent, type ConsumeOptions, deliveries } from "../../src/consume/mod.ts";
import { isQueueError, type Policy, wrapBroker } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { gate, quiet, until } from "./stage.ts";

type Fake = ReturnType<typeof FakeTimers.install>;

/** Fakes the global Date and timers; nothing is injected anywhere. */
async function withFakeTime(body: (time: { clock: Fake; pass(ms: number): Promise<void> }) => Promise<void>) {
  const clock = FakeTimers.install({
    now: Date.UTC(2026, 0, 1),
    toFake: ["Date", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
  });
  const pass = async (ms: number) => {
    await quiet();
    await clock.tickAsync(ms);
    await quiet();
  };
  try {
    await body({ clock, pass });
    assert.equal(clock.countTimers(), 0, "No timer is left");
  } finally {
    clock.uninstall();
  }
}

function memory(policy: Partial<Policy> = {}): MemoryBroker {
  return newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5, ...policy } });
}

function start(broker: MemoryBroker, options: Partial<ConsumeOptions>) {
  const controller = new AbortController();
  const events: ConsumeEvent[] = [];
  const done = consume(broker, {
    handler: () => {},
    handlerIsIdempotent: true,
    signal: controller.signal,
    onEvent: (event) => events.push(event),
    ...options,
  });
  return { done, events, stop: () => controller.abort() };
}

test("under faked timers: a retry comes at exactly its delay", async () => {
  await withFakeTime(async ({ pass }) => {
    const jobs = memory({ retryDelay: 700 });
    await jobs.publish(new Uint8Array());
    let runs = 0;
    const running = start(jobs, {
      handler: () => {
        if (++runs === 1) throw new Error();
      },
      pollInterval: 3_600_000,
    });
    await pass(699);
    assert.equal(runs, 1);
    await pass(1);
    assert.equal(runs, 2);
    running.stop();
    await running.done;
  });
});

test("under faked timers: the handler's signal aborts at the margin, and a renewal keeps it going", async () => {
  await withFakeTime(async ({ pass }) => {
    for (const autoExtend of [false, true]) {
      const jobs = memory();
      await jobs.publish(new Uint8Array());
      const held = gate();
      let signal: AbortSignal | undefined;
      const running = start(jobs, {
        autoExtend,
        handler: (_delivery, context) => {
          signal = context.signal;
          return held.opened;
        },
      });
      await pass(26_999);
      assert.equal(signal!.aborted, false);
      await pass(1);
      assert.equal(signal!.aborted, !autoExtend);
      if (!autoExtend) assert.ok(isQueueError(signal!.reason, "LEASE_EXPIRED"));
      else await pass(600_000);
      held.open();
      await until(() => running.events.length === 1);
      assert.equal(running.events[0]!.kind, "acknowledged");
      running.stop();
      await running.done;
    }
  });
});

test("under faked timers: the drain, then the last deadline", async () => {
  await withFakeTime(async ({ pass }) => {
    const jobs = memory();
    await jobs.publish(new Uint8Array());
    let signal: AbortSignal | undefined;
    const running = start(jobs, {
      drainTimeout: 1_000,
      settleTimeout: 2_000,
      handler: (_delivery, context) => {
        signal = context.signal;
        return gate().opened;
      },
    });
    await until(() => signal !== undefined);
    let ended = false;
    running.done.then(() => ended = true);
    running.stop();
    await pass(999);
    assert.equal(signal!.aborted, false);
    await pass(1);
    assert.equal(signal!.aborted, true);
    await pass(1_999);
    assert.equal(ended, false);
    await pass(1);
    assert.equal(ended, true);
    assert.deepEqual(running.events.map((event) => event.kind), ["abandonedHandler", "stopped"]);
  });
});

test("under faked timers: polling, storage patience and waits longer than a platform's timer", async () => {
  await withFakeTime(async ({ pass }) => {
    let receives = 0;
    let failures = 2;
    const jobs = wrapBroker(memory(), (call, proceed) => {
      if (call.method === "receive") {
        receives++;
        if (failures-- > 0) return Promise.reject(Object.assign(new Error(), { code: "EAGAIN" }));
      }
      return proceed();
    });
    const running = start(jobs, { pollInterval: 3_000_000_000 });
    await pass(300);
    assert.equal(receives, 3);
    await pass(2_999_999_999);
    assert.equal(receives, 3);
    await pass(1);
    assert.equal(receives, 4);
    running.stop();
    await running.done;
  });
});

test("under faked timers: the loop waits, and hands back at the margin", async () => {
  await withFakeTime(async ({ pass }) => {
    const jobs = memory();
    const iterator = deliveries(jobs, { batchSize: 2 });
    const next = iterator.next();
    await pass(10_000);
    await jobs.publishMany([new Uint8Array([1]), new Uint8Array([2])]);
    assert.equal((await next).value!.message.payload[0], 1);
    const second = await iterator.next();
    assert.equal(second.value!.message.payload[0], 2);
    await jobs.release(second.value!.lease.receipt);
    await iterator.return!();
  });
});
