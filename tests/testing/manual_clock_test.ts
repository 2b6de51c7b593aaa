import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { ManualClock } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";

test("advance() fires timers in the order of their instants, ties in the order they were set", async () => {
  const clock = new ManualClock(1_000);
  const fired: string[] = [];
  const note = (name: string) => () => void fired.push(`${name} ${clock.now()}`);
  clock.setTimer(30, note("c"));
  clock.setTimer(10, note("a"));
  clock.setTimer(10, note("b"));
  clock.setTimer(31, note("d"));
  await clock.advance(30);
  assert.deepEqual(fired, ["a 1010", "b 1010", "c 1030"]);
  assert.equal(clock.now(), 1_030);
  assert.equal(clock.timers, 1);
  assert.equal(clock.nextTimer, 1_031);
  await clock.advance(1);
  assert.equal(fired.at(-1), "d 1031");
  assert.equal(clock.nextTimer, undefined);
});

test("advance() fires a timer that another one sets on the way", async () => {
  const clock = new ManualClock(0);
  const fired: number[] = [];
  const again = () => {
    fired.push(clock.now());
    if (fired.length < 5) clock.setTimer(10, again);
  };
  clock.setTimer(10, again);
  await clock.advance(35);
  assert.deepEqual(fired, [10, 20, 30]);
  await clock.advance(100);
  assert.deepEqual(fired, [10, 20, 30, 40, 50]);
});

test("advance() lets what a timer woke run before the next timer", async () => {
  const clock = new ManualClock(0);
  const seen: string[] = [];
  const sleeper = (async () => {
    await new Promise<void>((resolve) => void clock.setTimer(10, resolve));
    seen.push(`woke at ${clock.now()}`);
    await new Promise<void>((resolve) => void clock.setTimer(10, resolve));
    seen.push(`woke at ${clock.now()}`);
  })();
  clock.setTimer(20, () => void seen.push(`timer at ${clock.now()}`));
  await clock.advance(20);
  await sleeper;
  assert.deepEqual(seen.sort(), ["timer at 20", "woke at 10", "woke at 20"]);
});

test("until() lets real I/O come in while the clock stands still", async () => {
  const clock = new ManualClock(0);
  const path = new URL("./manual_clock_test.ts", import.meta.url);
  let size = 0;
  clock.setTimer(10, () => void readFile(path).then((content) => size = content.length));
  clock.setTimer(20, () => size = -1);
  await clock.advance(10);
  await clock.until(() => size !== 0);
  assert.ok(size > 0);
  assert.equal(clock.now(), 10);
});

test("a cancelled timer does not fire, and cancelling late does no harm", async () => {
  const clock = new ManualClock(0);
  let fired = 0;
  const cancel = clock.setTimer(10, () => fired++);
  const late = clock.setTimer(5, () => fired++);
  await clock.advance(5);
  late();
  cancel();
  await clock.advance(10);
  assert.equal(fired, 1);
  assert.equal(clock.timers, 0);
});

test("a delay of 0 or less fires at the next move, not at once", async () => {
  const clock = new ManualClock(0);
  let fired = 0;
  clock.setTimer(0, () => fired++);
  clock.setTimer(-5, () => fired++);
  assert.equal(fired, 0);
  await clock.advance(0);
  assert.equal(fired, 2);
  assert.equal(clock.now(), 0);
});

test("set() steps the clock without firing anything", async () => {
  const clock = new ManualClock(1_000);
  let fired = 0;
  clock.setTimer(10, () => fired++);
  clock.set(5_000);
  assert.deepEqual([clock.now(), fired], [5_000, 0]);
  clock.set(500);
  await clock.advance(509);
  assert.deepEqual([clock.now(), fired], [1_009, 0]);
  await clock.advance(1);
  assert.equal(fired, 1);
});
