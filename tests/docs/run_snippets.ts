/**
 * Runs the modules given as arguments one after another, each to its end; started by the snippets' test.
 *
 * @module
 */

import process from "node:process";
import { pathToFileURL } from "node:url";

for (const path of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(path).href);
    console.log(`done ${path}`);
  } catch (error) {
    console.error(path, error);
    process.exit(1);
  }
}
