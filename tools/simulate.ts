/**
 * Crashes many random programs at every step, in as many processes as there are cores:
 *
 * - `deno task simulate [programs] [seed]`: by default 2 000 programs from a seed of today;
 * - `deno task simulate --hours 1 [seed]`: as many as that time allows, the hours may be a fraction.
 *
 * A program that fails is named with the command that runs it again. The last line counts programs.
 *
 * @module
 */

import { spawn } from "node:child_process";
import os from "node:os";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { runProgram } from "../tests/simulation/program.ts";

/** How many verbs a program has; every step that its disk makes is one before which it crashes. */
const verbs = 30;

/** Which programs one process runs: every `stride`th from the first on. */
interface Share {
  readonly first: number;
  readonly stride: number;
  readonly programs: number;
  /** When it starts no more, in ms since 1970. */
  readonly until: number;
}

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

async function runShare({ first, stride, programs, until }: Share): Promise<Counts> {
  let passed = 0;
  let failed = 0;
  for (let index = 0; index < programs && Date.now() < until; index++) {
    const seed = first + index * stride;
    // What is held weakly is let go in a turn of the event loop, which a program never needs.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      await runProgram({ seed, verbs, crashes: 1 });
      passed++;
    } catch (error) {
      failed++;
      console.error(`${(error as Error).message}\n  again: deno task simulate 1 ${seed}`);
    }
  }
  return { passed, failed };
}

function runBeside(share: Share): Promise<Counts> {
  const script = fileURLToPath(import.meta.url);
  const args = ["run", "-A", "--no-check", script, "--share", JSON.stringify(share)];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => output += text);
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) return resolve(JSON.parse(output) as Counts);
      console.error(`The process for every ${share.stride}th program from ${share.first} on ended with code ${code}`);
      resolve({ passed: 0, failed: 1 });
    });
  });
}

/** What the arguments ask for; `undefined` when they cannot be understood. */
function readArguments(args: readonly string[]): { programs: number; first: number; hours: number } | undefined {
  const timed = args[0] === "--hours";
  const hours = timed ? Number(args[1]) : Infinity;
  const [programs, seed] = timed ? [Infinity, args[2]] : [Number(args[0] ?? 2_000), args[1]];
  const first = Number(seed ?? Math.floor(Date.now() / 86_400_000) * 100_000);
  const known = hours > 0 && (timed || (Number.isSafeInteger(programs) && programs > 0)) && Number.isSafeInteger(first);
  return known ? { programs, first, hours } : undefined;
}

if (import.meta.main) {
  if (process.argv[2] === "--share") {
    const share = JSON.parse(process.argv[3]!) as Share;
    console.log(JSON.stringify(await runShare(share)));
    process.exit(0);
  }
  const asked = readArguments(process.argv.slice(2));
  if (asked === undefined) {
    console.error("Cannot simulate: expected [programs] [seed], both whole, or --hours and a number above 0 [seed]");
    process.exit(2);
  }
  const { programs, first, hours } = asked;
  const what = programs === Infinity ? `Programs for ${hours} h` : `${programs} programs`;
  console.log(`${what} from seed ${first}, ${verbs} verbs each, a crash before every step`);
  const until = hours === Infinity ? Number.MAX_SAFE_INTEGER : Date.now() + hours * 3_600_000;
  const stride = Math.min(os.cpus().length, programs);
  const most = Number.MAX_SAFE_INTEGER;
  const shares = Array.from({ length: stride }, (_, core) => ({
    first: first + core,
    stride,
    programs: programs === Infinity ? most : Math.ceil((programs - core) / stride),
    until,
  }));
  let passed = 0;
  let failed = 0;
  for (const counts of await Promise.all(shares.map(runBeside))) {
    passed += counts.passed;
    failed += counts.failed;
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 ? 1 : 0;
}
