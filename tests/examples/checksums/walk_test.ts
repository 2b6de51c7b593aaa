import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { findFiles } from "../../../examples/checksums/walk.ts";
import { test } from "../../support/test.ts";
import { bytes, makeFile, runIn, withFolder } from "./folder.ts";

function found(folder: string, leftOut: string[] = []): string[] {
  return [...findFiles(folder, leftOut.map(bytes))].map((name) => name.toString("latin1")).sort();
}

test("findFiles() names regular files at every depth and nothing else", () =>
  withFolder((folder) => {
    mkdirSync(`${folder}/a/b`, { recursive: true });
    writeFileSync(`${folder}/top`, "");
    writeFileSync(`${folder}/a/b/deep`, "");
    symlinkSync("top", `${folder}/link`);
    symlinkSync("a", `${folder}/folder link`);
    symlinkSync("nowhere", `${folder}/dangling`);
    runIn(folder, "mkfifo", "pipe");
    assert.deepEqual(found(folder), ["a/b/deep", "top"]);
  }));

test("findFiles() finds nothing in an empty folder", () => withFolder((folder) => assert.deepEqual(found(folder), [])));

test("findFiles() leaves out .git and node_modules at every depth, and what it is told to", () =>
  withFolder((folder) => {
    for (const path of [".git", "node_modules", "a/node_modules", "a/.git", "queue/jobs", "queued", "a/queue"]) {
      mkdirSync(`${folder}/${path}`, { recursive: true });
      writeFileSync(`${folder}/${path}/file`, "");
    }
    writeFileSync(`${folder}/.gitignore`, "");
    writeFileSync(`${folder}/SHA256SUMS`, "");
    writeFileSync(`${folder}/a/SHA256SUMS`, "");
    assert.deepEqual(found(folder, ["SHA256SUMS", "queue"]), [
      ".gitignore",
      "a/SHA256SUMS",
      "a/queue/file",
      "queued/file",
    ]);
  }));

test("findFiles() keeps names that are not UTF-8 as bytes, and leaves out beside them what it leaves out elsewhere", () =>
  withFolder((folder) => {
    const names = [
      "\xff\xfe",
      "plain",
      "\xe9t\xe9/inner",
      "\xe9t\xe9/\xff/deepest",
      "a/fine",
      "sub/\x80",
      "sub/.git/x",
      "sub/out",
    ];
    for (const name of names) makeFile(folder, bytes(name), name);
    runIn(`${folder}/sub`, "ln", "-s", "out", "link");
    const expected = names.filter((name) => name !== "sub/.git/x" && name !== "sub/out").sort();
    assert.deepEqual(found(folder, ["sub/out"]), expected);
  }));

test("findFiles() keeps a name that holds the replacement character itself", () =>
  withFolder((folder) => {
    writeFileSync(`${folder}/odd \uFFFD name`, "");
    assert.deepEqual(found(folder), ["odd \xef\xbf\xbd name"]);
  }));

test("findFiles() names a folder that cannot be listed, with a slash", () => {
  assert.deepEqual(found("/nowhere/at/all"), ["/"]);
});
