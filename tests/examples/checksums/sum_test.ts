import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { describeUnreadable, mayPass, type Sum, sumFile, UnreadableFile } from "../../../examples/checksums/sum.ts";
import { test } from "../../support/test.ts";
import { bytes, makeFile, runIn, withFolder } from "./folder.ts";

const never = new AbortController().signal;

function expected(content: string | Uint8Array): Sum {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  return { sha256: createHash("sha256").update(bytes).digest("hex"), bytes: bytes.length };
}

function failsWith(code: string): (error: unknown) => boolean {
  return (error) => error instanceof UnreadableFile && error.code === code;
}

test("sumFile() hashes empty files and files of many pieces", () =>
  withFolder(async (folder) => {
    const large = new Uint8Array(3_000_001).map((_, index) => index % 251);
    writeFileSync(`${folder}/empty`, "");
    writeFileSync(`${folder}/large`, large);
    assert.deepEqual(await sumFile(folder, bytes("empty"), never), expected(""));
    assert.deepEqual(await sumFile(folder, bytes("large"), never), expected(large));
  }));

test("sumFile() reads names of any bytes", () =>
  withFolder(async (folder) => {
    const names = [
      "\xff\xfe",
      "\xe9/-n",
      "\xff\n",
      "\xff\\0101 $(id) `x` 'q' \"q\" %s",
      "-\xff",
      "\n",
      "\xef\xbb\xbfbom",
      "a\\b",
    ];
    for (const name of names) makeFile(folder, bytes(name), `in ${name.length}`);
    for (const name of names) {
      assert.deepEqual(await sumFile(folder, bytes(name), never), expected(`in ${name.length}`), JSON.stringify(name));
    }
  }));

test("sumFile() names the system's code where there is no regular file", () =>
  withFolder(async (folder) => {
    mkdirSync(`${folder}/sub`);
    writeFileSync(`${folder}/file`, "");
    symlinkSync("file", `${folder}/link`);
    runIn(folder, "mkfifo", "pipe");
    await assert.rejects(sumFile(folder, bytes("gone"), never), failsWith("ENOENT"));
    await assert.rejects(sumFile(folder, bytes("gone \xff"), never), failsWith("ENOENT"));
    await assert.rejects(sumFile(folder, bytes("sub"), never), failsWith("EINVAL"));
    await assert.rejects(sumFile(folder, bytes("pipe"), never), failsWith("EINVAL"));
    await assert.rejects(sumFile(folder, bytes("link"), never), failsWith("ELOOP"));
    await assert.rejects(sumFile(folder, bytes("file/inner"), never), failsWith("ENOTDIR"));
  }));

test("sumFile() stops between two pieces when its signal aborts", () =>
  withFolder(async (folder) => {
    writeFileSync(`${folder}/file`, "content");
    const reason = new Error("Stopped");
    await assert.rejects(sumFile(folder, bytes("file"), AbortSignal.abort(reason)), reason);
  }));

test("describeUnreadable() and the error name no file", () => {
  const error = new UnreadableFile("ENOENT");
  assert.equal(describeUnreadable(error), "ENOENT: the file does not exist");
  assert.equal(describeUnreadable(new UnreadableFile("EXDEV")), "EXDEV");
  assert.equal(error.message, "Cannot read the file: ENOENT");
});

test("mayPass() retries what may go away, and failures that it does not know", () => {
  assert.equal(mayPass(new UnreadableFile("ENOENT")), false);
  assert.equal(mayPass(new UnreadableFile("EMFILE")), true);
  assert.equal(mayPass(new Error("Anything")), true);
});
