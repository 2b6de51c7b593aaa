import assert from "node:assert/strict";
import { runFile } from "../support/program.ts";
import { test } from "../support/test.ts";

for (const entry of ["mod.ts", "src/brokers/memory/mod.ts"]) {
  test(`${entry} bundles for the browser without a static import of a node: module`, async () => {
    const { code, output } = await runFile("tests/bundle/bundle.ts", ["code", entry]);
    assert.equal(code, 0, output);
    assert.doesNotMatch(output, /^\s*(import|export)\b[^;]*["']node:/m);
    assert.doesNotMatch(output, /\b(import|require)\(\s*["']node:/);
    assert.match(output, /newMemory/);
  });

  test(`${entry} runs in an edge runtime, its broker made in global scope`, async () => {
    const { code, output } = await runFile("tests/bundle/bundle.ts", ["edge", entry]);
    assert.equal(code, 0, output);
    assert.deepEqual(JSON.parse(output), {
      payload: "work",
      sameId: true,
      deliveries: [1, 2],
      hidden: 0,
      late: "LEASE_EXPIRED",
      left: 0,
      woken: false,
    });
  });
}
