/**
 * Finding the repository's own files.
 *
 * @module
 */

import { readdirSync } from "node:fs";

const skipped: readonly string[] = ["node_modules", ".git", "coverage"];

/** Paths below a folder for which `keep` says yes, sorted, with forward slashes, relative to the working directory. */
export function findFiles(folder: string, keep: (path: string) => boolean): string[] {
  const found: string[] = [];
  const walk = (path: string) => {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      const inner = path === "." ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (!skipped.includes(entry.name)) walk(inner);
      } else if (entry.isFile() && keep(inner)) found.push(inner);
    }
  };
  walk(folder);
  return found.sort();
}
