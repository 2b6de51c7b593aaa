/**
 * The runtimes that a test can start processes of.
 *
 * @module
 */

import { spawnSync } from "node:child_process";
import process from "node:process";
import { findBun, findNode } from "../../tools/runtimes.ts";

/** How to run a TypeScript file. */
export interface Runtime {
  readonly name: string;
  readonly command: string;
  /** What stands before the file. */
  readonly args: readonly string[];
}

const denoArgs = ["run", "-A", "--no-check"];
const nodeArgs = ["--no-warnings"];

function runs(command: string): boolean {
  return spawnSync(command, ["--version"], { stdio: "ignore" }).status === 0;
}

/** The runtime that runs this test. */
export function currentRuntime(): Runtime {
  const onDeno = "Deno" in globalThis;
  const name = onDeno ? "Deno" : "Bun" in globalThis ? "Bun" : "Node";
  return { name, command: process.execPath, args: onDeno ? denoArgs : name === "Node" ? nodeArgs : [] };
}

/** This runtime, and Deno, Bun and a Node that runs TypeScript as far as they can be found. */
export function findRuntimes(): Runtime[] {
  const runtimes = [currentRuntime()];
  const node = findNode();
  const bun = findBun("Deno" in globalThis ? process.execPath : "deno");
  const candidates: readonly Runtime[] = [
    ...["deno", "node_modules/.bin/deno"].map((command) => ({ name: "Deno", command, args: denoArgs })),
    ...(bun.found ? [{ name: "Bun", command: bun.path, args: [] }] : []),
    ...(node.found ? [{ name: "Node", command: node.path, args: nodeArgs }] : []),
  ];
  for (const candidate of candidates) {
    if (!runtimes.some(({ name }) => name === candidate.name) && runs(candidate.command)) runtimes.push(candidate);
  }
  return runtimes;
}
