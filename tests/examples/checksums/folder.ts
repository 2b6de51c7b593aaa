/**
 * Folders with awkward contents for the demo's tests, and what the system makes of them.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Runs with a fresh folder that is removed afterwards. */
export async function withFolder(body: (folder: string) => void | Promise<void>): Promise<void> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "queue-test-")));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A name from its bytes, one character each: `"\xff"` is the byte 255. */
export function bytes(latin1: string): Buffer {
  return Buffer.from(latin1, "latin1");
}

/** Makes a file under a name of any bytes, which not every runtime can spell: the shell can. */
export function makeFile(folder: string, name: Uint8Array, content: string): void {
  const escaped = Array.from(name, (byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
  const script =
    `name=$(printf '%b' "$1"; printf x); name=./\${name%x}; mkdir -p "$(dirname "$name")"; printf '%s' "$2" > "$name"`;
  const { status, stderr } = spawnSync("sh", ["-c", script, "sh", escaped, content], { cwd: folder });
  if (status !== 0) throw new Error(`Cannot make the file: ${stderr}`);
}

/** Runs a command of the system in a folder; throws unless it succeeds. */
export function runIn(folder: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: "latin1" });
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return stdout;
}
