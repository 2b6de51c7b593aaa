/**
 * One way to register tests on Deno (with its sanitizers on), Bun and Node.
 *
 * @module
 */

/** What a test function gets. */
export interface TestContext {
  /** Runs a nested test; await it. */
  step(name: string, body: (t: TestContext) => void | Promise<void>): Promise<void>;
}

/** Registers a test. */
export type Test = (name: string, body: (t: TestContext) => void | Promise<void>) => void;

interface DenoContext {
  step(name: string, body: (t: DenoContext) => void | Promise<void>): Promise<boolean>;
}

function fromDeno(t: DenoContext): TestContext {
  return { step: async (name, body) => void await t.step(name, (inner) => body(fromDeno(inner))) };
}

async function makeTest(): Promise<Test> {
  if ("Deno" in globalThis) {
    return (name, body) =>
      Deno.test({
        name,
        fn: (t) => body(fromDeno(t as unknown as DenoContext)),
        sanitizeOps: true,
        sanitizeResources: true,
        sanitizeExit: true,
      });
  }
  const { test } = await import("node:test");
  type NodeContext = { test(name: string, body: (t: NodeContext) => Promise<void>): Promise<void> };
  const fromNode = (t: NodeContext): TestContext => ({
    step: (name, body) => t.test(name, async (inner) => await body(fromNode(inner))),
  });
  return (name, body) => void test(name, async (t) => await body(fromNode(t as unknown as NodeContext)));
}

/** Registers a test: `test("receive() leaves an empty queue alone", async () => { ... })`. */
export const test: Test = await makeTest();
