/**
 * Fails where a file imports what its layer must not know: `deno task layers`.
 *
 * @module
 */

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { findFiles } from "./files.ts";

/** One import: who, what. Files are paths relative to the repository, other modules keep their specifier. */
export interface Edge {
  readonly from: string;
  readonly to: string;
}

/** What each layer may import beside itself. A layer that is not named here may import nothing else. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  core: [],
  consume: ["core"],
  testing: ["core"],
  "brokers/memory": ["core"],
  "brokers/file": ["core"],
  "brokers/sql": ["core"],
  "brokers/redis": ["core"],
  tasks: ["core", "consume"],
  saga: ["core", "consume", "tasks"],
  otel: ["core"],
};

/** The only layer that may touch what not every platform has. */
const nodeLayer = "brokers/file";

/** The layer of a file: the folder below `src/`, a broker's own folder for brokers; `undefined` outside `src/`. */
export function layerOf(path: string): string | undefined {
  return /^src\/(brokers\/[^/]+|[^/]+)\//.exec(path)?.[1];
}

/** What is wrong with an import, or `undefined`. */
export function judgeEdge({ from, to }: Edge): string | undefined {
  const layer = layerOf(from);
  if (layer === undefined) return from === "mod.ts" && layerOf(to) === undefined ? "is outside src" : undefined;
  if (to.startsWith("node:")) return layer === nodeLayer ? undefined : `only src/${nodeLayer} may import node: modules`;
  if (/^[a-z]+:/.test(to)) return "run-time code imports no package";
  const target = layerOf(to);
  if (target === undefined) return "is outside src";
  if (target === layer || allowed[layer]?.includes(target)) return undefined;
  return `${layer} may import ${["itself", ...(allowed[layer] ?? [])].join(" and ")} only`;
}

interface GraphModule {
  readonly specifier: string;
  readonly error?: string;
  readonly dependencies?: readonly {
    readonly specifier: string;
    readonly code?: { readonly specifier?: string };
    readonly type?: { readonly specifier?: string };
  }[];
}

/** The imports of a module graph as `deno info --json` prints it, types and dynamic imports included. */
export function edgesOf(graph: { readonly modules: readonly GraphModule[] }, root: string): Edge[] {
  const relative = (specifier: string) => specifier.startsWith(root) ? specifier.slice(root.length) : specifier;
  const edges: Edge[] = [];
  for (const module of graph.modules) {
    if (module.error !== undefined) throw new Error(`Cannot read ${relative(module.specifier)}: ${module.error}`);
    for (const { specifier, code, type } of module.dependencies ?? []) {
      const to = code?.specifier ?? type?.specifier ?? specifier;
      edges.push({ from: relative(module.specifier), to: relative(to) });
    }
  }
  return edges;
}

if (import.meta.main) {
  const root = new URL("../", import.meta.url).href;
  const { exports } = JSON.parse(readFileSync("deno.json", "utf8")) as { exports: Record<string, string> };
  const problems = new Set<string>();
  const reached = new Set<string>(Object.values(exports).map((path) => path.replace("./", "")));
  for (const entry of Object.values(exports)) {
    const graph = JSON.parse(execFileSync(process.execPath, ["info", "--json", entry], { encoding: "utf8" }));
    for (const edge of edgesOf(graph, root)) {
      reached.add(edge.to);
      const problem = judgeEdge(edge);
      if (problem !== undefined) problems.add(`${edge.from} imports ${edge.to}: ${problem}`);
    }
  }
  for (const path of findFiles("src", (path) => path.endsWith(".ts"))) {
    if (!reached.has(path)) problems.add(`${path} is imported from no entry point`);
  }
  for (const problem of problems) console.error(problem);
  if (problems.size > 0) process.exit(1);
  console.log(`${reached.size} modules, every import within its layer`);
}
