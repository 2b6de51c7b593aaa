/**
 * Finding the regular files under a folder by the bytes of their names.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync } from "node:fs";

/** Left out wherever they stand. */
const skipped: readonly string[] = [".git", "node_modules"];

const slash = Buffer.from("/");
const replacement = Buffer.from("\uFFFD");

/** What is left out besides, by name relative to the folder: a file, or a folder with everything in it. */
function isLeftOut(name: Buffer, leftOut: readonly Buffer[]): boolean {
  return leftOut.some((out) =>
    name.equals(out) || name.subarray(0, out.length + 1).equals(Buffer.concat([out, slash]))
  );
}

function join(folder: Buffer, name: Buffer): Buffer {
  return folder.length === 0 ? name : Buffer.concat([folder, slash, name]);
}

/**
 * Every regular file below a part of the tree as the `find` of the system sees it. Deno shows names as text, in which a
 * name that is not UTF-8 cannot be told from its neighbour; this list is bytes.
 */
function* findBelow(root: string, folder: Buffer): Generator<Buffer, void, undefined> {
  const start = folder.length === 0 ? "." : `./${folder.toString()}`;
  const names = skipped.flatMap((name) => ["-o", "-name", name]).slice(1);
  const { stdout, status } = spawnSync("find", [start, "(", ...names, ")", "-prune", "-o", "-type", "f", "-print0"], {
    cwd: root,
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" },
    maxBuffer: Infinity,
  });
  for (let from = 0; from < stdout.length;) {
    const end = stdout.indexOf(0, from);
    yield Buffer.from(stdout.subarray(from + 2, end));
    from = end + 1;
  }
  // Part of it could not be listed: as a job of its own that is somebody's dead letter, and not silence.
  if (status !== 0) yield Buffer.concat([folder, slash]);
}

/**
 * The names of all regular files below a folder, relative to it, as bytes. Symbolic links are not followed and are no
 * regular files; neither are sockets, pipes and devices. A folder that cannot be listed is named too, with a slash at
 * its end: reading that "file" will fail, so somebody hears of it.
 *
 * @param root An absolute path.
 * @param leftOut Names relative to the root.
 */
export function* findFiles(root: string, leftOut: readonly Buffer[]): Generator<Buffer, void, undefined> {
  const pending: Buffer[] = [Buffer.alloc(0)];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    let names: Buffer[];
    try {
      names = readdirSync(join(Buffer.from(root), folder), { encoding: "buffer" }).map((name) => Buffer.from(name));
    } catch {
      yield Buffer.concat([folder, slash]);
      continue;
    }
    if (names.some((name) => name.includes(replacement))) {
      for (const name of findBelow(root, folder)) if (!isLeftOut(name, leftOut)) yield name;
      continue;
    }
    for (const name of names) {
      const path = join(folder, name);
      if (skipped.includes(name.toString()) || isLeftOut(path, leftOut)) continue;
      const kind = kindOf(join(Buffer.from(root), path));
      if (kind === "folder") pending.push(path);
      else if (kind === "file") yield path;
    }
  }
}

function kindOf(path: Buffer): "folder" | "file" | "other" {
  try {
    const entry = lstatSync(path);
    return entry.isDirectory() ? "folder" : entry.isFile() ? "file" : "other";
  } catch (error) {
    // Gone meanwhile: it was never found. Anything else is for the worker to run into.
    return (error as { code?: string }).code === "ENOENT" ? "other" : "file";
  }
}
