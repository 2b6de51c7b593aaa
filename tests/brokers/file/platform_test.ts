import assert from "node:assert/strict";
import fs from "node:fs";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { currentPlatform, nodeOperations } from "../../../src/brokers/file/node_operations.ts";
import { isQueueError } from "../../../src/core/error.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

const refused = (error: unknown) => isQueueError(error, "UNSUPPORTED_PLATFORM") && error.code === 262401;

/** Runs a body with another value of a global. */
async function withGlobal(name: string, value: unknown, body: () => Promise<void>): Promise<void> {
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, name)!;
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  try {
    await body();
  } finally {
    Object.defineProperty(globalThis, name, descriptor);
  }
}

test("Windows is refused before any module is asked for", () => {
  assert.throws(() => nodeOperations({ name: "win32", builtin: () => assert.fail("asked for a module") }), refused);
});

test("a platform without a process object, or without built-in modules, is refused", async () => {
  for (const process of [undefined, {}, { platform: "linux" }]) {
    await withGlobal("process", process, async () => {
      assert.throws(() => currentPlatform(), refused);
      await Promise.resolve();
    });
  }
  assert.equal(typeof currentPlatform().name, "string", "and this one is not");
});

test("newFile touches nothing where it is refused", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const policy = { visibilityTimeout: 1_000, maxDeliveries: 1 };
  // A module of its own, so that nothing was opened with it yet.
  const fresh = await import("../../../src/brokers/file/new_file.ts?fresh") as { newFile: typeof newFile };
  const windows = {
    platform: "win32",
    getBuiltinModule: () => assert.fail("asked for a module"),
  };
  await withGlobal("process", windows, () => assert.rejects(fresh.newFile({ dir, policy }), refused));
  await withGlobal("process", undefined, () => assert.rejects(fresh.newFile({ dir, policy }), refused));
  assert.equal(fs.existsSync(dir), false);
});

test("a bad policy is refused before the platform and the directory are looked at", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const policy = { visibilityTimeout: 0, maxDeliveries: 1 };
  await assert.rejects(newFile({ dir, policy }), (error) => isQueueError(error, "QUEUE_MISCONFIGURED"));
  await assert.rejects(newFile(undefined as never), (error) => isQueueError(error, "QUEUE_MISCONFIGURED"));
  assert.equal(fs.existsSync(dir), false);
});
