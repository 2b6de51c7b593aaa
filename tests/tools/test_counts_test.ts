import assert from "node:assert/strict";
import { runsTests } from "../../tools/runtimes.ts";
import { readCounts } from "../../tools/test_counts.ts";
import { test } from "../support/test.ts";

test("readCounts() reads each runner's closing lines", () => {
  assert.deepEqual(readCounts("Deno", "x\nok | 7 passed (4 steps) | 0 failed | 3 ignored (1 step) (22ms)\n"), {
    passed: 7,
    failed: 0,
    skipped: 3,
  });
  assert.deepEqual(readCounts("Deno", "FAILED | 3 passed (1 step) | 1 failed (15ms)\n"), {
    passed: 3,
    failed: 1,
    skipped: 0,
  });
  assert.deepEqual(readCounts("Bun", " 9 pass\n 3 skip\n 1 fail\n 1 error\nRan 13 tests across 1 file.\n"), {
    passed: 9,
    failed: 2,
    skipped: 3,
  });
  assert.deepEqual(readCounts("Node", "ℹ pass 9\nℹ fail 1\nℹ cancelled 2\nℹ skipped 0\nℹ todo 1\n"), {
    passed: 9,
    failed: 3,
    skipped: 1,
  });
});

test("readCounts() does not take a run without tests for a success", () => {
  assert.equal(readCounts("Deno", "error: Module not found\n"), undefined);
  assert.equal(readCounts("Bun", " 0 pass\n 0 fail\n"), undefined);
});

test("runsTests() knows from which version Node runs them", () => {
  for (const old of ["v20.20.2", "v22.18.0", "v23.6.0", "", "nonsense"]) assert.equal(runsTests(old), false, old);
  for (const fit of ["v24.0.1", "v26.1.0", "24.9.0"]) assert.equal(runsTests(fit), true, fit);
});
