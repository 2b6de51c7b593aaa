/**
 * Cuts the power of many random programs, in as many processes as there are cores: `deno task simulate [programs] [seed]`,
 * by default 500 programs from a seed of today. A failing program is named by its seed, and `deno task simulate 1 SEED`
 * runs it again.
 *
 * @module
 */

import { spawn } from "node:child_process";
import os from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runProgram } from "../tests/simulation/program.ts";

/** How many verbs a program has; every step that its disk makes is a place where the power may go. */
const verbs = 30;

/** Runs programs one after another in this process; how many broke the queue. */
async function runHere(programs: number, seed: number): Promise<number> {
  let failed = 0;
  for (let offset = 0; offset < programs; offset++) {
    try {
      await runProgram({ seed: seed + offset, verbs, cuts: 1 });
    } catch (error) {
      failed++;
      console.error((error as Error).message);
    }
  }
  return failed;
}

function runBeside(programs: number, seed: number): Promise<number> {
  const script = fileURLToPath(import.meta.url);
  const args = ["run", "-A", "--no-check", script, "--here", String(programs), String(seed)];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
    child.on("error", reject);
    child.on("close", (code) => code === 0 ? resolve(Number(output)) : resolve(programs));
  });
}

if (import.meta.main) {
  const here = process.argv[2] === "--here";
  const [programs, seed] = process.argv.slice(here ? 3 : 2).map(Number);
  if (here) {
    console.log(await runHere(programs!, seed!));
    process.exit(0);
  }
  const count = programs ?? 500;
  const first = seed ?? Math.floor(Date.now() / 86_400_000) * 100_000;
  if (!(Number.isSafeInteger(count) && count > 0 && Number.isSafeInteger(first))) {
    console.error("Cannot simulate: expected a number of programs and a seed, both whole");
    process.exit(2);
  }
  console.log(`Programs ${first} to ${first + count - 1}, ${verbs} verbs each, the power cut at every step`);
  const cores = Math.min(os.cpus().length, count);
  const shares = Array.from({ length: cores }, (_, core) => {
    const from = Math.floor(count * core / cores);
    return runBeside(Math.floor(count * (core + 1) / cores) - from, first + from);
  });
  const failed = (await Promise.all(shares)).reduce((sum, share) => sum + share, 0);
  console.log(`${count - failed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
