import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { findFiles } from "../../tools/files.ts";
import { test } from "../support/test.ts";

const root = new URL("../../", import.meta.url);

function readText(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}

function readJson(path: string): Record<string, unknown> {
  return JSON.parse(readText(path));
}

test("jsr.json repeats what deno.json says about the package", () => {
  const deno = readJson("deno.json");
  const jsr = readJson("jsr.json");
  for (const field of ["name", "version", "license", "exports", "publish"]) {
    assert.notEqual(deno[field], undefined, field);
    assert.deepEqual(jsr[field], deno[field], field);
  }
  assert.deepEqual(Object.keys(jsr).sort(), ["exports", "license", "name", "publish", "version"]);
});

test("package.json agrees with deno.json", () => {
  const deno = readJson("deno.json");
  const npm = readJson("package.json");
  for (const field of ["name", "version", "license", "exports"]) assert.deepEqual(npm[field], deno[field], field);
  assert.equal(npm.dependencies, undefined, "there is no run-time dependency");
  const lock = readJson("package-lock.json");
  assert.equal(lock.version, npm.version);
  assert.deepEqual(
    (lock.packages as Record<string, { devDependencies: unknown }>)[""]!.devDependencies,
    npm.devDependencies,
  );
});

test("no lock file names a registry host", () => {
  assert.doesNotMatch(readText("package-lock.json"), /"resolved"|\.tgz/);
  assert.doesNotMatch(readText("deno.lock"), /https?:|\.tgz/);
});

test("deno.json imports nothing by itself: packages are package.json's", () => {
  assert.equal(readJson("deno.json").imports, undefined);
});

test("only tests/jsr/ imports from JSR, which plain npm and Bun do not reach", () => {
  const code = findFiles(".", (path) => path.endsWith(".ts") && !path.startsWith("tests/jsr/"));
  const importing = code.filter((path) => /^\s*(import|export)\b[^;]*["'](jsr:|https?:)/m.test(readText(path)));
  assert.deepEqual(importing, []);
});
