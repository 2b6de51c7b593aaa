import assert from "node:assert/strict";
import { QueueError, type Receipt } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { type Gate, gate, nothing, quiet, Stage, until } from "./stage.ts";

/** Handlers that each stay open until the test lets them go. */
class OpenHandlers {
  readonly open: { number: number; gate: Gate }[] = [];
  most = 0;
  readonly handler = async ({ message }: { message: { payload: Uint8Array } }): Promise<void> => {
    const entry = { number: message.payload[0]!, gate: gate() };
    this.open.push(entry);
    this.most = Math.max(this.most, this.open.length);
    await entry.gate.opened;
    this.open.splice(this.open.indexOf(entry), 1);
  };

  closeAll(): void {
    for (const { gate } of this.open) gate.open();
  }
}

test("parallelism is how many handlers run at once", async () => {
  const stage = new Stage();
  await stage.publish(10);
  const handlers = new OpenHandlers();
  const running = stage.consume({ handler: handlers.handler, parallelism: 4 });
  await until(() => handlers.open.length === 4);
  await quiet();
  assert.equal(handlers.most, 4);
  assert.equal((await stage.inner.stats()).leased, 4);
  while (running.kinds().length < 10) {
    handlers.closeAll();
    await quiet();
  }
  assert.equal(handlers.most, 4);
  running.stop();
  await running.done;
  assert.deepEqual(await stage.left(), nothing);
});

test("one fetcher asks for what the idle workers can hold", async () => {
  const stage = new Stage();
  await stage.publish(100);
  const handlers = new OpenHandlers();
  const running = stage.consume({ handler: handlers.handler, parallelism: 3, batchSize: 4, prefetch: false });
  await until(() => handlers.open.length === 3);
  await quiet();
  assert.deepEqual(stage.calls.filter((call) => call.method === "receive").map((call) => call.args[0]), [12]);
  handlers.open[0]!.gate.open();
  await quiet();
  assert.equal(stage.count("receive"), 1);
  running.stop();
  handlers.closeAll();
  await running.done;
  assert.deepEqual(await stage.left(), { ...nothing, queued: 99 - 3 });
});

test("one worker handles in delivery order, one at a time", async () => {
  const stage = new Stage();
  await stage.publish(20);
  const handled: number[] = [];
  let open = 0;
  const running = stage.consume({
    batchSize: 7,
    handler: async ({ message }) => {
      assert.equal(++open, 1);
      await quiet();
      handled.push(message.payload[0]!);
      open--;
    },
  });
  await until(() => handled.length === 20);
  running.stop();
  await running.done;
  assert.deepEqual(handled, Array.from({ length: 20 }, (_, index) => index + 1));
});

test("nothing is leased ahead before handlers are known to be quick, nor where it is turned off", async () => {
  const stage = new Stage();
  await stage.publish(10);
  const handlers = new OpenHandlers();
  const running = stage.consume({ handler: handlers.handler, batchSize: 2 });
  await until(() => handlers.open.length === 1);
  await quiet();
  assert.equal((await stage.inner.stats()).leased, 2);
  running.stop();
  handlers.closeAll();
  await running.done;

  const off = new Stage();
  await off.publish(50);
  let most = 0;
  const without = off.consume({
    prefetch: false,
    batchSize: 2,
    handler: async () => void (most = Math.max(most, (await off.inner.stats()).leased)),
  });
  await until(() => without.kinds().length === 50);
  without.stop();
  await without.done;
  assert.ok(most <= 2 + 3, `${most} held, of which at most one batch and one are on their way to be acknowledged`);
});

test("quick handlers have at most one batch leased ahead; slow ones none", async () => {
  const stage = new Stage();
  await stage.publish(40);
  const handlers = new OpenHandlers();
  let slow = 0;
  const running = stage.consume({
    parallelism: 2,
    batchSize: 3,
    handler: (delivery) => slow++ < 10 ? undefined : handlers.handler(delivery),
  });
  await until(() => handlers.open.length === 2);
  await quiet();
  assert.ok((await stage.inner.stats()).leased <= 2 * 3 * 2);
  assert.ok((await stage.inner.stats()).leased > 2);

  // Two handlers that take two seconds each: a batch of three takes longer than a twentieth of the lease.
  for (let round = 0; round < 8; round++) {
    await stage.clock.advance(2_000);
    handlers.closeAll();
    await quiet();
  }
  const released = running.events.filter((event) => event.kind === "released");
  for (const event of released) assert.equal(event.why, "ahead");
  assert.ok((await stage.inner.stats()).leased <= 2 * 3);
  running.stop();
  handlers.closeAll();
  await running.done;
});

test("what was leased ahead and waits for a twentieth of its lease is handed back uncounted", async () => {
  const stage = new Stage();
  await stage.publish(8);
  const handlers = new OpenHandlers();
  let runs = 0;
  const running = stage.consume({ handler: (delivery) => ++runs < 4 ? undefined : handlers.handler(delivery) });
  await until(() => handlers.open.length === 1);
  await quiet();
  assert.equal((await stage.inner.stats()).leased, 2);
  await stage.clock.advance(1_499);
  assert.equal((await stage.inner.stats()).leased, 2);
  await stage.clock.advance(1);
  assert.equal((await stage.inner.stats()).leased, 1);
  const released = running.events.find((event) => event.kind === "released")!;
  assert.equal(released.why, "ahead");
  const [other] = await stage.inner.receive(1);
  assert.equal(other!.deliveries, 1);
  await stage.inner.release(other!.lease.receipt);
  await quiet();
  assert.equal((await stage.inner.stats()).leased, 1, "Not leased ahead again while the handler is slow");
  running.stop();
  handlers.closeAll();
  await running.done;
});

test("what waits in a worker's batch is not what was leased ahead", async () => {
  for (const quick of [0, 3, 6]) {
    const stage = new Stage();
    await stage.publish(15);
    const handlers = new OpenHandlers();
    let runs = 0;
    const parallelism = quick === 0 ? 2 : 1;
    const running = stage.consume({
      parallelism,
      batchSize: 3,
      handler: (delivery) => ++runs <= quick ? undefined : handlers.handler(delivery),
    });
    await until(() => handlers.open.length === parallelism);
    await quiet();
    await stage.clock.advance(20_000);
    assert.equal(running.events.filter((event) => event.kind === "released" && event.why !== "ahead").length, 0);
    assert.equal((await stage.inner.stats()).leased, quick === 0 ? 6 : 3, "One running, the rest of its batch");
    running.stop();
    handlers.closeAll();
    await running.done;
  }
});

test("looking ahead does not make the batches small", async () => {
  const stage = new Stage();
  await stage.publish(200);
  const running = stage.consume({ batchSize: 10, handler: async () => {} });
  await until(() => running.kinds().length === 200);
  assert.ok(stage.count("receive") <= 25, `${stage.count("receive")} receives`);
  running.stop();
  await running.done;
});

test("a look ahead that found nothing is not repeated for every message", async () => {
  const stage = new Stage();
  await stage.publish(50);
  const running = stage.consume({ batchSize: 50, pollInterval: 3_600_000, handler: async () => {} });
  await until(() => running.kinds().length === 50);
  await quiet();
  assert.ok(stage.count("receive") <= 5, `${stage.count("receive")} receives`);
  running.stop();
  await running.done;
});

test("acknowledgements that come while one is under way ride in the next", async () => {
  const stage = new Stage();
  await stage.publish(30);
  const batches: number[] = [];
  const gates: Gate[] = [];
  stage.on("ackMany", async (call, proceed) => {
    batches.push((call.args[0] as Receipt[]).length);
    const held = gate();
    gates.push(held);
    await held.opened;
    return await proceed();
  });
  const running = stage.consume({ parallelism: 10, handler: () => {} });
  await until(() => gates.length === 1);
  await quiet();
  assert.equal(gates.length, 1, "One call at a time");
  assert.ok(batches[0]! >= 10);
  gates[0]!.open();
  await until(() => gates.length === 2);
  await quiet();
  assert.ok(batches[1]! > 1);
  for (let next = 1; running.kinds().length < 30; next++) {
    await until(() => gates.length > next || running.kinds().length === 30);
    gates[next]?.open();
    await quiet();
  }
  assert.equal(batches.reduce((sum, size) => sum + size), 30);
  running.stop();
  await running.done;
  assert.equal(stage.count("ack"), 0);
});

test("a worker goes on without its acknowledgement until more than one batch is unsettled", async () => {
  for (const acker of [true, false]) {
    const stage = new Stage();
    await stage.publish(30);
    const held = gate();
    for (const method of ["ack", "ackMany"]) {
      stage.on(method, async (_call, proceed) => {
        await held.opened;
        return await proceed();
      });
    }
    let handled = 0;
    const running = stage.consume(
      { batchSize: 3, handler: () => void handled++ },
      acker ? stage.broker : stage.bare("release", "wake"),
    );
    await quiet();
    assert.equal(handled, 4);
    held.open();
    await until(() => handled === 30);
    running.stop();
    await running.done;
    assert.deepEqual(await stage.left(), nothing);
    assert.equal(stage.count(acker ? "ack" : "ackMany"), 0);
  }
});

test("a refused receipt of a batch concerns its message alone", async () => {
  const stage = new Stage();
  const [first] = await stage.publish(3);
  const running = stage.consume({
    parallelism: 3,
    handler: async ({ message, lease }) => {
      if (message.id === first) await stage.inner.ack(lease.receipt);
    },
  });
  await until(() => running.kinds().length === 3);
  running.stop();
  await running.done;
  assert.deepEqual(running.kinds().sort(), ["acknowledged", "acknowledged", "leaseLost"]);
  assert.deepEqual(await stage.left(), nothing);
});

test("a receipt that the broker does not know ends the consumer", async () => {
  for (const capabilities of [["ackMany"], []] as ("ackMany")[][]) {
    const stage = new Stage();
    await stage.publish(1);
    stage.on("ackMany", () => Promise.resolve([3]));
    stage.on("ack", () => Promise.reject(new QueueError("UNKNOWN_RECEIPT")));
    const running = stage.consume({}, stage.bare(...capabilities));
    await assert.rejects(running.done, { reason: "UNKNOWN_RECEIPT" });
    assert.equal(stage.clock.timers, 0);
  }
});
