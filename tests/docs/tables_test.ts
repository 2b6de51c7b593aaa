import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as queue from "../../mod.ts";
import { traits } from "../../src/testing/case.ts";
import { test } from "../support/test.ts";

const { capabilities, reasons } = queue;

/** The cells of a page's tables, row by row, without their code marks. */
function rowsOf(path: string): string[][] {
  const lines = readFileSync(path, "utf8").split("\n").filter((line) => line.startsWith("| "));
  return lines.map((line) => line.slice(1, -1).split("|").map((cell) => cell.trim().replaceAll("`", "")));
}

const readme = rowsOf("README.md");

test("the README lists every reason with its code", () => {
  const listed = readme.filter(([reason]) => reason! in reasons).map(([reason, code]) => [reason, Number(code)]);
  assert.deepEqual(listed, Object.entries(reasons).map(([reason, { code }]) => [reason, code]));
});

test("the README lists every capability with its methods, its guard and who has it", async () => {
  await using memory = queue.newMemory({ policy: { visibilityTimeout: 1, maxDeliveries: 1 } });
  const listed = readme.filter(([name]) => name! in capabilities);
  assert.deepEqual(listed.map(([name, methods]) => [name, methods!.split(", ")]), Object.entries(capabilities));
  for (const [name, , guard, inMemory] of listed) {
    assert.equal(guard, `is${name}`);
    const has = (queue as unknown as Record<string, (broker: unknown) => boolean>)[guard!]!;
    assert.equal(has(memory), inMemory === "yes", name);
  }
});

test("the guide for broker authors names every trait", () => {
  const named = rowsOf("docs/writing-a-broker.md").flatMap(([cell]) => cell!.split(", "));
  for (const trait of traits) assert.ok(named.includes(trait), trait);
});

test("the guide to consuming names every kind of event", () => {
  const kinds = [...readFileSync("src/consume/events.ts", "utf8").matchAll(/readonly kind: "(\w+)"/g)];
  assert.ok(kinds.length >= 9);
  const named = rowsOf("docs/consuming.md").flatMap(([cell]) => cell!.split(", "));
  for (const [, kind] of kinds) assert.ok(named.includes(kind!), kind);
});
