/**
 * Directories for measuring in.
 *
 * @module
 */

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";

/** A directory of its own, in `QUEUE_BENCH_DIR` or else where the system keeps temporary files; removed afterwards. */
export async function inDirectory<T>(run: (dir: string) => Promise<T>): Promise<T> {
  const dir = fs.mkdtempSync(path.join(process.env.QUEUE_BENCH_DIR ?? os.tmpdir(), "queue-bench-"));
  try {
    return await run(dir);
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}
