/**
 * Measuring between processes: children of this runtime, started on the benchmark's own file.
 *
 * A child says "ready" on a line of its own, waits for lines on its standard input, and prints what it measured as JSON.
 *
 * @module
 */

import { spawn } from "node:child_process";
import process from "node:process";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

/** A child that measures. */
export interface Child<T> {
  /** Resolves once the child is ready. */
  readonly ready: Promise<void>;
  /** What it printed in the end. */
  readonly result: Promise<T>;
  /** Sends it a line. */
  say(line: string): void;
}

/** Starts this runtime on a script of ours. */
export function startChild<T>(scriptUrl: string, args: readonly string[]): Child<T> {
  const script = fileURLToPath(scriptUrl);
  const runtime = "Deno" in globalThis ? ["run", "-A", "--no-check"] : [];
  const child = spawn(process.execPath, [...runtime, script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  // One that has ended hears nothing; its code says why.
  child.stdin.on("error", () => {});
  const { promise: ready, resolve: beReady } = Promise.withResolvers<void>();
  let last = "";
  readline.createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") beReady();
    else last = line;
  });
  const result = new Promise<T>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      // Whoever waits for a child that never became ready is told by its result.
      beReady();
      if (code === 0) resolve(JSON.parse(last) as T);
      else reject(new Error(`A child of the benchmark ended with code ${code}`));
    });
  });
  return { ready, result, say: (line) => void child.stdin.write(`${line}\n`) };
}

/** In a child: says that it is ready and returns the lines that it is sent, one a call. */
export function hearParent(): () => Promise<string> {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log("ready");
  return async () => (await lines.next()).value ?? "";
}

/** An instant in ms that means the same in every process of the machine, to some microseconds. */
export function instant(): number {
  return performance.timeOrigin + performance.now();
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
