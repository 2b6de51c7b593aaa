/**
 * Running a program of the tests' own runtime as a child process.
 *
 * @module
 */

import { spawn } from "node:child_process";
import process from "node:process";

/** What a program left behind. */
export interface ProgramEnd {
  readonly code: number | null;
  /** Everything it printed, both streams. */
  readonly output: string;
}

/** Whether the tests run on Deno. */
export const onDeno: boolean = "Deno" in globalThis;

/** Runs this runtime's binary with arguments to the end. */
export function runRuntime(args: readonly string[], cwd?: string): Promise<ProgramEnd> {
  return runCommand([process.execPath, ...args], cwd);
}

/** Runs a command to the end. */
export function runCommand(command: readonly string[], cwd: string = process.cwd()): Promise<ProgramEnd> {
  const [file, ...args] = command;
  return new Promise((resolve, reject) => {
    const child = spawn(file!, args, { cwd, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    child.stdout.on("data", (text) => output += text);
    child.stderr.on("data", (text) => output += text);
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}

/** Runs a TypeScript file with every permission to the end. */
export function runFile(path: string, args: readonly string[] = [], cwd?: string): Promise<ProgramEnd> {
  return runRuntime([...(onDeno ? ["run", "-A", "--no-check"] : []), path, ...args], cwd);
}

/** Root's right to pass over permissions. */
const override = "-dac_override,-dac_read_search";

/**
 * What goes before a command so that permissions bind it though root runs it. It stays root: another user could not run a
 * runtime or read a checkout that lies in root's home.
 */
export const boundByPermissions: readonly string[] = [
  "setpriv",
  `--bounding-set=${override}`,
  `--inh-caps=${override}`,
];
