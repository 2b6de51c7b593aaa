/**
 * The test of the test: a broker that leaves out one of its flushes, or swaps two of its steps whose order carries a
 * promise, must be caught by the simulation.
 */

import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { runProgram } from "./program.ts";
import { leaveOutFlush, type Sabotage } from "./sabotage.ts";

/** Every place that the broker flushes. */
const flushed: readonly string[] = [
  "temporary file",
  "ready bucket",
  "ready",
  "delayed bucket",
  "delayed",
  "leased",
  "dead folder",
  "dead",
  "pending file",
  "pending",
  "once folder",
  "once",
  "root",
];

/** Runs programs until one notices; the number of its seed. */
async function findCatch(sabotage: Sabotage, programs: number): Promise<number | undefined> {
  for (let seed = 1; seed <= programs; seed++) {
    try {
      await runProgram({ seed, verbs: 30, crashes: 0.02, sabotage });
    } catch (error) {
      assert.match((error as Error).message, new RegExp(`^Seed ${seed} `));
      return seed;
    }
  }
  return undefined;
}

for (const place of flushed) {
  test(`the simulation notices when the flush of ${place} is left out`, async () => {
    assert.ok(await findCatch(leaveOutFlush(place), 300), "300 programs passed without it");
  });
}
