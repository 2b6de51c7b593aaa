/**
 * Finding a Bun and a Node that can run the tests.
 *
 * @module
 */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import process from "node:process";

/** A runtime, or why there is none and what would help. */
export type Finding = { readonly found: true; readonly path: string } | { readonly found: false; readonly why: string };

/** The version that a binary prints, empty where it does not run. */
function versionOf(binary: string): string {
  try {
    return execFileSync(binary, ["--version"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return "";
  }
}

/** Bun on PATH, else the one in node_modules, whose binary its install script puts in place. */
export function findBun(deno: string): Finding {
  if (versionOf("bun") !== "") return { found: true, path: "bun" };
  const installed = "node_modules/bun/bin/bun.exe";
  if (versionOf(installed) !== "") return { found: true, path: installed };
  const script = "node_modules/bun/install.js";
  if (existsSync(script)) {
    try {
      execFileSync(deno, ["run", "-A", script], { stdio: "ignore" });
    } catch {
      // The version below tells.
    }
    if (versionOf(installed) !== "") return { found: true, path: installed };
  }
  return { found: false, why: 'no "bun" on PATH and none in node_modules; install Bun, or run "npm install" here' };
}

/** Whether a version, such as "v24.1.0", runs the tests: it strips types by itself and knows `using` declarations. */
export function runsTests(version: string): boolean {
  return Number(/^v?(\d+)\./.exec(version)?.[1] ?? 0) >= 24;
}

/** Node on PATH if it is new enough, else the one that `QUEUE_TEST_NODE` names. */
export function findNode(): Finding {
  for (const binary of [process.env.QUEUE_TEST_NODE, "node"]) {
    if (binary && runsTests(versionOf(binary))) return { found: true, path: binary };
  }
  const present = versionOf("node");
  return {
    found: false,
    why: `the tests need 24 or later, ${present === "" ? "and none is on PATH" : `and PATH has ${present}`}; ` +
      "set QUEUE_TEST_NODE to the path of a newer one",
  };
}
