/**
 * Opens a queue directory and publishes a message; started as another user by the trust test. Prints how it ended.
 */

import process from "node:process";
import { newFile } from "../../../src/brokers/file/mod.ts";

try {
  await using jobs = await newFile({ dir: process.argv[2]!, policy: { visibilityTimeout: 1_000, maxDeliveries: 1 } });
  await jobs.publish(new Uint8Array(1));
  console.log("opened");
} catch (error) {
  const { reason, fields } = error as { reason: string; fields: { code?: string } };
  console.log(reason, fields?.code);
}
