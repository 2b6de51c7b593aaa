/**
 * A Web Worker that drains a queue directory: it gets the path, and posts the ids.
 */

import { newFile } from "../../../src/brokers/file/mod.ts";
import { drainIds } from "./drain_ids.ts";

interface WorkerScope {
  onmessage: (event: { data: string }) => void;
  postMessage(message: unknown): void;
}

const scope = globalThis as unknown as WorkerScope;

scope.onmessage = async ({ data: dir }) => {
  await using jobs = await newFile({ dir, policy: { visibilityTimeout: 60_000, maxDeliveries: 5 } });
  scope.postMessage(await drainIds(jobs, 7));
};
scope.postMessage("ready");
