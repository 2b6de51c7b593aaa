/**
 * The double of the file operations against every clause of the crash model, and against the file system that it stands for.
 */

import assert from "node:assert/strict";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { freshOperations } from "../support/file_processes.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { test } from "../support/test.ts";
import { Disk, ProcessDied } from "./disk.ts";
import { Random } from "./random.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (data: Uint8Array) => new TextDecoder().decode(data);

function write(operations: FileOperations, path: string, content: string): number {
  const descriptor = operations.create(path);
  void operations.write(descriptor, bytes(content));
  return descriptor;
}

async function flush(operations: FileOperations, path: string): Promise<void> {
  await operations.flush(operations.open(path));
}

/** A disk with flushed folders `/a` and `/b`, and in `/a` a flushed file for each name. */
async function prepare(...names: string[]): Promise<{ disk: Disk; operations: FileOperations }> {
  const disk = new Disk();
  const operations = disk.process();
  operations.makeDirectory("/a");
  operations.makeDirectory("/b");
  await flush(operations, "/");
  for (const name of names) await operations.flush(write(operations, `/a/${name}`, `content of ${name}`));
  await flush(operations, "/a");
  return { disk, operations };
}

/** What many power cuts leave of a folder's names, each outcome once. */
function outcomes(disk: Disk, ...folders: string[]): string[] {
  const seen = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    const after = disk.cutPower(new Random(seed), 0.5);
    seen.add(folders.map((folder) => `${folder}: ${after.names(folder).sort().join(" ")}`).join(", "));
  }
  return [...seen].sort();
}

test("a rename that was not flushed is whole or not at all", async () => {
  const { disk, operations } = await prepare("x");
  operations.rename("/a/x", "/b/y");
  assert.deepEqual(outcomes(disk, "/a", "/b"), ["/a: , /b: y", "/a: x, /b: "]);
  await flush(operations, "/b");
  assert.deepEqual(outcomes(disk, "/a", "/b"), ["/a: , /b: y"]);
});

test("flushing the folder that a rename left makes it durable too", async () => {
  const { disk, operations } = await prepare("x");
  operations.rename("/a/x", "/b/y");
  await flush(operations, "/a");
  assert.deepEqual(outcomes(disk, "/a", "/b"), ["/a: , /b: y"]);
});

test("links and unlinks that were not flushed are lost independently", async () => {
  const { disk, operations } = await prepare("x", "y");
  operations.link("/a/x", "/b/x");
  operations.unlink("/a/y");
  assert.deepEqual(outcomes(disk, "/a", "/b"), ["/a: x y, /b: ", "/a: x y, /b: x", "/a: x, /b: ", "/a: x, /b: x"]);
});

test("a move is never kept without the one that it builds on", async () => {
  const { disk, operations } = await prepare("x");
  operations.rename("/a/x", "/b/y");
  operations.rename("/b/y", "/b/z");
  assert.deepEqual(outcomes(disk, "/a", "/b"), ["/a: , /b: y", "/a: , /b: z", "/a: x, /b: "]);
});

test("what was begun after a flush began is no part of it", async () => {
  const { disk, operations } = await prepare("x", "y");
  let release = () => {};
  disk.park = () => new Promise((resolve) => release = resolve);
  operations.rename("/a/x", "/b/x");
  const flushing = flush(operations, "/b");
  operations.rename("/a/y", "/b/y");
  release();
  await flushing;
  assert.deepEqual(outcomes(disk, "/b"), ["/b: x", "/b: x y"]);
});

test("data that was not flushed is absent or torn, data that was is whole", async () => {
  const { disk, operations } = await prepare();
  const descriptor = write(operations, "/a/new", "twelve bytes");
  await flush(operations, "/a");
  const left = new Set<string>();
  for (let seed = 0; seed < 200; seed++) {
    const [file] = disk.cutPower(new Random(seed), 1).files("/a");
    left.add(text(file!.data));
  }
  assert.ok(left.has("") && left.has("twelve bytes") && left.has("twelve\0\0\0\0\0\0") && left.has("twelve"));
  await operations.flush(descriptor);
  for (let seed = 0; seed < 20; seed++) {
    assert.equal(text(disk.cutPower(new Random(seed), 0).files("/a")[0]!.data), "twelve bytes");
  }
});

test("flushing a file says nothing of its name", async () => {
  const { disk, operations } = await prepare();
  await operations.flush(write(operations, "/a/new", "content"));
  assert.deepEqual(outcomes(disk, "/a"), ["/a: ", "/a: new"]);
});

test("a folder that is not flushed in its parent is absent with all it holds, flushed or not", async () => {
  const { disk, operations } = await prepare("x");
  operations.makeDirectory("/b/new");
  operations.rename("/a/x", "/b/new/x");
  await flush(operations, "/b/new");
  const seen = outcomes(disk, "/a", "/b", "/b/new");
  assert.deepEqual(seen, ["/a: , /b: , /b/new: ", "/a: , /b: new, /b/new: x"]);
  await flush(operations, "/b");
  assert.deepEqual(outcomes(disk, "/b/new"), ["/b/new: x"]);
});

test("a folder's removal is kept only together with what emptied it", async () => {
  const { disk, operations } = await prepare("x");
  operations.makeDirectory("/b/old");
  operations.rename("/a/x", "/b/old/x");
  await flush(operations, "/b/old");
  await flush(operations, "/b");
  operations.unlink("/b/old/x");
  operations.removeDirectory("/b/old");
  assert.deepEqual(outcomes(disk, "/b", "/b/old"), ["/b: , /b/old: ", "/b: old, /b/old: ", "/b: old, /b/old: x"]);
});

test("a killed process takes no further step, and the disk stays as it is", async () => {
  const { disk, operations } = await prepare("x");
  operations.rename("/a/x", "/b/x");
  disk.kill();
  assert.throws(() => operations.unlink("/b/x"), ProcessDied);
  assert.deepEqual(disk.names("/b"), ["x"]);
  disk.process().unlink("/b/x");
  assert.deepEqual(disk.names("/b"), []);
});

test("a copy is the disk as it is, flushed or not", async () => {
  const { disk, operations } = await prepare("x");
  operations.rename("/a/x", "/b/x");
  const copy = disk.copy();
  assert.equal(copy.print(), disk.print());
  operations.unlink("/b/x");
  assert.notEqual(copy.print(), disk.print());
});

/** What both the double and a real file system must do alike. */
const alike: readonly (readonly [what: string, run: (operations: FileOperations, root: string) => unknown])[] = [
  ["a rename onto another link of the same file does nothing", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.link(`${root}/x`, `${root}/y`);
    operations.rename(`${root}/x`, `${root}/y`);
    return [operations.list(root).sort(), operations.status(`${root}/x`).links];
  }],
  ["a rename over another file replaces it", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content of x"));
    operations.close(write(operations, `${root}/y`, "content"));
    operations.rename(`${root}/x`, `${root}/y`);
    return [operations.list(root), operations.status(`${root}/y`).size];
  }],
  ["removing a folder that holds something is refused", async (operations, root) => {
    operations.makeDirectory(`${root}/folder`);
    operations.close(write(operations, `${root}/folder/x`, "content"));
    await operations.removeDirectory(`${root}/folder`);
  }],
  ["removing an absent folder is refused", (operations, root) => operations.removeDirectory(`${root}/folder`)],
  ["making a folder twice is refused", (operations, root) => {
    operations.makeDirectory(`${root}/folder`);
    operations.makeDirectory(`${root}/folder`);
  }],
  ["making a folder in an absent one is refused", (operations, root) => operations.makeDirectory(`${root}/no/folder`)],
  ["creating a file twice is refused", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.create(`${root}/x`);
  }],
  ["a link to an absent file is refused", (operations, root) => operations.link(`${root}/x`, `${root}/y`)],
  ["a link under a name that is taken is refused", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.close(write(operations, `${root}/y`, "content"));
    operations.link(`${root}/x`, `${root}/y`);
  }],
  ["renaming what is absent is refused", (operations, root) => operations.rename(`${root}/x`, `${root}/y`)],
  ["a rename into an absent folder is refused", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.rename(`${root}/x`, `${root}/no/x`);
  }],
  ["a rename into a folder that was removed is refused", async (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.makeDirectory(`${root}/folder`);
    await operations.removeDirectory(`${root}/folder`);
    operations.rename(`${root}/x`, `${root}/folder/x`);
  }],
  ["removing an absent name is refused", (operations, root) => operations.unlink(`${root}/x`)],
  ["listing an absent folder is refused", (operations, root) => operations.list(`${root}/no`)],
  ["listing a file is refused", (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    operations.list(`${root}/x`);
  }],
  ["what is open stays readable under no name", async (operations, root) => {
    operations.close(write(operations, `${root}/x`, "content"));
    const descriptor = operations.open(`${root}/x`);
    operations.unlink(`${root}/x`);
    const read = text(await operations.read(descriptor, 3, 100));
    operations.close(descriptor);
    return read;
  }],
  ["writes append", async (operations, root) => {
    const writing = write(operations, `${root}/x`, "one ");
    await operations.write(writing, bytes("two"));
    operations.close(writing);
    const descriptor = operations.open(`${root}/x`);
    const read = text(await operations.read(descriptor, 0, 100));
    operations.close(descriptor);
    return read;
  }],
];

/** What a call gave or the code of its refusal. */
async function outcomeOf(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return (error as { code?: string }).code;
  }
}

for (const [what, run] of alike) {
  test(`${what}, on the double as on a file system`, async () => {
    using real = temporaryDirectory();
    const disk = new Disk().process();
    disk.makeDirectory("/root");
    const expected = await outcomeOf(() => run(freshOperations(), real.path));
    assert.deepEqual(await outcomeOf(() => run(disk, "/root")), expected);
    assert.ok(!what.endsWith("refused") || /^E[A-Z]+$/.test(String(expected)), `refused with ${expected}`);
  });
}
