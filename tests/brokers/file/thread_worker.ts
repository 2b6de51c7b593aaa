/**
 * A worker thread that drains a queue directory: it gets the path, and posts the ids.
 */

import { parentPort } from "node:worker_threads";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { drainIds } from "./drain_ids.ts";

parentPort!.once("message", async (dir: string) => {
  await using jobs = await newFile({ dir, policy: { visibilityTimeout: 60_000, maxDeliveries: 5 } });
  parentPort!.postMessage(await drainIds(jobs, 7));
});
parentPort!.postMessage("ready");
