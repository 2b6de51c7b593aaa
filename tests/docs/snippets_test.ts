import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { onDeno, runFile, runRuntime } from "../support/program.ts";
import { test } from "../support/test.ts";
import { allSnippets, extractSnippets, localImports, type Snippet, writeSnippets } from "./snippets.ts";

/** Hands over the snippets as files inside the repository, where it can import itself by name, and removes them. */
async function withSnippets(snippets: readonly Snippet[], use: (paths: string[]) => Promise<void>): Promise<void> {
  mkdirSync(".snippets", { recursive: true });
  const folder = mkdtempSync(resolve(".snippets", "run-"));
  try {
    await use(writeSnippets(folder, snippets));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("extractSnippets() finds the blocks of pages and of doc comments", () => {
  const fence = "```";
  const page = `# Title\n${fence}ts\nconst a = 1;\n${fence}\n${fence}sh\nls\n${fence}\n`;
  assert.deepEqual(extractSnippets("a.md", page), [{ source: "a.md", line: 3, code: "const a = 1;" }]);
  const code = `/**\n * Text.\n * ${fence}ts\n * if (x) {\n *   y();\n * }\n * ${fence}\n */\n`;
  assert.deepEqual(extractSnippets("a.ts", code), [{ source: "a.ts", line: 4, code: "if (x) {\n  y();\n}" }]);
  assert.throws(() => extractSnippets("a.md", `${fence}ts\n`), /no end/);
});

test("localImports() maps the package and its entry points, with a version and without", () => {
  assert.equal(localImports(`import "jsr:@x/queue";`), `import "@x/queue";`);
  assert.equal(localImports(`import "jsr:@x/queue@^0.1/memory";`), `import "@x/queue/memory";`);
  assert.equal(localImports(`import 'jsr:@x/queue/testing';`), `import '@x/queue/testing';`);
  assert.equal(localImports(`import "jsr:@std/testing";`), `import "jsr:@std/testing";`);
});

test("the README and the doc comments hold snippets", () => {
  const sources = new Set(allSnippets().map(({ source }) => source));
  for (const source of ["README.md", "mod.ts", "src/testing/conformance.ts"]) assert.ok(sources.has(source), source);
});

test("every snippet runs to its end", async (t) => {
  const bySource = Map.groupBy(allSnippets(), ({ source }) => source);
  for (const [source, snippets] of bySource) {
    await t.step(source, () =>
      withSnippets(snippets, async (paths) => {
        const cwd = mkdtempSync(join(tmpdir(), "x-queue-"));
        try {
          const { code, output } = await runFile(resolve("tests/docs/run_snippets.ts"), paths, cwd);
          assert.equal(code, 0, output);
          assert.equal(output.split("\n").filter((line) => line.startsWith("done ")).length, paths.length, output);
        } finally {
          rmSync(cwd, { recursive: true, force: true });
        }
      }));
  }
});

// Types do not depend on what runs the tests, and Deno alone brings a checker along.
if (onDeno) {
  test("every snippet passes the type check", async () => {
    await withSnippets(allSnippets(), async (paths) => {
      const { code, output } = await runRuntime(["check", ...paths]);
      assert.equal(code, 0, output);
    });
  });
}
