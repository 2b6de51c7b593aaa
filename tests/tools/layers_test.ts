import assert from "node:assert/strict";
import { edgesOf, judgeEdge, layerOf } from "../../tools/layers.ts";
import { test } from "../support/test.ts";

test("layerOf() names the folder below src, and a broker's own folder", () => {
  assert.equal(layerOf("src/core/capabilities/ack.ts"), "core");
  assert.equal(layerOf("src/brokers/file/names.ts"), "brokers/file");
  assert.equal(layerOf("mod.ts"), undefined);
  assert.equal(layerOf("tests/core/ids_test.ts"), undefined);
});

const accepted: readonly (readonly [from: string, to: string])[] = [
  ["mod.ts", "src/brokers/memory/mod.ts"],
  ["src/core/mod.ts", "src/core/ids.ts"],
  ["src/consume/consume.ts", "src/core/mod.ts"],
  ["src/testing/mod.ts", "src/core/mod.ts"],
  ["src/brokers/memory/mod.ts", "src/core/mod.ts"],
  ["src/brokers/file/directory.ts", "node:fs"],
  ["src/tasks/pool.ts", "src/consume/mod.ts"],
];

const refused: readonly (readonly [from: string, to: string])[] = [
  ["src/core/mod.ts", "src/consume/mod.ts"],
  ["src/core/ids.ts", "node:crypto"],
  ["src/core/ids.ts", "npm:ulid"],
  ["src/core/ids.ts", "https://example.com/mod.ts"],
  ["src/consume/consume.ts", "src/brokers/memory/mod.ts"],
  ["src/testing/mod.ts", "src/consume/mod.ts"],
  ["src/testing/mod.ts", "src/brokers/memory/mod.ts"],
  ["src/testing/mod.ts", "node:assert"],
  ["src/brokers/memory/mod.ts", "src/brokers/file/mod.ts"],
  ["src/brokers/file/mod.ts", "src/consume/mod.ts"],
  ["src/brokers/memory/mod.ts", "node:fs"],
  ["src/consume/mod.ts", "mod.ts"],
  ["src/core/mod.ts", "tests/support/test.ts"],
  ["mod.ts", "tools/layers.ts"],
];

test("judgeEdge() lets every arrow through that the layers allow", () => {
  for (const [from, to] of accepted) assert.equal(judgeEdge({ from, to }), undefined, `${from} -> ${to}`);
});

test("judgeEdge() refuses every other arrow", () => {
  for (const [from, to] of refused) assert.ok(judgeEdge({ from, to }), `${from} -> ${to}`);
});

test("edgesOf() sees type imports and dynamic imports too", () => {
  const edges = edgesOf({
    modules: [{
      specifier: "file:///repo/src/core/a.ts",
      dependencies: [
        { specifier: "./b.ts", code: { specifier: "file:///repo/src/core/b.ts" } },
        { specifier: "../consume/c.ts", type: { specifier: "file:///repo/src/consume/c.ts" } },
        { specifier: "node:fs" },
      ],
    }],
  }, "file:///repo/");
  assert.deepEqual(edges.map((edge) => edge.to), ["src/core/b.ts", "src/consume/c.ts", "node:fs"]);
  assert.ok(edges.every((edge) => edge.from === "src/core/a.ts"));
});

test("edgesOf() fails on a module that is not there", () => {
  const graph = { modules: [{ specifier: "file:///repo/src/core/a.ts", error: "Module not found" }] };
  assert.throws(() => edgesOf(graph, "file:///repo/"), /src\/core\/a\.ts/);
});
