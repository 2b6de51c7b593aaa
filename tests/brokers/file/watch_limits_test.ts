/**
 * Watches that the system refuses for real: in a user namespace whose inotify limits are used up.
 */

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { onDeno, runCommand } from "../../support/program.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

const program = fileURLToPath(new URL("./deaf_consumer.ts", import.meta.url));

/** A command in a namespace of its own that grants no more of a resource. */
function without(resource: string, command: readonly string[]): string[] {
  return [
    "unshare",
    "-Ur",
    "sh",
    "-c",
    `echo 0 > /proc/sys/user/max_inotify_${resource} && exec "$@"`,
    "sh",
    ...command,
  ];
}

const [probe, ...rest] = without("watches", ["true"]);
const { status, stderr, error } = spawnSync(probe!, rest, { encoding: "utf8" });

for (
  const [resource, setting] of [["instances", "max_user_instances"], ["watches", "max_user_watches"]] as const
) {
  const name = `where inotify ${resource} are used up, an event says what to raise, and messages come by the poll`;
  if (status !== 0) {
    const why = (error?.message ?? stderr).trim();
    test(`left out: ${name}`, () => {
      console.log(`Left out "${name}": "unshare -Ur" is refused here (${why}); allow user namespaces to run it`);
    });
    continue;
  }
  test(name, async () => {
    using temporary = temporaryDirectory();
    const runtime = [process.execPath, ...(onDeno ? ["run", "-A", "--no-check"] : []), program];
    const { code, output } = await runCommand(without(resource, [...runtime, `${temporary.path}/queue`, "5"]));
    assert.equal(code, 0, output);
    const { whys, longest, texts } = JSON.parse(output.trim().split("\n").at(-1)!);
    assert.equal(whys.length, 1);
    assert.match(whys[0], new RegExp(`fs\\.inotify\\.${setting}`));
    assert.deepEqual(texts, Array.from({ length: 5 }, (_, index) => `message ${index}`));
    assert.equal(longest, 100, "the poll is the short one again");
  });
}
