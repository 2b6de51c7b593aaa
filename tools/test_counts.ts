/**
 * Reading how many tests passed and failed from what the three test runners print.
 *
 * @module
 */

/** A runtime that the tests run on. */
export type RuntimeName = "Deno" | "Bun" | "Node";

/** What one runner reported. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const patterns: Readonly<Record<RuntimeName, Readonly<Record<keyof Counts, readonly RegExp[]>>>> = {
  Deno: {
    passed: [/^(?:ok|FAILED) \| (\d+) passed/m],
    failed: [/^(?:ok|FAILED) \|.* (\d+) failed/m],
    skipped: [/^(?:ok|FAILED) \|.* (\d+) ignored/m, /^(?:ok|FAILED) \|.* (\d+) filtered out/m],
  },
  Bun: {
    passed: [/^ *(\d+) pass$/m],
    failed: [/^ *(\d+) fail$/m, /^ *(\d+) errors?$/m],
    skipped: [/^ *(\d+) skip$/m, /^ *(\d+) todo$/m],
  },
  Node: {
    passed: [/^(?:ℹ|#) pass (\d+)$/m],
    failed: [/^(?:ℹ|#) fail (\d+)$/m, /^(?:ℹ|#) cancelled (\d+)$/m],
    skipped: [/^(?:ℹ|#) skipped (\d+)$/m, /^(?:ℹ|#) todo (\d+)$/m],
  },
};

/** The counts in a runner's output, or `undefined` where it holds no summary or no test ran. */
export function readCounts(runtime: RuntimeName, output: string): Counts | undefined {
  // deno-lint-ignore no-control-regex
  const plain = output.replace(/\u001b\[[\d;]*m/g, "");
  const sum = (field: keyof Counts) =>
    patterns[runtime][field].reduce((total, pattern) => total + Number(pattern.exec(plain)?.[1] ?? 0), 0);
  const counts: Counts = { passed: sum("passed"), failed: sum("failed"), skipped: sum("skipped") };
  return counts.passed + counts.failed === 0 ? undefined : counts;
}
