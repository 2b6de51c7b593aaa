import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { findMounter, type Mounter } from "../support/mounts.ts";
import { currentRuntime } from "../support/runtimes.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { test } from "../support/test.ts";
import { diskKinds, pretendDisk } from "./disks.ts";
import { consumeOnFullDisk, receiveOnFullDisk, useFullDisk } from "./full_disk.ts";

const program = fileURLToPath(new URL("./mounted.ts", import.meta.url));
const mounters = { memory: findMounter("memory"), journal: findMounter("journal") };

/** Registers a test of a program that mounts, or says aloud why it is left out. */
function testMounted(name: string, mounter: Mounter, ...args: readonly string[]): void {
  if (!mounter.found) {
    test(`left out: ${name}`, () => console.log(`Left out "${name}", nothing can be mounted here: ${mounter.why}`));
    return;
  }
  test(name, () => {
    using directory = temporaryDirectory();
    const { command, args: before } = currentRuntime();
    const [what, ...rest] = args;
    const [unshare, ...options] = [...mounter.prefix, command, ...before, program, what!, directory.path, ...rest];
    const { status, stdout, stderr } = spawnSync(unshare!, options, { encoding: "utf8" });
    assert.equal(stdout, "survived\n", `ended with ${status}: ${stderr}`);
  });
}

for (const use of [useFullDisk, consumeOnFullDisk, receiveOnFullDisk]) {
  test(`a disk that says it is full is told, and costs nothing: ${use.name}`, async () => {
    using directory = temporaryDirectory();
    await use(pretendDisk(`${directory.path}/queue`));
  });
}

for (const kind of diskKinds) {
  const what = { memory: "in memory", journal: "with a journal", files: "that holds no more files" }[kind];
  testMounted(
    `a disk ${what} that is really full is told, and costs nothing`,
    mounters[kind === "journal" ? kind : "memory"],
    "full",
    kind,
  );
}

testMounted(
  "a file system that becomes read-only is told, and when it no longer is all goes on",
  mounters.memory,
  "readOnly",
);
