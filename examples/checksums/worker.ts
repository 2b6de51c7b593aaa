/**
 * A worker process: hashes files until its input ends.
 *
 * Arguments: the queues' directory, the folder, and "doomed" for the worker that is going to be killed.
 *
 * @module
 */

import process from "node:process";
import { work } from "./queue.ts";
import { type Sum, sumFile } from "./sum.ts";

const [root = "", folder = "", role] = process.argv.slice(2);
const stop = new AbortController();
// The parent asks by closing the pipe; if the parent dies, the system closes it.
process.stdin.on("end", () => stop.abort()).resume();

let first = role === "doomed";

/** The doomed worker sits on its first file, so that the kill surely takes a lease down with it. */
async function sum(name: Uint8Array, signal: AbortSignal): Promise<Sum> {
  if (first) {
    first = false;
    console.log(JSON.stringify({ kind: "holding" }));
    await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
  return await sumFile(folder, name, signal);
}

await work(root, sum, stop.signal);
process.exit(0);
