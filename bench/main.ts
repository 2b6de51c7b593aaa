/**
 * Runs every benchmark on Deno and on Bun and prints one table a runtime; `--json FILE` says where the figures go, by
 * default `bench/results/<date>.json`. Names given as arguments (`memory`, `file`, `wake`, `fairness`, `stalls`, `scale`) run those alone.
 *
 * @module
 */

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { findBun } from "../tools/runtimes.ts";
import type { Figure } from "./figures.ts";

const here = path.dirname(fileURLToPath(import.meta.url));
const benchmarks = ["memory", "file", "wake", "fairness", "stalls", "scale"];

interface Runtime {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** The runtimes at hand: Deno, which runs this, and Bun from the path or from the installed package. */
function findRuntimes(): Runtime[] {
  const runtimes: Runtime[] = [{ name: "deno", command: process.execPath, args: ["run", "-A", "--no-check"] }];
  const bun = findBun(process.execPath);
  if (bun.found) runtimes.push({ name: "bun", command: bun.path, args: [] });
  else console.log(`Bun is left out: ${bun.why}`);
  return runtimes;
}

function run(runtime: Runtime, benchmark: string): Promise<Figure[]> {
  const script = path.join(here, "run.ts");
  const child = spawn(runtime.command, [...runtime.args, script, benchmark], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout!.on("data", (chunk) => output += chunk);
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) resolve(JSON.parse(output) as Figure[]);
      else reject(new Error(`Cannot benchmark "${benchmark}" on ${runtime.name}: it ended with code ${code}`));
    });
  });
}

function printTable(title: string, figures: readonly Figure[]): void {
  const rows = [
    ["figure", "ours", "beside it", "ratio", "at least", ""],
    ...figures.map(({ name, ours, raw, ratio, target, met }) => [name, ours, raw, ratio, target, met ? "" : "MISSED"]),
  ];
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  console.log(`\n${title}\n`);
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("  ").trimEnd());
}

function commit(): string {
  const { stdout, status } = spawnSync("git", ["rev-parse", "--short", "HEAD"], { cwd: here, encoding: "utf8" });
  return status === 0 ? stdout.trim() : "unknown";
}

const args = process.argv.slice(2);
const jsonAt = args.indexOf("--json");
const target = jsonAt >= 0 ? args[jsonAt + 1] : undefined;
const named = args.filter((_, index) => jsonAt < 0 || (index !== jsonAt && index !== jsonAt + 1));
const unknown = named.find((name) => !benchmarks.includes(name));
if (unknown !== undefined || (jsonAt >= 0 && target === undefined)) {
  console.error(`Cannot run the benchmarks: expected names out of ${benchmarks.join(", ")} and --json FILE`);
  process.exit(2);
}

const machine = `${os.cpus().length} x ${os.cpus()[0]?.model ?? "unknown"}, ${os.type()} ${os.release()}`;
const results: { runtime: string; figures: Figure[] }[] = [];
for (const runtime of findRuntimes()) {
  const figures: Figure[] = [];
  for (const benchmark of named.length > 0 ? named : benchmarks) figures.push(...await run(runtime, benchmark));
  results.push({ runtime: runtime.name, figures });
  printTable(runtime.name, figures);
}

const date = new Date().toISOString();
const file = target ?? path.join(here, "results", `${date.slice(0, 19).replaceAll(":", "")}.json`);
fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
fs.writeFileSync(file, JSON.stringify({ date, machine, commit: commit(), results }, undefined, 2) + "\n");
console.log(`\nWritten to ${path.relative(process.cwd(), file)}; machine: ${machine}`);
