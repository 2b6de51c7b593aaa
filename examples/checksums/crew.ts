/**
 * Child processes of the demo: starting, hearing and ending them.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** How a process ended. */
export interface Exit {
  /** Its exit code, `null` when a signal ended it. */
  readonly code: number | null;
  /** The signal that ended it, `null` when it ended by itself. */
  readonly signal: string | null;
}

/** A running child. */
export interface Child {
  /** Its process id. */
  readonly pid: number;
  /** Resolves when it has ended and all its output was heard. */
  readonly ended: Promise<Exit>;
  /** Closes its input, which asks a worker to finish and go. */
  dismiss(): void;
  /** Ends it by SIGKILL, which no process can catch. */
  kill(): void;
}

/** Runs a file beside this one in a process of its own, on the same runtime. Every line that it prints is a JSON value. */
export function start(script: string, args: readonly string[], hear: (line: unknown) => void): Child {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const run = "Deno" in globalThis ? ["run", "-A", path] : [path];
  const child: ChildProcess = spawn(process.execPath, [...run, ...args], { stdio: ["pipe", "pipe", "inherit"] });
  const heard = new Promise<void>((resolve) => {
    createInterface({ input: child.stdout! }).on("line", (line) => hear(JSON.parse(line))).on("close", resolve);
  });
  const exit = new Promise<Exit>((resolve, reject) => {
    child.once("error", reject).once("exit", (code, signal) => resolve({ code, signal }));
  });
  // A process that is gone cannot be written to, which is no news.
  child.stdin!.on("error", () => {});
  return {
    pid: child.pid ?? 0,
    ended: Promise.all([exit, heard]).then(([how]) => how),
    dismiss: () => void child.stdin!.end(),
    kill: () => {
      // Not child.kill(): on Deno that closes the pipes first, and a worker whose input ends gives back what it holds.
      if (child.exitCode === null && child.signalCode === null && child.pid) process.kill(child.pid, "SIGKILL");
    },
  };
}
