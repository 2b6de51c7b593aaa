/**
 * Which directories the broker trusts: an entry that an outsider planted would be a delivered message.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { attempt, type FileOperations, type FileStatus, systemCode } from "./operations.ts";

const worldWritable = 0o002;
const sticky = 0o1000;

function refuse(state: string, path: string, why: string, expected: string, status?: FileStatus): never {
  const what = state === "root" ? `"dir"` : `the folder ${JSON.stringify(state)}`;
  const observed = status && `0${status.mode.toString(8)}`;
  throw new QueueError(
    "QUEUE_DIRECTORY_UNUSABLE",
    `Cannot open the queue directory: ${what} at ${JSON.stringify(path)} is ${why}, expected ${expected}`,
    { fields: { field: "dir", state, value: path, why, ...(observed ? { observed } : {}) } },
  );
}

/** Makes the root with its parents, owner-only, where it is absent; returns how many directories it made. */
function makeRoot(operations: FileOperations, path: string): number {
  try {
    operations.makeDirectory(path);
    return 1;
  } catch (error) {
    const code = systemCode(error);
    if (code === "EEXIST") return 0;
    const parent = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (code !== "ENOENT" || parent === "") throw error;
    const made = makeRoot(operations, parent);
    return made + (attempt(() => operations.makeDirectory(path), "EEXIST") ? 1 : 0);
  }
}

/**
 * Makes and audits the directory that a caller named. A link given as the directory itself is followed; its parents are
 * not audited.
 *
 * @returns The path without links, and how many directories were made on the way to it.
 * @throws {QueueError} `QUEUE_DIRECTORY_UNUSABLE` with `why` (and `observed`, the mode).
 */
export function prepareRoot(operations: FileOperations, dir: unknown): { path: string; made: number } {
  if (typeof dir !== "string" || dir === "" || dir.includes("\0")) {
    const value = typeof dir === "string" ? dir : typeof dir;
    refuse("root", value, dir === "" ? "empty" : "not-a-path", "the path of a directory");
  }
  const trimmed = dir.replace(/\/+$/, "") || "/";
  const made = makeRoot(operations, trimmed);
  const path = operations.resolve(trimmed);
  const status = operations.status(path);
  if (status.kind !== "directory") refuse("root", path, "not-a-directory", "a directory", status);
  if ((status.mode & worldWritable) !== 0 && (status.mode & sticky) === 0) {
    refuse(
      "root",
      path,
      "world-writable",
      "a directory that others cannot write to, or one with the sticky bit",
      status,
    );
  }
  return { path, made };
}

/** Why a directory below the root cannot be trusted; `undefined` when it can. */
export function findDistrust(status: FileStatus): string | undefined {
  if (status.kind === "link") return "symlink";
  if (status.kind !== "directory") return "not-a-directory";
  if ((status.mode & worldWritable) === 0) return undefined;
  return (status.mode & sticky) === 0 ? "world-writable" : "sticky-world-writable";
}

/**
 * Makes a state directory where it is absent and audits it, even when this call made it. An existing one keeps its mode.
 *
 * @returns Whether it was made.
 * @throws {QueueError} `QUEUE_DIRECTORY_UNUSABLE`.
 */
export function prepareState(operations: FileOperations, root: string, state: string): boolean {
  const path = `${root}/${state}`;
  const made = attempt(() => operations.makeDirectory(path), "EEXIST");
  const status = operations.status(path);
  const why = findDistrust(status);
  if (why !== undefined) refuse(state, path, why, "a real directory that others cannot write to", status);
  return made;
}
