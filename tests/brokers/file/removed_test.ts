/**
 * A queue directory that is removed under those who use it: they are told where, and whoever opens it again has a queue.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { consume } from "../../../src/consume/consume.ts";
import type { ConsumeEvent } from "../../../src/consume/events.ts";
import { isQueueError } from "../../../src/core/error.ts";
import type { BrokerEvent } from "../../../src/core/capabilities/wake.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, drain, openQueue, textOf, textsOf, withMonotonicClock } from "./queue.ts";

const states = ["ready", "delayed", "leased", "dead", "once", "pending", "damaged", "tmp", "wake"] as const;

/** Whether an error says that something below a directory is not there. */
function isMissing(error: unknown, dir: string): boolean {
  return isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === "ENOENT" &&
    String(error.fields.path).startsWith(dir) && error.message.includes(String(error.fields.path));
}

for (const state of ["", ...states]) {
  const what = state === "" ? "a directory that was removed" : `a directory without its folder "${state}"`;
  test(`${what} is a queue again once it is opened again, for its old users too`, async () => {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    await withMonotonicClock(async (pass) => {
      await using old = await openQueue(dir);
      await using distant = await openQueue(dir);
      await old.publishMany(["held", "waiting"].map(bytes));
      await old.publishAt(bytes("later"), new Date(Date.now() + 3_600_000));
      await old.reject((await old.receive(1))[0]!.lease.receipt);
      await old.receive(1);
      fs.rmSync(state === "" ? dir : `${dir}/${state}`, { recursive: true });
      pass(20_000);
      await using again = await openQueue(dir);
      for (const jobs of [again, old, distant]) {
        await jobs.publish(bytes("new"));
        await jobs.publishMany([bytes("new"), { payload: bytes("new"), at: new Date(0) }]);
        assert.equal((await jobs.publishOnce(`key ${Math.random()}`, bytes("new"), 1_000)).published, true);
        const [first] = await jobs.receive(1);
        await jobs.reject(first!.lease.receipt);
        await jobs.replayDeadLetter(first!.message.id);
        await jobs.nackAfter((await jobs.receive(1))[0]!.lease.receipt, undefined, 0);
        pass(20_000);
        assert.equal((await drain(jobs)).filter((text) => text === "new").length, 4);
      }
    });
  });
}

test("what is left beside a folder that was removed is found again", async () => {
  for (const state of states) {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    const clock = new ManualClock();
    await using old = await openQueue(dir, { clock });
    await old.publishMany(["dead", "held", "waiting"].map(bytes));
    await old.publishAt(bytes("later"), new Date(clock.now() + 1_000));
    await old.reject((await old.receive(1))[0]!.lease.receipt);
    await old.receive(1);
    fs.rmSync(`${dir}/${state}`, { recursive: true });
    clock.set(clock.now() + 100_000);
    await using again = await openQueue(dir, { clock });
    const letters = (await again.deadLetters({ max: 5 })).map(({ message }) => textOf(message.payload));
    const gone = { ready: "waiting", delayed: "later", leased: "held", dead: "dead" }[state as string];
    const there = ["dead", "held", "later", "waiting"].filter((text) => text !== gone);
    assert.deepEqual([...await drain(again), ...letters].sort(), there, state);
  }
});

test("a consumer ends with the path when its directory is removed, while it works and while it waits", async () => {
  for (const busy of [true, false]) {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    const clock = new ManualClock();
    await using jobs = await openQueue(dir, { clock });
    if (busy) await jobs.publishMany(["one", "two"].map(bytes));
    const events: ConsumeEvent[] = [];
    let waits = false;
    const receive = jobs.receive.bind(jobs);
    jobs.receive = async (...args) => {
      const found = await receive(...args);
      waits = true;
      return found;
    };
    const consuming = consume(jobs, {
      handler: () => fs.rmSync(dir, { recursive: true, force: true }),
      handlerIsIdempotent: true,
      clock,
      onEvent: (event) => events.push(event),
    });
    const ended = consuming.then(() => undefined, (error) => error);
    await clock.until(() => waits);
    if (!busy) fs.rmSync(dir, { recursive: true });
    await clock.advance(10_000);
    const failure = await ended;
    assert.ok(isMissing(failure, dir), String(failure));
    const [failed] = events.filter(({ kind }) => kind === "storageFailure");
    assert.ok(failed?.kind === "storageFailure" && failed.retryIn === undefined);
    assert.equal(events.at(-1)!.kind, "stopped");
  }
});

test("a watch whose folder is removed says so, and does not leave its consumer to a slow poll", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  await using jobs = await newFile({ dir, policy: { visibilityTimeout: 30_000, maxDeliveries: 3 } });
  const heard: BrokerEvent[] = [];
  let tell = () => {};
  const told = new Promise<void>((resolve) => tell = resolve);
  await using _watch = jobs.watch({
    onEvent(event) {
      heard.push(event);
      tell();
    },
  });
  // It hears what another process does.
  await using other = await openQueue(dir);
  const { signal } = jobs.wake();
  const woken = new Promise((resolve) => signal.addEventListener("abort", resolve));
  await other.publish(bytes("x"));
  await woken;
  fs.rmSync(`${dir}/wake`, { recursive: true });
  await told;
  assert.deepEqual(heard.map(({ kind }) => kind), ["watchFailed"]);
  await jobs.publish(bytes("y"));
  assert.deepEqual(textsOf(await jobs.receive(5)).sort(), ["x", "y"]);
});
