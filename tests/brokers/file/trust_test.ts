import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { states } from "../../../src/brokers/file/queue_directory.ts";
import { isQueueError, type QueueError } from "../../../src/core/error.ts";
import { faultyOperations } from "../../support/file_faults.ts";
import { boundByPermissions, onDeno } from "../../support/program.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { pathsBelow } from "./on_disk.ts";
import { bytes, drain, openQueue } from "./queue.ts";

const modeOf = (path: string) => fs.statSync(path).mode & 0o7777;

/** Asserts that a directory is refused, and why. */
async function assertUnusable(dir: unknown, expected: Record<string, unknown>): Promise<QueueError> {
  let refusal: unknown;
  await assert.rejects(openQueue(dir as string), (error) => {
    refusal = error;
    return isQueueError(error, "QUEUE_DIRECTORY_UNUSABLE") && error.code === 210178;
  }, `${String(dir)} ${JSON.stringify(expected)}`);
  const { fields } = refusal as QueueError;
  assert.deepEqual({ ...fields, ...expected, field: "dir" }, fields);
  return refusal as QueueError;
}

test("what is no path is refused by field", async () => {
  await assertUnusable("", { state: "root", why: "empty" });
  for (const dir of [undefined, null, 42, {}, [], true, Symbol("dir"), new URL("file:///tmp/queue")]) {
    await assertUnusable(dir, { state: "root", why: "not-a-path", value: typeof dir });
  }
  await assertUnusable("/tmp/a\0b", { state: "root", why: "not-a-path" });
  await assert.rejects(newFile({ policy: { visibilityTimeout: 1, maxDeliveries: 1 } } as never), {
    reason: "QUEUE_DIRECTORY_UNUSABLE",
  });
});

test("a directory that is absent is made owner-only, its parents and folders too, and files are the owner's", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/a/b/queue`;
  await using jobs = await openQueue(`${dir}//`);
  await jobs.publish(bytes("alone"));
  await jobs.publishMany(["one", "two"].map(bytes));
  await jobs.publishOnce("key", bytes("once"), 1_000);
  await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
  const found = ["a", "a/b", ...pathsBelow(dir).map((path) => `a/b/queue/${path}`)];
  for (const state of states) assert.ok(found.includes(`a/b/queue/${state}`), state);
  for (const path of found) {
    const whole = `${directory.path}/${path}`;
    assert.equal(modeOf(whole), fs.lstatSync(whole).isDirectory() ? 0o700 : 0o600, path);
  }
});

test("nothing is more open than the mask of the process allows", async () => {
  using directory = temporaryDirectory();
  const mask = process.umask(0o000);
  try {
    await using jobs = await openQueue(`${directory.path}/queue`);
    await jobs.publish(bytes("one"));
    for (const path of pathsBelow(directory.path)) {
      assert.equal(modeOf(`${directory.path}/${path}`) & 0o077, 0, path);
    }
  } finally {
    process.umask(mask);
  }
});

test("opening again changes no mode and loses nothing", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  await (await openQueue(dir)).close();
  fs.chmodSync(dir, 0o770);
  for (const state of states) fs.chmodSync(`${dir}/${state}`, 0o750);
  {
    await using jobs = await openQueue(dir);
    await jobs.publish(bytes("kept"));
  }
  await using again = await openQueue(dir);
  assert.equal(modeOf(dir), 0o770, "group members may share a queue");
  for (const state of states) assert.equal(modeOf(`${dir}/${state}`), 0o750);
  assert.deepEqual(await drain(again), ["kept"]);
});

test("a root that outsiders can write to is refused, unless it is sticky", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  fs.mkdirSync(dir);
  fs.chmodSync(dir, 0o777);
  await assertUnusable(dir, { state: "root", value: dir, why: "world-writable", observed: "0777" });
  assert.deepEqual(fs.readdirSync(dir), [], "nothing was made in it");
  fs.chmodSync(dir, 0o702);
  await assertUnusable(dir, { state: "root", why: "world-writable", observed: "0702" });
  fs.chmodSync(dir, 0o1777);
  await using jobs = await openQueue(dir);
  await jobs.publish(bytes("one"));
});

for (const state of [...states, "leased/0000000000000-0000000000"]) {
  test(`the folder "${state}" is refused when outsiders can write to it, or when it is none`, async () => {
    using directory = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    await (await openQueue(dir)).close();
    const path = `${dir}/${state}`;
    for (const [mode, why] of [[0o777, "world-writable"], [0o1777, "sticky-world-writable"]] as const) {
      fs.chmodSync(path, mode);
      await assertUnusable(dir, { state, value: path, why, observed: `0${mode.toString(8)}` });
    }
    fs.chmodSync(path, 0o770);
    await (await openQueue(dir)).close();
    fs.renameSync(path, `${directory.path}/moved`);
    for (const target of [`${directory.path}/moved`, "nowhere"]) {
      fs.symlinkSync(target, path);
      await assertUnusable(dir, { state, value: path, why: "symlink" });
      fs.unlinkSync(path);
    }
    fs.writeFileSync(path, "");
    await assertUnusable(dir, { state, value: path, why: "not-a-directory" });
    fs.unlinkSync(path);
    await (await openQueue(dir)).close();
    assert.equal(modeOf(path), 0o700, "made anew");
  });
}

test("a file as the directory is refused, and a directory below a file as well", async () => {
  using directory = temporaryDirectory();
  const file = `${directory.path}/file`;
  fs.writeFileSync(file, "kept");
  await assertUnusable(file, { state: "root", value: file, why: "not-a-directory" });
  await assert.rejects(openQueue(`${file}/queue`), (error) => {
    return isQueueError(error, "QUEUE_BACKEND_FAILED") && error.fields.code === "ENOTDIR";
  });
  assert.equal(fs.readFileSync(file, "utf8"), "kept");
});

test("a link given as the directory is followed, and what it points at is audited", async () => {
  using directory = temporaryDirectory();
  const real = `${directory.path}/real`;
  const spelled = `${directory.path}/link`;
  fs.mkdirSync(real, 0o700);
  fs.symlinkSync(real, spelled);
  await using jobs = await openQueue(spelled);
  await jobs.publish(bytes("one"));
  assert.ok(fs.existsSync(`${real}/ready`));
  fs.chmodSync(real, 0o777);
  await assertUnusable(spelled, { state: "root", value: real, why: "world-writable" });
  fs.chmodSync(real, 0o700);
  fs.symlinkSync(`${directory.path}/nowhere`, `${directory.path}/dangling`);
  await assert.rejects(openQueue(`${directory.path}/dangling`), { reason: "QUEUE_BACKEND_FAILED" });
  assert.equal(fs.existsSync(`${directory.path}/nowhere`), false);
});

test("the parents of the directory are not audited", async () => {
  using directory = temporaryDirectory();
  fs.mkdirSync(`${directory.path}/open`);
  fs.chmodSync(`${directory.path}/open`, 0o777);
  await using jobs = await openQueue(`${directory.path}/open/queue`);
  await jobs.publish(bytes("one"));
});

test("folders that another opener made are flushed by whoever finds it may have died before it did", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const flushes = async () => {
    const { operations, calls } = faultyOperations();
    await (await openQueue(dir, { operations })).close();
    return calls.get("flush") ?? 0;
  };
  assert.ok(await flushes() >= 3);
  assert.equal(await flushes(), 0, "once is enough");
  fs.unlinkSync(`${dir}/wake/signal`);
  assert.ok(await flushes() >= 3, "without the sign of a flush it is done again");
  fs.rmdirSync(`${dir}/dead`);
  assert.ok(await flushes() >= 3, "what is made is flushed");
});

test("of openers that race for an absent directory all succeed", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/a/b/queue`;
  const brokers = await Promise.all(Array.from({ length: 8 }, () => openQueue(dir)));
  await Promise.all(brokers.map((jobs, index) => jobs.publish(bytes(String(index)))));
  assert.equal((await drain(brokers[0]!)).length, 8);
  await Promise.all(brokers.map((jobs) => jobs.close()));
});

// Only root can give a directory to somebody else.
if (process.getuid?.() === 0) {
  test("a directory that belongs to another user is refused by the file system, in so many words", async () => {
    using directory = temporaryDirectory();
    using home = temporaryDirectory();
    const dir = `${directory.path}/queue`;
    await (await openQueue(dir)).close();
    for (const path of [directory.path, dir]) fs.chownSync(path, 65_534, 65_534);
    fs.chmodSync(directory.path, 0o755);
    const program = fileURLToPath(new URL("./open_only.ts", import.meta.url));
    const run = async (target: string) => {
      const runtime = [process.execPath, ...(onDeno ? ["run", "-A", "--no-check"] : [])];
      const [command, ...args] = [...boundByPermissions, ...runtime, program, target];
      const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"] });
      let output = "";
      child.stdout.on("data", (text) => output += text);
      child.stderr.on("data", (text) => output += text);
      await new Promise((resolve) => child.on("close", resolve));
      return output;
    };
    assert.equal(await run(`${home.path}/own`), "opened\n");
    assert.equal(await run(dir), "QUEUE_BACKEND_FAILED EACCES\n");
    assert.equal(await run(`${dir}/below`), "QUEUE_BACKEND_FAILED EACCES\n");
    assert.equal(await run(`${directory.path}/new`), "QUEUE_BACKEND_FAILED EACCES\n");
  });
}
