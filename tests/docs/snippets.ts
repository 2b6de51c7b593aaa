/**
 * Finding the code in what users read, and writing it down as programs.
 *
 * @module
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findFiles } from "../../tools/files.ts";

/** A fenced block of TypeScript. */
export interface Snippet {
  /** The file it stands in, relative to the repository. */
  readonly source: string;
  /** The line its code begins on, from 1. */
  readonly line: number;
  readonly code: string;
}

/** Files whose snippets are programs for users. */
export function documentedFiles(): string[] {
  const code = findFiles("src", (path) => path.endsWith(".ts"));
  const pages = findFiles("docs", (path) => path.endsWith(".md"));
  return ["README.md", "mod.ts", ...pages, ...code];
}

/** Every ```ts block of a Markdown file, or of the doc comments of a TypeScript file. */
export function extractSnippets(source: string, text: string): Snippet[] {
  const comment = source.endsWith(".ts");
  const snippets: Snippet[] = [];
  let open: { line: number; lines: string[] } | undefined;
  text.split("\n").forEach((raw, index) => {
    const line = comment ? /^\s*\*\s?(.*)$/.exec(raw)?.[1] : raw;
    if (line === undefined) return;
    if (open === undefined) {
      if (line.trimEnd() === "```ts") open = { line: index + 2, lines: [] };
    } else if (line.trimEnd() === "```") {
      snippets.push({ source, line: open.line, code: open.lines.join("\n") });
      open = undefined;
    } else open.lines.push(line);
  });
  if (open !== undefined) throw new Error(`${source}: the block of line ${open.line} has no end`);
  return snippets;
}

/** What a user imports from JSR, as the repository imports itself by name. */
export function localImports(code: string): string {
  return code.replace(/(["'])jsr:@x\/queue(?:@[^"'/]*)?((?:\/[^"']*)?)\1/g, `$1@x/queue$2$1`);
}

/** All snippets of all files. */
export function allSnippets(): Snippet[] {
  return documentedFiles().flatMap((source) => extractSnippets(source, readFileSync(source, "utf8")));
}

/** Writes each snippet as a module below a folder; the paths are in the order of the snippets. */
export function writeSnippets(folder: string, snippets: readonly Snippet[]): string[] {
  mkdirSync(folder, { recursive: true });
  return snippets.map(({ source, line, code }) => {
    const path = join(folder, `${source.replaceAll(/[/.]/g, "_")}_${line}.ts`);
    // An import or export makes it a module, in which top-level await is allowed.
    writeFileSync(path, `${localImports(code)}\nexport {};\n`);
    return path;
  });
}
