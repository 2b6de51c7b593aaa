/**
 * Runs the tests under Deno, Bun and Node, one set of files for all three, and ends with the sum of their counts.
 *
 * `deno task test [part of a path ...]`. Where a runtime is missing it says so and how to have it; with `CI` set that, and
 * a test that was skipped, is a failure.
 *
 * @module
 */

import { spawn } from "node:child_process";
import process from "node:process";
import { findFiles } from "./files.ts";
import { type Counts, readCounts, type RuntimeName } from "./test_counts.ts";
import { findBun, findNode } from "./runtimes.ts";

interface Run {
  readonly name: RuntimeName;
  readonly binary: string;
  readonly args: readonly string[];
}

/** Lines that say no more than that a test passed; the counts say it again. */
const passingLine = /^(\s*✔|\s*▶|\(pass\)|\S+_test\.ts:$|running \d+ tests? from |.* \.\.\. ok \(\S+\)$)/;

function isQuietLine(line: string): boolean {
  // deno-lint-ignore no-control-regex
  return passingLine.test(line.replace(/\u001b\[[\d;]*m/g, ""));
}

/** Runs one runtime, prints what is not merely a passing test, and counts. */
function execute({ name, binary, args }: Run): Promise<Counts> {
  console.log(`\n== ${name}`);
  return new Promise((resolve) => {
    // An own group of file descriptors and no stdin: a test that reads it would wait for ever on a terminal.
    const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, NO_COLOR: "1" } });
    let output = "";
    const collect = (stream: NodeJS.ReadableStream) => {
      let rest = "";
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => {
        output += text;
        const lines = (rest + text).split("\n");
        rest = lines.pop()!;
        for (const line of lines) if (!isQuietLine(line)) console.log(line);
      });
    };
    collect(child.stdout!);
    collect(child.stderr!);
    child.on("error", (error) => {
      console.log(`${name} could not be started: ${error.message}`);
      resolve({ passed: 0, failed: 1, skipped: 0 });
    });
    child.on("close", (code) => {
      const counts = readCounts(name, output);
      const broken = counts === undefined || (code !== 0 && counts.failed === 0);
      if (broken) console.log(`${name} ended with code ${code} without saying which test failed`);
      resolve(broken ? { ...(counts ?? { passed: 0, skipped: 0 }), failed: 1 } : counts);
    });
  });
}

function planRuns(files: readonly string[]): { runs: Run[]; missing: string[] } {
  const runs: Run[] = [
    { name: "Deno", binary: process.execPath, args: ["test", "-A", "--no-check", "--parallel", ...files] },
  ];
  const missing: string[] = [];
  const bun = findBun(process.execPath);
  if (bun.found) {
    const paths = files.map((file) => `./${file}`);
    runs.push({
      name: "Bun",
      binary: bun.path,
      args: ["test", "--isolate", "--parallel=2", "--timeout=120000", ...paths],
    });
  } else missing.push(`Bun was left out: ${bun.why}`);
  const node = findNode();
  if (node.found) {
    runs.push({ name: "Node", binary: node.path, args: ["--test", "--test-concurrency=2", "--no-warnings", ...files] });
  } else missing.push(`Node was left out: ${node.why}`);
  return { runs, missing };
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const files = findFiles("tests", (path) => path.endsWith("_test.ts") && !path.startsWith("tests/jsr/"))
    .filter((path) => wanted.length === 0 || wanted.some((part) => path.includes(part)));
  if (files.length === 0) {
    console.error(`No test file has ${wanted.map((part) => JSON.stringify(part)).join(" or ")} in its path`);
    process.exit(2);
  }
  const { runs, missing } = planRuns(files);
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const run of runs) {
    const counts = await execute(run);
    total.passed += counts.passed;
    total.failed += counts.failed;
    total.skipped += counts.skipped;
  }
  console.log("");
  for (const line of missing) console.log(line);
  if (total.skipped > 0) console.log(`${total.skipped} skipped`);
  // Nobody reads the log of a run that is green, so what was left out is a failure there.
  if (process.env.CI) total.failed += missing.length + total.skipped;
  console.log(`${total.passed} passed, ${total.failed} failed`);
  process.exit(total.failed > 0 ? 1 : 0);
}
