/**
 * Runs the demo as a process of its own, on the runtime of the test.
 *
 * @module
 */

import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { boundByPermissions } from "../../support/program.ts";

/** How a run of the demo is made. */
export interface DemoOptions {
  /** The arguments. */
  readonly args: readonly string[];
  /** Where it makes the queue's directory, made where it is absent; nothing must be left there. */
  readonly temporary: string;
  /** Told every line that it prints, as it prints it. */
  readonly onLine?: (line: string, kill: (signal: "SIGINT" | "SIGTERM") => void) => void;
  /** Whether permissions bind it though root runs it: root without the right to pass them over. */
  readonly bound?: boolean;
}

/** What came of a run. */
export interface DemoResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const main = fileURLToPath(new URL("../../../examples/checksums/main.ts", import.meta.url));

/** The command that runs it, with the command that takes rights away before it. */
function commandOf({ args, bound }: DemoOptions): [command: string, args: string[]] {
  const run = [process.execPath, ...("Deno" in globalThis ? ["run", "-A"] : []), main, ...args];
  if (bound) run.unshift(...boundByPermissions);
  return [run[0]!, run.slice(1)];
}

/** Runs the demo to its end. */
export function runDemo(options: DemoOptions): Promise<DemoResult> {
  const { temporary, onLine } = options;
  mkdirSync(temporary, { recursive: true });
  const child = spawn(...commandOf(options), {
    env: { ...process.env, TMPDIR: temporary, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    stdout += `${line}\n`;
    // Not child.kill(), which on Deno reports the signal as the outcome, whatever the process made of it.
    onLine?.(line, (signal) => process.kill(child.pid!, signal));
  });
  child.stderr.setEncoding("utf8").on("data", (text) => stderr += text);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, stdout, stderr }));
  });
}

/** The number beside a word of the summary. */
export function summed({ stdout }: DemoResult, word: string): number {
  const found = new RegExp(`^  ${word} +([0-9,]+)$`, "m").exec(stdout);
  if (found === null) throw new Error(`The summary has no line "${word}":\n${stdout}`);
  return Number(found[1]!.replaceAll(",", ""));
}
