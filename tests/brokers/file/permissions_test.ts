import assert from "node:assert/strict";
import { openFile } from "../../../src/brokers/file/new_file.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { fileURLToPath } from "node:url";
import { onDeno, type ProgramEnd, runFile, runRuntime } from "../../support/program.ts";
import { freshOperations } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

const program = fileURLToPath(new URL("./every_verb.ts", import.meta.url));

function assertEveryVerb({ code, output }: ProgramEnd): void {
  assert.equal(code, 0, output);
  assert.equal(output, "every verb\n");
}

test("every verb works in a directory that is not there yet", async () => {
  using temporary = temporaryDirectory();
  assertEveryVerb(await runFile(program, [`${temporary.path}/queue`]));
});

// Permissions are Deno's alone.
if (onDeno) {
  const runWith = (permissions: readonly string[], args: readonly string[] = []) =>
    runRuntime(["run", "--no-prompt", "--no-check", ...permissions, program, ...args]);

  test("the file broker needs to read and write its directory, and no more", async () => {
    using temporary = temporaryDirectory();
    const dir = `${temporary.path}/queue`;
    assertEveryVerb(await runWith([`--allow-read=${dir}`, `--allow-write=${dir}`], [dir]));
  });

  test("the file broker needs both permissions, and for a missing parent those of the parent", async () => {
    using temporary = temporaryDirectory();
    const dir = `${temporary.path}/queue`;
    const deep = `${temporary.path}/not there/queue`;
    const refusals = [
      await runWith([`--allow-read=${dir}`], [dir]),
      await runWith([`--allow-write=${dir}`], [dir]),
      await runWith([`--allow-read=${deep}`, `--allow-write=${deep}`], [deep]),
    ];
    for (const { code, output } of refusals) {
      assert.equal(code, 1, output);
      assert.match(output, /QUEUE_BACKEND_FAILED|Cannot open the queue directory: the file system answered NotCapable/);
      assert.match(output, /NotCapable: Requires (?:read|write) access to /);
    }
  });

  test("the memory broker needs no permission", async () => {
    assertEveryVerb(await runWith([]));
  });
}

test("what is not permitted is not even tried: on a terminal Deno would ask for it", async () => {
  using temporary = temporaryDirectory();
  const dir = `${temporary.path}/queue`;
  const inner = freshOperations();
  const opened: string[] = [];
  const operations: FileOperations = {
    ...inner,
    isPermitted: (path) => path === dir || path.startsWith(`${dir}/`),
    open: (path) => {
      opened.push(path);
      return inner.open(path);
    },
  };
  const policy = { visibilityTimeout: 30_000, maxDeliveries: 5 };
  await using jobs = await openFile({ dir, policy }, operations);
  await jobs.publish(new Uint8Array(1));
  assert.ok(opened.length > 0);
  assert.deepEqual(opened.filter((path) => !operations.isPermitted(path)), []);
});
