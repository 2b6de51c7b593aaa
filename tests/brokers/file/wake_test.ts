import assert from "node:assert/strict";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import type { BrokerEvent } from "../../../src/core/capabilities/wake.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, openQueue } from "./queue.ts";

/** File operations with a watch that a test works by hand. */
function handWatched(): {
  operations: FileOperations;
  open: Set<string>;
  opened: () => number;
  change(): void;
  fail(error: unknown): void;
} {
  const open = new Set<string>();
  let opened = 0;
  let change = () => {};
  let fail = (_error: unknown) => {};
  const operations: FileOperations = {
    ...unflushedOperations(),
    watch(path, onChange, onFailure) {
      opened++;
      open.add(path);
      change = onChange;
      fail = onFailure;
      return () => void open.delete(path);
    },
  };
  return { operations, open, opened: () => opened, change: () => change(), fail: (error) => fail(error) };
}

test("however many hold a watch, there is one, opened for the first and closed with the last", async () => {
  using directory = temporaryDirectory();
  const { operations, open, opened, change } = handWatched();
  await using one = await openQueue(directory.path, { operations });
  await using two = await openQueue(directory.path, { operations });
  assert.equal(opened(), 0, "opening a broker watches nothing");
  const controller = new AbortController();
  const watches = [one.watch(), one.watch({ signal: controller.signal }), two.watch()];
  assert.equal(opened(), 1);
  const { signal } = two.wake();
  change();
  assert.ok(signal.aborted);
  await watches[0]![Symbol.asyncDispose]();
  await watches[0]![Symbol.asyncDispose]();
  controller.abort();
  assert.equal(open.size, 1, "one is left, however often the others end");
  await watches[2]![Symbol.asyncDispose]();
  assert.equal(open.size, 0);
  await using again = await openQueue(directory.path, { operations });
  again.watch();
  assert.equal(opened(), 2);
  await again.close();
  assert.equal(open.size, 0, "closing the broker ends its watches");
  const { signal: aborted } = new AbortController();
  one.watch({ signal: AbortSignal.abort() });
  assert.equal(open.size, 0);
  assert.equal(aborted.aborted, false);
});

test("a watch that fails says so to every listener, once, and the broker goes on without", async () => {
  using directory = temporaryDirectory();
  const { operations, open, fail } = handWatched();
  const heard: BrokerEvent[] = [];
  const note = (event: BrokerEvent) => void heard.push(event);
  await using jobs = await openQueue(directory.path, { operations, onEvent: note });
  await using _deaf = jobs.watch({
    onEvent() {
      throw new Error("a listener's own failure");
    },
  });
  await using _watch = jobs.watch({ onEvent: note });
  const error = Object.assign(new Error("limit"), { code: "ENOSPC" });
  fail(error);
  const why =
    "Cannot watch for events of other processes, so consumers poll: this user's inotify watches are used up, " +
    "raise the system setting fs.inotify.max_user_watches";
  assert.deepEqual(heard, Array(2).fill({ kind: "watchFailed", error, why }));
  const late: BrokerEvent[] = [];
  await using _late = jobs.watch({ onEvent: (event) => late.push(event) });
  assert.deepEqual(late, [{ kind: "watchFailed", error, why }], "whoever comes later is told the same");
  assert.equal(open.size, 0);
  await jobs.publish(bytes("x"));
  assert.equal((await jobs.receive(1)).length, 1);
});

test("a watch that cannot be opened fails in the same way, and is tried again for a later holder", async () => {
  using directory = temporaryDirectory();
  const inner = handWatched();
  let refusing = true;
  const refusal = Object.assign(new Error("limit"), { code: "EMFILE" });
  const operations: FileOperations = {
    ...inner.operations,
    watch(...args) {
      if (refusing) throw refusal;
      return inner.operations.watch(...args);
    },
  };
  const heard: BrokerEvent[] = [];
  await using jobs = await openQueue(directory.path, { operations });
  const watch = jobs.watch({ onEvent: (event) => heard.push(event) });
  assert.deepEqual(heard.map((event) => "error" in event && event.error), [refusal]);
  assert.match((heard[0] as { why: string }).why, /fs\.inotify\.max_user_instances.*ulimit -n/);
  await watch[Symbol.asyncDispose]();
  refusing = false;
  await using _watch = jobs.watch({ onEvent: (event) => heard.push(event) });
  assert.equal(heard.length, 1);
  assert.equal(inner.open.size, 1);
});

test("wake does no I/O, and a receive that finds nothing wakes nobody", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  let calls = 0;
  const operations = {} as Record<string, unknown>;
  for (const [name, call] of Object.entries(unflushedOperations())) {
    operations[name] = (...args: unknown[]) => {
      calls++;
      return (call as (...args: unknown[]) => unknown)(...args);
    };
  }
  await using jobs = await openQueue(directory.path, { clock, operations: operations as unknown as FileOperations });
  await jobs.publishAt(bytes("later"), new Date(clock.now() + 5_000));
  const before = calls;
  assert.deepEqual(await jobs.receive(1), []);
  assert.ok(calls > before);
  const counted = calls;
  const { signal, scheduled } = jobs.wake();
  assert.ok(scheduled);
  assert.equal(jobs.wake().in, 5_000);
  assert.equal(calls, counted);
  for (let round = 0; round < 3; round++) assert.deepEqual(await jobs.receive(1), []);
  assert.equal(signal.aborted, false);
});

test("the wake of a process that has just opened a queue covers what others left", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using producer = await openQueue(directory.path, { clock });
  await using consumer = await openQueue(directory.path, { clock });
  assert.equal(consumer.wake().scheduled, false);
  await producer.publishAt(bytes("later"), new Date(clock.now() + 86_400_000));
  assert.deepEqual(await consumer.receive(1), []);
  assert.ok(consumer.wake().scheduled);
  // It may come early, since a folder's name tells only where its range begins, and then it learns the instant.
  let looks = 0;
  for (let wait = consumer.wake().in; wait > 0; wait = consumer.wake().in, looks++) {
    clock.set(clock.now() + wait);
    if ((await consumer.receive(1)).length === 1) break;
  }
  assert.equal(clock.now(), Date.UTC(2026, 0, 2), "not one ms late");
  assert.ok(looks <= 1, `${looks} looks in vain`);
});
