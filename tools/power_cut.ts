/**
 * Cuts the power of real file systems under a busy queue: `deno task power-cut [seconds] [seed]`, by default 20 seconds
 * for each of ext4, xfs and btrfs, from a seed of today. Needs root, loop devices and the tools that make the file systems;
 * with `--where-possible` it says what is missing and counts nothing.
 *
 * In the end a broker that flushes nothing is put through the same, and must be caught.
 *
 * @module
 */

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { checkQueue } from "../tests/power_cut/check.ts";
import {
  afterPowerCut,
  type FileSystem,
  fileSystems,
  findObstacle,
  makeDisk,
  makeHost,
} from "../tests/power_cut/disks.ts";
import { Random } from "../tests/simulation/random.ts";
import { readLedger } from "../tests/torture/ledger.ts";

const workload = fileURLToPath(new URL("../tests/power_cut/workload.ts", import.meta.url));

/** How many of a check's problems are shown. */
const shown = 5;

const rest = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));

/** What was kept of an instant. */
interface Cut {
  readonly copy: string;
  /** How many bytes of the ledger were there before it, and how many after. */
  readonly before: number;
  readonly after: number;
}

/** Cuts the power of one kind of disk at random while a process works on it; how many cuts broke the queue. */
async function cutPowerOf(kind: FileSystem, host: string, seconds: number, seed: number, flushes: boolean) {
  const random = new Random(seed);
  const disk = makeDisk(host, kind);
  const ledger = `${path.dirname(host)}/ledger.${kind}.${flushes}`;
  const args = [workload, `${disk.path}/queue`, ledger, String(seed), flushes ? "flushed" : "unflushed"];
  const child = spawn(process.execPath, ["run", "-A", "--no-check", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise<number | null>((resolve) => void child.on("close", resolve));
  await new Promise((resolve) => child.stdout.once("data", resolve));
  const cuts: Cut[] = [];
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    await rest(100 + random.below(900));
    if (child.exitCode !== null) throw new Error(`The process on ${kind} ended by itself`);
    const before = fs.statSync(ledger).size;
    const copy = disk.cutPower();
    cuts.push({ copy, before, after: fs.statSync(ledger).size });
  }
  child.kill("SIGKILL");
  await ended;
  disk.remove();
  const noted = fs.readFileSync(ledger);
  let broken = 0;
  let promised = 0;
  let found = 0;
  for (const [index, { copy, before, after }] of cuts.entries()) {
    const until = (length: number) => {
      fs.writeFileSync(`${ledger}.part`, noted.subarray(0, length));
      return readLedger(`${ledger}.part`);
    };
    const verdict = await afterPowerCut(host, kind, copy, (mounted) => {
      return checkQueue(`${mounted}/queue`, until(before), until(after));
    });
    promised += verdict.promised;
    found += verdict.found;
    if (verdict.problems.length > 0) broken++;
    if (verdict.problems.length === 0 || !flushes) continue;
    console.log(`  cut ${index} of ${kind}:`);
    for (const problem of verdict.problems.slice(0, shown)) console.log(`    ${problem}`);
    if (verdict.problems.length > shown) console.log(`    and ${verdict.problems.length - shown} more`);
  }
  return { cuts: cuts.length, broken, promised, found };
}

async function cutAll(root: string, seconds: number, seed: number): Promise<number> {
  const host = makeHost(root);
  let failed = 0;
  for (const kind of fileSystems) {
    const { cuts, broken, promised, found } = await cutPowerOf(kind, host, seconds, seed, true);
    const passed = broken === 0 && promised > 0;
    if (!passed) failed++;
    console.log(
      `${passed ? "ok" : "FAILED"} - ${kind}: ${cuts} power cuts, ${broken} broke the queue; ` +
        `${promised} messages promised, ${found} found`,
    );
  }
  const { cuts, broken } = await cutPowerOf("ext4", host, seconds, seed, false);
  if (broken === 0) failed++;
  console.log(
    `${broken > 0 ? "ok" : "FAILED"} - a broker that flushes nothing is caught: by ${broken} of ${cuts} cuts`,
  );
  console.log(`${fileSystems.length + 1 - failed} passed, ${failed} failed`);
  return failed;
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { "where-possible": { type: "boolean" }, "mounting-in": { type: "string" } },
  });
  const [seconds = 20, seed = Math.floor(Date.now() / 86_400_000)] = positionals.map(Number);
  if (!(seconds > 0 && Number.isSafeInteger(seed))) {
    console.error("Cannot cut the power: expected a number of seconds and a whole number as seed");
    process.exit(2);
  }
  const given = values["mounting-in"];
  if (given !== undefined) process.exit(await cutAll(given, seconds, seed) > 0 ? 1 : 0);
  const obstacle = findObstacle();
  if (obstacle !== undefined) {
    console.error(`Cannot cut the power of a file system: ${obstacle}`);
    if (!values["where-possible"]) process.exit(2);
    console.log("0 passed, 0 failed");
    process.exit(0);
  }
  console.log(`${seconds} seconds for each file system, from seed ${seed}`);
  const root = fs.mkdtempSync(path.join(os.tmpdir(), "queue-power-cut-"));
  const script = ["run", "-A", "--no-check", fileURLToPath(import.meta.url), "--mounting-in", root];
  // Mounts of its own, which are gone with it.
  const args = ["--mount", process.execPath, ...script, `${seconds}`, `${seed}`];
  const { status } = spawnSync("unshare", args, { stdio: "inherit" });
  fs.rmSync(root, { recursive: true });
  process.exit(status ?? 1);
}
