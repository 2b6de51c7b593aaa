/**
 * The test of the test: a broker that leaves out one of its flushes must be caught by the simulation.
 */

import assert from "node:assert/strict";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { test } from "../support/test.ts";
import { runProgram } from "./program.ts";

const nonce = "[0-9A-Z]{10}";

/** What is not flushed, by the path it is opened under. */
const flushes: Readonly<Record<string, RegExp>> = {
  "a segment or lone message": new RegExp(`^/queue/tmp/${nonce}$`),
  "a ready bucket": /^\/queue\/ready\/[^/]+$/,
  "the folder of ready buckets": /^\/queue\/ready$/,
  "a delayed bucket": /^\/queue\/delayed\/[^/]+$/,
  "the folder of delayed buckets": /^\/queue\/delayed$/,
  "the folder of lease buckets": /^\/queue\/leased$/,
  "a folder of dead letters": /^\/queue\/dead\/[^/]+$/,
  "the folder of folders of dead letters": /^\/queue\/dead$/,
  "a pending message": new RegExp(`^/queue/pending/${nonce}$`),
  "the folder of pending messages": /^\/queue\/pending$/,
  "the root": /^\/queue$/,
};

/** Leaves out the flushes of some paths. */
function withoutFlush(pattern: RegExp): (operations: FileOperations) => FileOperations {
  return (operations) => {
    const paths = new Map<number, string>();
    const opened = (path: string, descriptor: number) => {
      paths.set(descriptor, path);
      return descriptor;
    };
    return {
      ...operations,
      open: (path) => opened(path, operations.open(path)),
      create: (path) => opened(path, operations.create(path)),
      flush: (descriptor) =>
        pattern.test(paths.get(descriptor) ?? "") ? Promise.resolve() : operations.flush(descriptor),
    };
  };
}

for (const [what, pattern] of Object.entries(flushes)) {
  test(`the simulation notices that the flush of ${what} is left out`, async () => {
    for (let seed = 1; seed <= 300; seed++) {
      try {
        await runProgram({ seed, verbs: 30, cuts: 0.1, sabotage: withoutFlush(pattern) });
      } catch (error) {
        assert.match((error as Error).message, new RegExp(`^Seed ${seed} `));
        return;
      }
    }
    assert.fail("300 programs passed without it");
  });
}
