import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { currentRuntime } from "../support/runtimes.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { test } from "../support/test.ts";

const program = fileURLToPath(new URL("./descriptors.ts", import.meta.url));

test("a process without a descriptor left is told so, loses nothing, and goes on when it has some", () => {
  using directory = temporaryDirectory();
  const { command, args } = currentRuntime();
  const limited = ["-c", 'ulimit -n 256 && exec "$@"', "sh", command, ...args, program, `${directory.path}/queue`];
  const { status, stdout, stderr } = spawnSync("sh", limited, { encoding: "utf8" });
  assert.equal(stdout, "survived\n", `ended with ${status}: ${stderr}`);
});
