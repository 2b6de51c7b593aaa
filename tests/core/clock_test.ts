import { type Clock as FakeClock, install } from "@sinonjs/fake-timers";
import assert from "node:assert/strict";
import { systemClock } from "../../src/core/clock.ts";
import { WakeSource } from "../../src/core/wake.ts";
import { test } from "../support/test.ts";

function withFakeTimers(run: (fake: FakeClock) => void): void {
  const fake = install({ now: 1_000, toFake: ["Date", "setTimeout", "clearTimeout"] });
  try {
    run(fake);
  } finally {
    fake.uninstall();
  }
}

test("systemClock reads the global Date and timers at every call, so that fake ones installed later count", () => {
  withFakeTimers((fake) => {
    assert.equal(systemClock.now(), 1_000);
    let fired = 0;
    systemClock.setTimer(500, () => fired++);
    fake.tick(499);
    assert.equal(fired, 0);
    fake.tick(1);
    assert.deepEqual([fired, systemClock.now()], [1, 1_500]);
  });
});

test("systemClock waits for longer than a platform timer holds", () => {
  withFakeTimers((fake) => {
    const century = 100 * 365 * 24 * 3_600_000;
    let fired = 0;
    systemClock.setTimer(century, () => fired++);
    fake.tick(century - 1);
    assert.equal(fired, 0);
    fake.tick(1);
    assert.deepEqual([fired, fake.countTimers()], [1, 0]);
  });
});

test("a cancelled timer of systemClock never fires, in whichever piece of its wait it is", () => {
  withFakeTimers((fake) => {
    const cancel = systemClock.setTimer(10_000_000_000, () => assert.fail("it was cancelled"));
    fake.tick(5_000_000_000);
    cancel();
    assert.equal(fake.countTimers(), 0);
  });
});

test("WakeSource wakes all who took the signal, once, and arms a fresh one", () => {
  const source = new WakeSource();
  source.fire();
  const [first, second] = [source.signal(), source.signal()];
  assert.equal(first, second);
  assert.ok(!first.aborted);
  source.fire();
  assert.ok(first.aborted && !source.signal().aborted);
});
