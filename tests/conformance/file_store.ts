/**
 * A file broker over a directory of its own for every conformance case.
 *
 * @module
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FileBroker, newFile } from "../../src/brokers/file/mod.ts";
import type { BrokerSetup, OpenBroker } from "../../src/testing/mod.ts";

/** A factory for the cases; `around` may wrap every broker it opens. */
export function openFile(around: (broker: FileBroker) => FileBroker = (broker) => broker): OpenBroker {
  return async (first) => {
    const root = await mkdtemp(join(tmpdir(), "x-queue-"));
    const remove = () => rm(root, { recursive: true, force: true });
    const open = async (setup: BrokerSetup) => around(await newFile({ dir: join(root, "jobs"), ...setup }));
    try {
      return { broker: await open(first), reopen: open, remove };
    } catch (error) {
      await remove();
      throw error;
    }
  };
}
