/**
 * Bundles an entry point for the browser, or runs it in an edge runtime, and prints what came of it; started by the
 * bundle's test: `bundle.ts code ENTRY` or `bundle.ts edge ENTRY`. A process of its own, since both tools leave more
 * running than a test may.
 *
 * @module
 */

import { resolve } from "node:path";
import process from "node:process";
import * as esbuild from "esbuild";
import { Miniflare } from "miniflare";

/** Bundles for the browser; esbuild refuses an import that a browser cannot have. */
async function bundle(entry: string, alias: Record<string, string> = {}): Promise<string> {
  const { outputFiles } = await esbuild.build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    alias,
  });
  return outputFiles[0]!.text;
}

/** Loads the edge script over the entry point and sends it one request. */
async function request(entry: string): Promise<string> {
  const script = await bundle("tests/bundle/edge_worker.ts", { "@x/queue": resolve(entry) });
  const edge = new Miniflare({ modules: true, script, compatibilityDate: "2026-01-01" });
  const response = await edge.dispatchFetch("http://localhost/", { method: "POST", body: "work" });
  const answer = await response.text();
  await edge.dispose();
  return answer;
}

const [what, entry] = process.argv.slice(2);
const text = what === "code" ? await bundle(entry!) : await request(entry!);
process.stdout.write(text, () => process.exit(0));
