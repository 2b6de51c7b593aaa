/**
 * The one gate: formatting, lint, types, documentation, layers, publishing and the tests. `deno task ok [name ...]` runs
 * all of it or the named checks, and ends with the sum of what passed and failed, tests included.
 *
 * @module
 */

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";

const deno = process.execPath;
const tsc = ["run", "-A", "node_modules/typescript/bin/tsc"];

function entryPoints(): string[] {
  const { exports } = JSON.parse(readFileSync("deno.json", "utf8")) as { exports: Record<string, string> };
  return Object.values(exports);
}

/** The checks by name, with the arguments that Deno gets. */
const checks: Readonly<Record<string, () => readonly string[]>> = {
  fmt: () => ["fmt", "--check"],
  lint: () => ["lint"],
  check: () => ["check"],
  "types-node": () => [...tsc, "-p", "tsconfig.json"],
  "types-bundler": () => [...tsc, "-p", "tsconfig.bundler.json"],
  doc: () => ["doc", "--lint", ...entryPoints()],
  layers: () => ["run", "-A", "tools/layers.ts"],
  publish: () => ["publish", "--dry-run", "--allow-dirty"],
  test: () => ["run", "-A", "tools/test.ts"],
};

/** Runs one check, shows its output as it comes, and counts it: a test run by its own last line, all else as one. */
function execute(name: string): Promise<{ passed: number; failed: number }> {
  console.log(`\n== ${name}`);
  return new Promise((resolve) => {
    const child = spawn(deno, checks[name]!(), {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, NO_COLOR: "1" },
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output = (output + text).slice(-1000);
      process.stdout.write(text);
    });
    child.on("close", (code) => {
      const sum = name === "test" ? /(\d+) passed, (\d+) failed\s*$/.exec(output) : null;
      if (sum !== null && (code === 0) === (Number(sum[2]) === 0)) {
        return resolve({ passed: Number(sum[1]), failed: Number(sum[2]) });
      }
      console.log(code === 0 ? `${name} is clean` : `${name} failed with code ${code}`);
      resolve(code === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 });
    });
  });
}

if (import.meta.main) {
  const wanted = process.argv.slice(2);
  const unknown = wanted.filter((name) => !(name in checks));
  if (unknown.length > 0) {
    console.error(`No such check: ${unknown.join(", ")}; there are ${Object.keys(checks).join(", ")}`);
    process.exit(2);
  }
  const total = { passed: 0, failed: 0 };
  const failures: string[] = [];
  for (const name of wanted.length > 0 ? wanted : Object.keys(checks)) {
    const { passed, failed } = await execute(name);
    total.passed += passed;
    total.failed += failed;
    if (failed > 0) failures.push(name);
  }
  console.log(failures.length > 0 ? `\nFailed: ${failures.join(", ")}` : "");
  console.log(`${total.passed} passed, ${total.failed} failed`);
  process.exit(total.failed > 0 ? 1 : 0);
}
