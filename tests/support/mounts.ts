/**
 * Small file systems of a process's own, where the machine permits them.
 *
 * @module
 */

import { spawnSync } from "node:child_process";
import fs from "node:fs";
import { temporaryDirectory } from "./temporary.ts";

/** What goes before a command so that it can mount, seen by nobody else and gone with it; or why there is no such thing. */
export type Mounter =
  | { readonly found: true; readonly prefix: readonly string[] }
  | { readonly found: false; readonly why: string };

/** What is mounted to find out, below a directory `$0`, and how to get what is missing. */
const trials = {
  memory: {
    script: 'mount -t tmpfs tmpfs "$0"',
    remedy: 'run as root, or as a user for whom "unshare --mount --map-root-user true" works',
  },
  journal: {
    script: 'cd "$0" && truncate -s 4M image && mkfs.ext4 -q -F image && mkdir disk && mount -o loop image disk',
    remedy: 'run as root, with "mkfs.ext4" on PATH and a free loop device',
  },
} as const;

/** Runs a command and says what it complained of. */
function complaintOf(command: string, args: readonly string[]): string | undefined {
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return undefined;
  return error?.message ?? stderr.trim();
}

/** Finds out by trying whether a process may mount a file system in memory, or one that lies in a file. */
export function findMounter(kind: keyof typeof trials): Mounter {
  const { script, remedy } = trials[kind];
  let why = "";
  for (const prefix of [["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]]) {
    using directory = temporaryDirectory();
    const [command, ...args] = [...prefix, "sh", "-c", script, directory.path];
    const complaint = complaintOf(command!, args);
    if (complaint === undefined) return { found: true, prefix };
    why ||= complaint;
  }
  return { found: false, why: `${why}; ${remedy}` };
}

function run(command: string, ...args: readonly string[]): void {
  const complaint = complaintOf(command, args);
  if (complaint !== undefined) throw new Error(`${command} ${args.join(" ")}: ${complaint}`);
}

/** Mounts a file system in memory. */
export function mountMemory(path: string, options: string): void {
  fs.mkdirSync(path, { recursive: true });
  run("mount", "-t", "tmpfs", "-o", options, "tmpfs", path);
}

/** Mounts a journalling file system of so many MiB, which lies in a file beside. */
export function mountJournal(path: string, size: number): void {
  fs.mkdirSync(path, { recursive: true });
  const image = `${path}.image`;
  fs.closeSync(fs.openSync(image, "w"));
  fs.truncateSync(image, size * 1024 * 1024);
  // Nothing is reserved for root, who runs this.
  run("mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", image);
  run("mount", "-o", "loop", image, path);
}

/** Changes the options of a mount. */
export function remount(path: string, options: string): void {
  run("mount", "-o", `remount,${options}`, path);
}
