/**
 * Runs every case over memory and file without any test runner, on whatever runtime starts it: how Node 22 is covered,
 * which knows none of the `using` declarations of the other tests. Ends with `N passed, N failed`.
 *
 * @module
 */

import process from "node:process";
import { newMemory } from "../../src/brokers/memory/mod.ts";
import { conformanceCases } from "../../src/testing/mod.ts";
import { openFile } from "./file_store.ts";

const cases = [
  ...conformanceCases({ open: (setup) => ({ broker: newMemory(setup) }), lacks: ["reopen"] }),
  ...conformanceCases({ open: openFile(), lacks: ["AckPublisher"] }),
];
let failed = 0;
for (const { name, run } of cases) {
  try {
    await run();
  } catch (error) {
    failed++;
    console.error(`${name}:`, error);
  }
}
console.log(`${cases.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
