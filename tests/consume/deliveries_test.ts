import assert from "node:assert/strict";
import { type ConsumeEvent, deliveries, type DeliveriesOptions } from "../../src/consume/mod.ts";
import { QueueError } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { gate, nothing, quiet, Stage, transient, until } from "./stage.ts";

function loop(stage: Stage, options: DeliveriesOptions = {}, broker: Parameters<typeof deliveries>[0] = stage.broker) {
  return deliveries(broker, { clock: stage.clock, ...options });
}

test("yields one delivery at a time, in order, and waits while there is nothing", async () => {
  const stage = new Stage();
  await stage.publish(3);
  const seen: number[] = [];
  const controller = new AbortController();
  const done = (async () => {
    for await (const delivery of loop(stage, { signal: controller.signal, pollInterval: 3_600_000 })) {
      assert.equal(delivery.deliveries, 1);
      seen.push(delivery.message.payload[0]!);
      await stage.inner.ack(delivery.lease.receipt);
    }
  })();
  await until(() => seen.length === 3);
  await quiet();
  await stage.inner.publish(new Uint8Array([4]));
  await until(() => seen.length === 4);
  controller.abort(new Error("Not seen"));
  await done;
  assert.deepEqual(seen, [1, 2, 3, 4]);
  assert.deepEqual(await stage.left(), nothing);
});

test("leases nothing before it is asked, and then no more than a batch", async () => {
  const stage = new Stage();
  await stage.publish(9);
  const iterator = loop(stage, { batchSize: 3 });
  await quiet();
  assert.equal(stage.calls.length, 0);
  for (let taken = 1; taken <= 4; taken++) {
    await iterator.next();
    await quiet();
    assert.equal((await stage.inner.stats()).leased, taken <= 3 ? 3 : 6);
  }
  await iterator.return!();
  assert.equal((await stage.inner.stats()).leased, 4, "What was yielded is the loop's to settle");
});

test("leaving the loop hands back, uncounted, what was not yielded", async () => {
  for (const leave of ["break", "throw", "signal", "return", "dispose"]) {
    const stage = new Stage();
    await stage.publish(5);
    const controller = new AbortController();
    const iterator = loop(stage, { batchSize: 5, signal: controller.signal });
    const take = async () => {
      for await (const delivery of iterator) {
        await stage.inner.ack(delivery.lease.receipt);
        if (leave === "break") break;
        if (leave === "throw") throw new Error("Mine");
        if (leave === "signal") controller.abort();
        if (leave === "return") return;
        if (leave === "dispose") await (iterator as unknown as AsyncDisposable)[Symbol.asyncDispose]();
      }
    };
    if (leave === "throw") await assert.rejects(take(), { message: "Mine" });
    else await take();
    assert.deepEqual(await stage.left(), { ...nothing, queued: 4 }, leave);
    assert.deepEqual((await stage.inner.receive(5)).map((delivery) => delivery.deliveries), [1, 1, 1, 1]);
    assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  }
});

test("a buffered delivery whose lease is down to its margin is handed back, never yielded", async () => {
  const stage = new Stage();
  await stage.publish(2);
  const events: ConsumeEvent[] = [];
  const iterator = loop(stage, { batchSize: 2, onEvent: (event) => events.push(event) });
  const first = await iterator.next();
  await quiet();
  await stage.clock.advance(27_000);
  assert.equal((await stage.inner.stats()).leased, 1);
  assert.deepEqual(events.map((event) => event.kind), ["released"]);
  await stage.inner.ack(first.value!.lease.receipt);
  const second = await iterator.next();
  assert.equal(second.value!.deliveries, 1);
  await iterator.return!();

  const late = new Stage();
  await late.publish(2);
  const other = loop(late, { batchSize: 2 });
  await other.next();
  late.clock.set(late.clock.now() + 27_000);
  const next = await other.next();
  assert.equal(next.value!.message.payload[0], 2);
  assert.equal(next.value!.lease.expiresAt.getTime(), late.clock.now() + 30_000, "A lease of its own");
  await other.return!();
});

test("a signal that aborts while it waits ends the loop without an error", async () => {
  const stage = new Stage();
  const controller = new AbortController();
  const iterator = loop(stage, { signal: controller.signal });
  const next = iterator.next();
  await quiet();
  controller.abort();
  assert.deepEqual(await next, { done: true, value: undefined });
  assert.equal(stage.clock.timers, 0);
  const never = loop(stage, { signal: AbortSignal.abort() });
  assert.deepEqual(await never.next(), { done: true, value: undefined });
});

test("the broker's close ends the loop without an error", async () => {
  const stage = new Stage();
  const next = loop(stage).next();
  await quiet();
  await stage.inner.close();
  assert.deepEqual(await next, { done: true, value: undefined });
});

test("a storage failure rejects once, after patience; then the loop has ended", async () => {
  const stage = new Stage();
  const error = transient("EIO");
  stage.fail("receive", error, Infinity);
  const iterator = loop(stage, { storagePatience: 1_000 });
  let failed = false;
  const next = iterator.next().catch((thrown) => {
    failed = true;
    return thrown;
  });
  await stage.clock.advance(999);
  assert.equal(failed, false);
  await stage.clock.advance(1);
  assert.equal(await next, error);
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  assert.equal(stage.clock.timers, 0);

  const final = new Stage();
  final.fail("receive", new QueueError("QUEUE_BACKEND_FAILED"));
  await assert.rejects(loop(final).next(), { reason: "QUEUE_BACKEND_FAILED" });
});

test("several calls of next wait side by side, each for a delivery of its own", async () => {
  const stage = new Stage();
  const iterator = loop(stage, { batchSize: 2 });
  const nexts = [iterator.next(), iterator.next(), iterator.next()];
  await quiet();
  await stage.publish(3);
  const numbers = (await Promise.all(nexts)).map((result) => result.value!.message.payload[0]);
  assert.deepEqual(numbers, [1, 2, 3]);
  await iterator.return!();
});

test("a watch is held while the loop runs", async () => {
  const stage = new Stage();
  let held = 0;
  stage.on("watch", () => {
    held++;
    return { [Symbol.asyncDispose]: () => Promise.resolve(void held--) };
  });
  const iterator = loop(stage);
  assert.equal(held, 0);
  const next = iterator.next();
  await quiet();
  assert.equal(held, 1);
  assert.equal(stage.clock.nextTimer, stage.clock.now() + 5_000);
  await iterator.return!();
  await next;
  assert.equal(held, 0);
  assert.equal(stage.clock.timers, 0);
});

test("returning before the first delivery starts nothing", async () => {
  const stage = new Stage();
  const iterator = loop(stage);
  assert.deepEqual(await iterator.return!(), { done: true, value: undefined });
  assert.deepEqual(await iterator.next(), { done: true, value: undefined });
  assert.equal(stage.calls.length, 0);
});

test("a hand-back that hangs does not hold the end of the loop beyond the settle timeout", async () => {
  const stage = new Stage();
  await stage.publish(2);
  stage.on("release", () => gate().opened);
  const iterator = loop(stage, { batchSize: 2, settleTimeout: 300 });
  await iterator.next();
  let returned = false;
  const end = iterator.return!().then(() => returned = true);
  await stage.clock.advance(299);
  assert.equal(returned, false);
  await stage.clock.advance(1);
  await end;
  assert.equal(stage.clock.timers, 0);
});
