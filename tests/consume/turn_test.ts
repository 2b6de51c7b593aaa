import assert from "node:assert/strict";
import { newMemory } from "../../src/brokers/memory/mod.ts";
import { consume } from "../../src/consume/mod.ts";
import { nextTurn } from "../../src/core/turn.ts";
import { test } from "../support/test.ts";

/** Keeps the event loop until the clock has gone on. */
function spin(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

test("a timer that is due fires within a few turns, however busy the turns are", async () => {
  for (let round = 0; round < 5; round++) {
    let fired = false;
    setTimeout(() => fired = true, 1);
    let turns = 0;
    for (; !fired && turns < 100; turns++) {
      spin(3);
      await nextTurn();
    }
    assert.ok(turns <= 4, `${turns} turns`);
  }
});

test("a stop's own timer runs although there is always work at hand", async () => {
  await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
  await jobs.publishMany(new Array(64).fill(new Uint8Array(1)));
  const stop = new AbortController();
  let beats = 0;
  // An interval set before the work begins, and timers set while it goes on.
  const interval = setInterval(() => {
    if (++beats === 5) setTimeout(() => stop.abort(), 1);
  }, 1);
  await consume(jobs, {
    handlerIsIdempotent: true,
    handler: async ({ message }) => void await jobs.publish(message.payload),
    signal: stop.signal,
  });
  clearInterval(interval);
  assert.equal((await jobs.stats()).leased, 0);
});
