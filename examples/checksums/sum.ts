/**
 * The sum of one file, read piece by piece.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** What came out of one file. */
export interface Sum {
  /** 64 hexadecimal digits. */
  readonly sha256: string;
  /** How many bytes were read. */
  readonly bytes: number;
}

/** Why a file could not be read; the code is the system's. */
export class UnreadableFile extends Error {
  /** The system's name of the failure, for instance `"ENOENT"`. */
  readonly code: string;

  /** Names the failure and never the file: the name is the payload. */
  constructor(code: string) {
    super(`Cannot read the file: ${code}`);
    this.code = code;
  }
}

/** What may go away by itself. Everything else will be the same at the next attempt. */
const passing: readonly string[] = ["EIO", "EAGAIN", "EINTR", "EMFILE", "ENFILE", "ENOMEM", "ESTALE", "ETIMEDOUT"];

const meanings: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist",
  ENOTDIR: "a folder on the way is no folder any more",
  EACCES: "the file may not be read",
  EPERM: "the file may not be read",
  EINVAL: "it is not a regular file",
  ELOOP: "it is a symbolic link now",
};

/** Whether another attempt may succeed. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof UnreadableFile) || passing.includes(error.code);
}

/** The failure in words that may be kept: no name, no content. */
export function describeUnreadable({ code }: UnreadableFile): string {
  return code in meanings ? `${code}: ${meanings[code]}` : code;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The name as text, `undefined` where no text stands for these bytes. */
function spell(name: Uint8Array): string | undefined {
  try {
    return decoder.decode(name);
  } catch {
    return undefined;
  }
}

/**
 * Hashes a file as it is read; one that changes meanwhile has the sum of what was read.
 *
 * @param root The folder that names are relative to.
 * @param name The bytes of the name.
 * @throws {UnreadableFile} When it cannot be read.
 */
export async function sumFile(root: string, name: Uint8Array, signal: AbortSignal): Promise<Sum> {
  const text = spell(name);
  const pieces = text === undefined ? readByBytes(root, name) : readByText(`${root}/${text}`);
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const piece of pieces) {
      signal.throwIfAborted();
      hash.update(piece);
      bytes += piece.length;
    }
  } catch (error) {
    if (signal.aborted || error instanceof UnreadableFile) throw error;
    throw new UnreadableFile((error as { code?: string }).code ?? "EIO");
  }
  return { sha256: hash.digest("hex"), bytes };
}

async function* readByText(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  // What became a link or a pipe since it was found must neither be followed nor wait for a writer.
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = await file.stat().then((stat) =>
      stat.isFile() ? stat : Promise.reject(new UnreadableFile("EINVAL"))
    );
    const buffer = Buffer.allocUnsafe(Math.min(Math.max(size + 1, 4_096), 262_144));
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/** Rebuilds the name from octal escapes, since arguments too are text on some runtimes, and reads what it names. */
const byBytes = `name=$(printf '%b' "$1"; printf x); name=./\${name%x}
[ -e "$name" ] || exit 3
[ -f "$name" ] && [ ! -L "$name" ] || exit 4
[ -r "$name" ] || exit 5
exec cat "$name"`;

/** Reads a file whose name is not UTF-8. Deno opens files by text alone, so the shell of the system opens it. */
async function* readByBytes(root: string, name: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  const escaped = Array.from(name, (byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
  const child = spawn("sh", ["-c", byBytes, "sh", escaped], { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise<number | null>((resolve, reject) => child.once("error", reject).once("close", resolve));
  ended.catch(() => {});
  try {
    yield* child.stdout as AsyncIterable<Uint8Array>;
    const code = await ended;
    if (code !== 0) throw new UnreadableFile({ 3: "ENOENT", 4: "EINVAL", 5: "EACCES" }[code ?? 0] ?? "EIO");
  } finally {
    child.kill("SIGKILL");
  }
}
