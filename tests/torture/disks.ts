/**
 * Disks that fill up, of blocks or of files, really or by an error that is put in.
 *
 * @module
 */

import fs from "node:fs";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { freshOperations } from "../support/file_processes.ts";
import { mountJournal, mountMemory } from "../support/mounts.ts";

/** A disk that a test fills and empties. */
export interface SmallDisk {
  /** Where a queue may lie. */
  readonly dir: string;
  readonly operations: FileOperations;
  /** Leaves no room, or none again. */
  fill(): void;
  /** Makes room. */
  free(): void;
}

/** The kinds of disks that there are. */
export const diskKinds = ["memory", "journal", "files"] as const;

/** A kind of disk: in memory, with a journal, or one that holds few files. */
export type DiskKind = typeof diskKinds[number];

/** Mounts a disk; the process needs the right to. */
export function mountDisk(kind: DiskKind, path: string): SmallDisk {
  if (kind === "journal") mountJournal(path, 8);
  else mountMemory(path, kind === "memory" ? "size=2m" : "size=16m,nr_inodes=300");
  const ballast = `${path}/ballast`;
  fs.mkdirSync(ballast);
  return {
    dir: `${path}/queue`,
    operations: freshOperations(),
    fill: () => kind === "files" ? fillFiles(ballast) : fillBlocks(ballast),
    free: () => {
      for (const name of fs.readdirSync(ballast)) fs.unlinkSync(`${ballast}/${name}`);
    },
  };
}

/** Runs a call until there is no room. */
function untilFull(call: (round: number) => void): void {
  for (let round = 0; round < 1_000_000; round++) {
    try {
      call(round);
    } catch (error) {
      if ((error as { code?: string }).code === "ENOSPC") return;
      throw error;
    }
  }
}

function fillBlocks(ballast: string): void {
  const path = `${ballast}/blocks`;
  const descriptor = fs.openSync(path, "a");
  try {
    for (const size of [65_536, 512]) untilFull(() => void fs.writeSync(descriptor, new Uint8Array(size)));
    // What was promised to it is taken now, and not when it is written back.
    fs.fsyncSync(descriptor);
    untilFull(() => void fs.writeSync(descriptor, new Uint8Array(512)));
  } finally {
    fs.closeSync(descriptor);
  }
}

function fillFiles(ballast: string): void {
  const begin = fs.readdirSync(ballast).length;
  untilFull((round) => fs.closeSync(fs.openSync(`${ballast}/file ${begin + round}`, "wx")));
}

/** A disk that says it is full, for a machine where none can be mounted. */
export function pretendDisk(dir: string): SmallDisk {
  const inner = freshOperations();
  let full = false;
  const refuse = (syscall: string, path?: string) => {
    if (!full) return;
    throw Object.assign(new Error(`ENOSPC: no space left, ${syscall}`), { code: "ENOSPC", syscall, path });
  };
  return {
    dir,
    operations: {
      ...inner,
      flush: () => Promise.resolve(),
      makeDirectory: (path) => (attemptExisting(path), refuse("mkdir", path), inner.makeDirectory(path)),
      write: (descriptor, bytes) => (refuse("write"), inner.write(descriptor, bytes)),
      link: (existing, name) => (refuse("link", name), inner.link(existing, name)),
    },
    fill: () => void (full = true),
    free: () => void (full = false),
  };

  /** What is there already is found before there is need of room. */
  function attemptExisting(path: string): void {
    if (full && fs.existsSync(path)) inner.makeDirectory(path);
  }
}
