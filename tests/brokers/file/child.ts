/**
 * A process that works on a queue directory: `hold DIR LEASE`, `drain DIR`, `publish DIR TEXT` or `nack DIR`. It says
 * "ready" on a line of its own, does its work once it is told so on its standard input, and prints what it did as JSON.
 */

import process from "node:process";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { drainIds } from "./drain_ids.ts";

const [verb, dir = "", argument = ""] = process.argv.slice(2);

const visibilityTimeout = verb === "hold" ? Number(argument) : 60_000;
const jobs = await newFile({ dir, policy: { visibilityTimeout, maxDeliveries: 5 } });
const started = new Promise((resolve) => process.stdin.once("data", resolve));
console.log("ready");
await started;

switch (verb) {
  case "hold": {
    const held = await jobs.receive(100);
    console.log(JSON.stringify(held.map(({ message, lease }) => [message.id, lease.expiresAt.getTime()])));
    // Until it is killed; the bound is for a test that died first.
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    break;
  }
  case "drain":
    console.log(JSON.stringify(await drainIds(jobs)));
    break;
  case "publish":
    console.log(JSON.stringify((await jobs.publish(new TextEncoder().encode(argument))).id));
    break;
}
await jobs.close();
process.exit(0);
