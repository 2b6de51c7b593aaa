/**
 * Directories that a test owns.
 *
 * @module
 */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** A fresh directory, removed with all it holds when it is disposed. */
export interface TemporaryDirectory extends Disposable {
  readonly path: string;
}

/** Makes a directory that lives as long as its `using` binding. */
export function temporaryDirectory(): TemporaryDirectory {
  const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "queue-test-")));
  return { path: dir, [Symbol.dispose]: () => fs.rmSync(dir, { recursive: true, force: true }) };
}
