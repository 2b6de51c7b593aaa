/**
 * Runs one benchmark in this runtime and prints its figures as JSON.
 *
 * @module
 */

import { benchFairness } from "./fairness.ts";
import { benchFile } from "./file.ts";
import { benchMemory } from "./memory.ts";
import { benchScale } from "./scale.ts";
import { benchStalls } from "./stalls.ts";
import { benchWake } from "./wake.ts";

const benchmarks: Record<string, typeof benchFile> = {
  file: benchFile,
  memory: benchMemory,
  wake: benchWake,
  fairness: benchFairness,
  stalls: benchStalls,
  scale: benchScale,
};
console.log(JSON.stringify(await benchmarks[process.argv[2] ?? ""]!()));
