/**
 * Real processes on one directory, some of them killed.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { consume } from "../../../src/consume/consume.ts";
import { deliveries } from "../../../src/consume/deliveries.ts";
import { openAsProcess } from "../../support/file_processes.ts";
import { startProgram } from "../../support/children.ts";
import { findRuntimes, type Runtime } from "../../support/runtimes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf } from "./on_disk.ts";
import { bytes, textOf } from "./queue.ts";

const program = fileURLToPath(new URL("./child.ts", import.meta.url));
const policy = { visibilityTimeout: 60_000, maxDeliveries: 5 };

const startChild = (args: readonly string[], runtime?: Runtime) => startProgram(program, args, runtime);

test("what a killed process held is delivered again after its lease, counted, and nothing else has changed", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await newFile({ dir, policy });
  const published = await jobs.publishMany(["one", "two", "three"].map(bytes));
  await jobs.publishAt(bytes("later"), new Date(Date.now() + 3_600_000));
  const child = await startChild(["hold", dir, "1500"]);
  const held = await child.start() as [string, number][];
  await child.kill();
  assert.deepEqual(held.map(([id]) => id), published.map(({ id }) => id));
  assert.equal(entriesOf(dir, "leased").length, 3, "the dead hold their leases");
  const seen: string[] = [];
  for await (const { message, lease, deliveries: count, lastFailure } of deliveries(jobs)) {
    assert.ok(Date.now() >= held[seen.length]![1], "not before the lease has ended");
    assert.equal(count, 2);
    assert.deepEqual(lastFailure, { reason: "LEASE_EXPIRED", code: 0 });
    assert.deepEqual(message, published[seen.length]);
    await jobs.ack(lease.receipt);
    if (seen.push(textOf(message.payload)) === 3) break;
  }
  assert.deepEqual(seen, ["one", "two", "three"]);
  const { queued, leased, dead } = await jobs.stats();
  assert.deepEqual({ queued, leased, dead }, { queued: 1, leased: 0, dead: 0 });
});

test("eight processes, of several runtimes where there are, drain one directory with no loss and no duplicate", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  const runtimes = findRuntimes();
  await using jobs = await newFile({ dir, policy });
  const messages = await jobs.publishMany(Array.from({ length: 4_000 }, (_, index) => ({
    payload: bytes(`message ${index}`),
    priority: (index % 5 - 2) as -2 | -1 | 0 | 1 | 2,
  })));
  const children = await Promise.all(Array.from({ length: 8 }, (_, index) => {
    return startChild(["drain", dir], runtimes[index % runtimes.length]);
  }));
  const drained = await Promise.all(children.map((child) => child.start() as Promise<string[]>));
  await Promise.all(children.map((child) => child.end()));
  const ids = drained.flat();
  assert.equal(ids.length, 4_000);
  assert.deepEqual(ids.sort(), messages.map(({ id }) => id));
  const { queued, leased, dead } = await jobs.stats();
  assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
});

test("a publication of another process wakes an idle consumer that polls once an hour", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await newFile({ dir, policy });
  const child = await startChild(["publish", dir, "from afar"]);
  const stop = new AbortController();
  let idle: () => void = () => {};
  const waiting = new Promise<void>((resolve) => idle = resolve);
  const received: string[] = [];
  // Its first receive finds nothing: from then on only a wake can help.
  const receive = jobs.receive.bind(jobs);
  jobs.receive = async (max, options) => {
    const found = await receive(max, options);
    idle();
    return found;
  };
  const consuming = consume(jobs, {
    handler({ message }) {
      received.push(textOf(message.payload));
      stop.abort();
    },
    handlerIsIdempotent: true,
    pollInterval: 3_600_000,
    signal: stop.signal,
  });
  await waiting;
  await child.start();
  await consuming;
  await child.end();
  assert.deepEqual(received, ["from afar"]);
});

test("events of another process reach a wake while a watch is held, and not otherwise", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using deaf = await openAsProcess({ dir, policy });
  await using released = await openAsProcess({ dir, policy });
  await using watching = await openAsProcess({ dir, policy });
  const first = released.watch();
  const second = released.watch();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
  await using _watch = watching.watch();
  const children = await Promise.all(["one", "two"].map((text) => startChild(["publish", dir, text])));
  const signals = [deaf, released].map((jobs) => jobs.wake().signal);
  for (const child of children) {
    const { signal } = watching.wake();
    const woken = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await child.start();
    await woken;
    await child.end();
  }
  assert.deepEqual(signals.map(({ aborted }) => aborted), [false, false]);
  assert.equal((await deaf.receive(5)).length, 2, "a look finds it");
});
