/**
 * Kills producers, consumers and an operator on one queue directory at random, with SIGKILL, and holds what each of them
 * noted against what is left: `deno task torture [seconds] [seed]`, by default 120 seconds from a seed of today. The seed
 * decides what is done and drawn, not how the processes interleave. A run that fails leaves its directory.
 *
 * @module
 */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { torture } from "../tests/torture/supervisor.ts";
import { findBun, findNode } from "./runtimes.ts";

/** How many of a check's problems are shown. */
const shown = 10;

if (import.meta.main) {
  const [seconds = 120, seed = Math.floor(Date.now() / 86_400_000)] = process.argv.slice(2).map(Number);
  if (!(seconds > 0 && Number.isSafeInteger(seed))) {
    console.error("Cannot torture: expected a number of seconds and a whole number as seed");
    process.exit(2);
  }
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "queue-torture-"));
  console.log(`${seconds} seconds of torture from seed ${seed} in ${dir}`);
  const { verdicts, runtimes, counts } = await torture({ dir, duration: seconds * 1_000, seed });
  console.log(`Processes of ${runtimes.join(", ")}`);
  for (const [name, finding] of [["Bun", findBun(process.execPath)], ["Node", findNode()]] as const) {
    if (!finding.found) console.log(`${name} was left out: ${finding.why}`);
  }
  for (const [name, count] of Object.entries(counts).sort()) console.log(`  ${String(count).padStart(8)} ${name}`);
  let failed = 0;
  for (const { name, problems } of verdicts) {
    console.log(`${problems.length === 0 ? "ok" : "FAILED"} - ${name}`);
    for (const problem of problems.slice(0, shown)) console.log(`    ${problem}`);
    if (problems.length > shown) console.log(`    and ${problems.length - shown} more`);
    if (problems.length > 0) failed++;
  }
  if (failed === 0) fs.rmSync(dir, { recursive: true });
  else console.log(`The queue and its ledgers are left in ${dir}`);
  console.log(`${verdicts.length - failed} passed, ${failed} failed`);
  process.exit(failed > 0 ? 1 : 0);
}
