import assert from "node:assert/strict";
import { FolderRemover } from "../../../src/brokers/file/folder_remover.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { foldersOf } from "./on_disk.ts";
import { bytes, drain, openQueue, settle } from "./queue.ts";

function refusal(code: string): Error {
  return Object.assign(new Error(code), { code });
}

/** A remover whose removals end when the test says so. */
function heldRemover() {
  const begun: string[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const remover = FolderRemover.of({
    ...unflushedOperations(),
    removeDirectory(path) {
      begun.push(path);
      return new Promise((resolve, reject) => ends.push((error) => error === undefined ? resolve() : reject(error)));
    },
  });
  return { remover, begun, ends };
}

test("folders are removed one after another, and only one that is not there any more counts as gone", async () => {
  const { remover, begun, ends } = heldRemover();
  const gone: string[] = [];
  for (const name of ["removed", "missing", "full", "refused"]) remover.remove(`/root/${name}`, () => gone.push(name));
  remover.remove("/root/full", () => gone.push("twice"));
  for (const code of [undefined, "ENOENT", "ENOTEMPTY", "EACCES"]) {
    await settle();
    ends[begun.length - 1]!(code && refusal(code) || undefined);
  }
  await remover.idle("/root");
  assert.deepEqual(begun, ["/root/removed", "/root/missing", "/root/full", "/root/refused"]);
  assert.deepEqual(gone, ["removed", "missing"]);
});

test("a folder that is asked for again while its removal is under way is tried again", async () => {
  const { remover, begun, ends } = heldRemover();
  remover.remove("/root/folder");
  remover.remove("/root/folder");
  ends[0]!(refusal("ENOTEMPTY"));
  await settle();
  ends[1]!();
  await remover.idle("/root");
  assert.deepEqual(begun, ["/root/folder", "/root/folder"]);
});

test("what is to come below a root can be left out; other roots are not waited for", async () => {
  const { remover, begun, ends } = heldRemover();
  for (const path of ["/one/a", "/one/b", "/two/c"]) remover.remove(path);
  remover.forget("/one");
  const idle = remover.idle("/one");
  ends[0]!();
  await idle;
  await settle();
  assert.deepEqual(begun, ["/one/a", "/two/c"]);
  ends[1]!();
  await remover.idle("/two");
});

test("a drain does not wait for the removal of what it has emptied, and a closed broker removes nothing more", async () => {
  using directory = temporaryDirectory();
  const inner = unflushedOperations();
  const held: (() => void)[] = [];
  let calls = 0;
  const operations = {
    ...inner,
    removeDirectory: (path: string) => {
      calls++;
      return new Promise<void>((resolve) => held.push(resolve)).then(() => inner.removeDirectory(path));
    },
  };
  const jobs = await openQueue(directory.path, { operations });
  const texts = Array.from({ length: 2_000 }, (_, index) => `message ${index}`);
  await jobs.publishMany(texts.map(bytes));
  assert.deepEqual(await drain(jobs), texts);
  assert.equal(calls, 1, "one is under way");
  // What is published meanwhile finds its place and its reader.
  await jobs.publish(bytes("after"));
  assert.deepEqual(await drain(jobs), ["after"]);
  const closing = jobs.close();
  while (held.length > 0) {
    held.splice(0).forEach((end) => end());
    await settle();
  }
  await closing;
  const settled = calls;
  await settle();
  assert.equal(calls, settled);
  // Whoever looks next finds nothing in what was left, and removes it.
  await using next = await openQueue(directory.path);
  assert.deepEqual(await drain(next), []);
  assert.ok(foldersOf(directory.path, "ready").length <= 1);
});
