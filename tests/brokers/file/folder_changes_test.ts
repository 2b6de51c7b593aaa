import assert from "node:assert/strict";
import fs from "node:fs";
import { FolderChanges } from "../../../src/brokers/file/folder_changes.ts";
import { freshOperations } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

/** A folder whose time of change is set by hand, as a file system of any grain might. */
function folder(changedAt: number) {
  const names = new Set<string>();
  const state = { changedAt, names, lists: 0 };
  const operations = {
    ...freshOperations(),
    status: () => ({ kind: "directory" as const, mode: 0o700, links: 2, size: 0, changedAt: state.changedAt }),
    list: () => {
      state.lists++;
      return [...names];
    },
  };
  return { state, changes: new FolderChanges(operations, "/anywhere") };
}

test("a folder is listed until a listing is well after its last change, and then no more", () => {
  const { state, changes } = folder(500);
  const look = (now: number) => changes.mayHaveChanged(now) && changes.list(now).length >= 0;
  assert.deepEqual([0, 1_000, 2_999].map(look), [true, true, true], "another change may bear the same time");
  assert.deepEqual([3_000, 3_001, 20_000].map(look), [true, false, false]);
  state.changedAt = 501;
  assert.deepEqual([20_010, 23_009, 23_010, 23_020].map(look), [true, true, true, false]);
  assert.equal(state.lists, 7);
});

test("a time of change that goes back is a change too", () => {
  const { state, changes } = folder(500);
  for (const now of [0, 5_000]) if (changes.mayHaveChanged(now)) changes.list(now);
  assert.equal(changes.mayHaveChanged(6_000), false);
  state.changedAt = 400;
  assert.equal(changes.mayHaveChanged(6_001), true);
});

test("where a file system does not stamp its folders, they are listed once a minute all the same", () => {
  const { changes } = folder(500);
  for (const now of [0, 5_000]) if (changes.mayHaveChanged(now)) changes.list(now);
  assert.equal(changes.mayHaveChanged(64_999), false);
  assert.equal(changes.mayHaveChanged(65_000), true);
});

test("a listing that failed does not count", () => {
  const { state, changes } = folder(500);
  assert.equal(changes.mayHaveChanged(0), true);
  assert.equal(changes.mayHaveChanged(10_000), true, "nothing was listed");
  changes.list(10_000);
  assert.equal(changes.mayHaveChanged(10_001), false);
  changes.reset();
  assert.equal(changes.mayHaveChanged(10_002), true);
  assert.equal(state.lists, 1);
});

test("a real folder's time tells of every entry that is made, moved in or out, and removed", () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/folder`;
  fs.mkdirSync(dir);
  fs.mkdirSync(`${directory.path}/outside`);
  const steps = [
    () => fs.mkdirSync(`${dir}/a`),
    () => fs.renameSync(`${directory.path}/outside`, `${dir}/b`),
    () => fs.renameSync(`${dir}/b`, `${directory.path}/outside`),
    () => fs.rmdirSync(`${dir}/a`),
  ];
  const long = Date.UTC(2001, 0, 1) / 1_000;
  for (const step of steps) {
    // Some time ago, so that the step cannot fall into the same instant.
    fs.utimesSync(dir, long, long);
    const before = fs.lstatSync(dir).mtimeMs;
    step();
    assert.notEqual(fs.lstatSync(dir).mtimeMs, before);
  }
});
