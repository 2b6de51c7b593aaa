/**
 * Disks whose power can be cut: file systems in files that lie where a copy of a file is made in one instant. The copy is
 * what the device held then, and mounting it is what the machine does when its power is back.
 *
 * @module
 */

import { spawnSync } from "node:child_process";
import fs from "node:fs";

/** The file systems that are tried. */
export const fileSystems = ["ext4", "xfs", "btrfs"] as const;

/** A file system that is tried. */
export type FileSystem = typeof fileSystems[number];

/** How large each disk is, in bytes; what was never written takes no room. */
const diskSize = 1024 ** 3;
const hostSize = 16 * diskSize;

/** Runs a command; throws what it complained of. */
function run(command: string, ...args: readonly string[]): void {
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
}

/** What is missing to cut the power of real file systems; `undefined` when nothing is. */
export function findObstacle(): string | undefined {
  for (const command of ["unshare", "mkfs.btrfs", "mkfs.xfs", "mkfs.ext4"]) {
    if (spawnSync(command, ["--version"]).error === undefined) continue;
    return `there is no "${command}" here; install util-linux, e2fsprogs, xfsprogs and btrfs-progs`;
  }
  const { status, stderr } = spawnSync("unshare", ["--mount", "true"], { encoding: "utf8" });
  return status === 0 ? undefined : `${stderr.trim()}; run as root`;
}

/** Makes the file system on which copies are made in one instant. */
export function makeHost(root: string): string {
  fs.writeFileSync(`${root}/host.image`, "");
  fs.truncateSync(`${root}/host.image`, hostSize);
  run("mkfs.btrfs", "-q", `${root}/host.image`);
  fs.mkdirSync(`${root}/host`);
  run("mount", "-o", "loop", `${root}/host.image`, `${root}/host`);
  return `${root}/host`;
}

/** A disk that is in use and can be copied. */
export interface CuttableDisk {
  /** Where it is mounted. */
  readonly path: string;
  /** Keeps what the device holds now, as a disk of its own. */
  cutPower(): string;
  /** Ends its use. */
  remove(): void;
}

/** Makes and mounts a disk. */
export function makeDisk(host: string, kind: FileSystem): CuttableDisk {
  const image = `${host}/${kind}`;
  const path = `${host}/mounted`;
  let copies = 0;
  fs.mkdirSync(path, { recursive: true });
  fs.writeFileSync(image, "");
  fs.truncateSync(image, diskSize);
  run(`mkfs.${kind}`, "-q", image);
  run("mount", "-o", "loop", image, path);
  return {
    path,
    cutPower() {
      const copy = `${image}.${copies++}`;
      run("cp", "--reflink=always", image, copy);
      return copy;
    },
    remove() {
      run("umount", path);
      fs.unlinkSync(image);
    },
  };
}

/** Mounts a copy as a machine does whose power is back, runs something there, and removes it. */
export async function afterPowerCut<T>(
  host: string,
  kind: FileSystem,
  copy: string,
  body: (path: string) => Promise<T>,
): Promise<T> {
  const path = `${host}/again`;
  fs.mkdirSync(path, { recursive: true });
  run("mount", "-o", kind === "xfs" ? "loop,nouuid" : "loop", copy, path);
  try {
    return await body(path);
  } finally {
    run("umount", path);
    fs.unlinkSync(copy);
  }
}
