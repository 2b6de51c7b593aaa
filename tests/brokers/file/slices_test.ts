import assert from "node:assert/strict";
import { Slices } from "../../../src/brokers/file/slices.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { test } from "../../support/test.ts";

/** Slices over a clock and turns that the test works by hand. */
function handTurned(pause?: () => Promise<void>) {
  const inner = unflushedOperations();
  const time = { now: 1_000, turns: 0 };
  const slices = Slices.of({
    ...inner,
    uptime: () => time.now,
    pause: () => {
      time.turns++;
      return pause?.() ?? inner.pause();
    },
  });
  return { slices, time };
}

/** Works for so many ms, giving way before. */
async function work(slices: Slices, time: { now: number }, ms: number): Promise<void> {
  if (slices.isOver) await slices.giveWay();
  time.now += ms;
}

test("many that are called at once share slices: a turn of the event loop after each 5 ms of work", async () => {
  const { slices, time } = handTurned();
  const order: number[] = [];
  await Promise.all(Array.from({ length: 50 }, (_, index) => work(slices, time, 1).then(() => order.push(index))));
  assert.equal(time.turns, 9, "50 ms of work are ten slices");
  assert.deepEqual(order, Array.from(order.keys()), "in the order of the calls");
});

test("after each turn one at least goes on, however long a turn takes", async () => {
  const { slices, time } = handTurned();
  await work(slices, time, 60_000);
  await Promise.all(Array.from({ length: 5 }, () => work(slices, time, 60_000)));
  assert.equal(time.turns, 5);
});

test("all who wait are told when a turn cannot be had", async () => {
  const refusal = new Error("refused");
  const { slices, time } = handTurned(() => Promise.reject(refusal));
  await work(slices, time, 10);
  const waiting = [slices.giveWay(), slices.giveWay()];
  for (const each of waiting) await assert.rejects(each, refusal);
  await assert.rejects(slices.giveWay(), refusal);
});
