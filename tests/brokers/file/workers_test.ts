/**
 * Workers of one process share no memory, so on a directory each counts as a process.
 */

import assert from "node:assert/strict";
import { Worker as ThreadWorker } from "node:worker_threads";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes } from "./queue.ts";
import { drainIds } from "./drain_ids.ts";

interface Drainer {
  /** Lets it drain; the ids that it got. */
  start(dir: string): Promise<string[]>;
  stop(): Promise<void>;
}

/** Hands out messages in the order in which they came. */
function inbox(): { put: (message: unknown) => void; next: () => Promise<unknown> } {
  const messages: unknown[] = [];
  const waiting: ((message: unknown) => void)[] = [];
  return {
    put: (message) => waiting.length > 0 ? waiting.shift()!(message) : void messages.push(message),
    next: () => new Promise((resolve) => messages.length > 0 ? resolve(messages.shift()) : waiting.push(resolve)),
  };
}

async function startWebWorker(): Promise<Drainer> {
  const worker = new Worker(new URL("./web_worker.ts", import.meta.url), { type: "module" });
  const { put, next } = inbox();
  worker.onmessage = ({ data }) => put(data);
  worker.onerror = (event) => put(event);
  assert.equal(await next(), "ready");
  return {
    async start(dir) {
      worker.postMessage(dir);
      return await next() as string[];
    },
    stop: async () => await worker.terminate(),
  };
}

async function startThread(): Promise<Drainer> {
  const worker = new ThreadWorker(new URL("./thread_worker.ts", import.meta.url));
  const { put, next } = inbox();
  worker.on("message", put);
  worker.on("error", put);
  assert.equal(await next(), "ready");
  return {
    async start(dir) {
      worker.postMessage(dir);
      return await next() as string[];
    },
    stop: async () => void await worker.terminate(),
  };
}

async function drainWith(startDrainer: () => Promise<Drainer>): Promise<void> {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await newFile({ dir, policy: { visibilityTimeout: 60_000, maxDeliveries: 5 } });
  const messages = await jobs.publishMany(Array.from({ length: 1_500 }, (_, index) => bytes(String(index))));
  const drainers = await Promise.all(Array.from({ length: 3 }, startDrainer));
  try {
    const drained = await Promise.all([drainIds(jobs, 5), ...drainers.map((drainer) => drainer.start(dir))]);
    for (const ids of drained) assert.ok(Array.isArray(ids), String(ids));
    assert.deepEqual(drained.flat().sort(), messages.map(({ id }) => id));
    const { queued, leased, dead } = await jobs.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
  } finally {
    await Promise.all(drainers.map((drainer) => drainer.stop()));
  }
}

if (typeof Worker === "function") {
  test("Web Workers and their page drain one directory with no loss and no duplicate", () => drainWith(startWebWorker));
}

test("worker threads and the main one drain one directory with no loss and no duplicate", () => drainWith(startThread));
