import assert from "node:assert/strict";
import { AckedWindow } from "../../src/consume/acked_window.ts";
import { acknowledged, type Delivery, QueueError } from "../../src/core/mod.ts";
import { test } from "../support/test.ts";
import { nothing, quiet, Stage, until } from "./stage.ts";

const delivery = (id: string, deliveries: number) => ({ message: { id }, deliveries }) as Delivery;

test("the window remembers the last ids, and a first delivery is a fresh life", () => {
  const window = new AckedWindow(2);
  for (const id of ["a", "b", "a", "c"]) window.remember(id);
  assert.equal(window.holds(delivery("a", 2)), true);
  assert.equal(window.holds(delivery("b", 2)), false);
  assert.equal(window.holds(delivery("c", 3)), true);
  assert.equal(window.holds(delivery("c", 1)), false);
  assert.equal(window.holds(delivery("c", 2)), false, "Forgotten");
  const none = new AckedWindow(0);
  none.remember("a");
  assert.equal(none.holds(delivery("a", 2)), false);
});

/** Handles one message whose acknowledgement gets lost, and lets its lease lapse. */
async function redelivered(
  handler: (run: number, delivery: Delivery, stage: Stage) => unknown,
  ackedWindow: number,
  retryDelay = 0,
) {
  const stage = new Stage({ retryDelay });
  await stage.publish(1);
  stage.fail("ackMany", new QueueError("LEASE_EXPIRED"));
  let runs = 0;
  const running = stage.consume({
    ackedWindow,
    parallelism: 2,
    handler: (delivery) => handler(++runs, delivery, stage),
  });
  await until(() => running.kinds().length === 1);
  await stage.clock.advance(30_000);
  await until(() => running.kinds().length === 2);
  running.stop();
  await running.done;
  return { runs, stage, last: running.events.filter((event) => "id" in event).at(-1)! };
}

test("a message whose acknowledgement was lost is acknowledged without running its handler", async () => {
  const { runs, stage, last } = await redelivered(() => {}, 10);
  assert.equal(runs, 1);
  assert.equal(last.kind, "acknowledged");
  assert.equal((last as { by: string }).by, "window");
  assert.deepEqual(await stage.left(), nothing);
});

test("without a window every delivery runs the handler", async () => {
  const { runs } = await redelivered(() => {}, 0);
  assert.equal(runs, 2);
});

test("a handler that said acknowledged is remembered, one that failed is not", async () => {
  const said = await redelivered(() => acknowledged, 10);
  assert.equal(said.runs, 1);
  const failed = await redelivered(
    (run) => {
      if (run === 1) throw new Error();
    },
    10,
    1_000,
  );
  assert.equal(failed.runs, 2);
});

test("a replayed dead letter is handled, though its id was remembered", async () => {
  const stage = new Stage();
  const [id] = await stage.publish(1);
  let runs = 0;
  const running = stage.consume({
    ackedWindow: 10,
    handler: async ({ lease }) => {
      if (++runs > 1) return;
      await stage.inner.reject(lease.receipt);
      return acknowledged;
    },
  });
  await until(() => running.kinds().length === 1);
  await stage.inner.replayDeadLetter(id!);
  await until(() => running.kinds().length === 2);
  await quiet();
  running.stop();
  await running.done;
  assert.equal(runs, 2);
  assert.deepEqual(await stage.left(), nothing);
});

test("the window ends with its consumer", async () => {
  const stage = new Stage();
  await stage.publish(1);
  let runs = 0;
  for (let round = 0; round < 2; round++) {
    stage.fail("ackMany", new QueueError("LEASE_EXPIRED"), round === 0 ? 1 : 0);
    const running = stage.consume({ ackedWindow: 10, handler: () => void runs++ });
    await until(() => running.kinds().length === 1);
    running.stop();
    await running.done;
    await stage.clock.advance(30_000);
  }
  assert.equal(runs, 2);
});
