/**
 * Brokers that see a queue directory as another process would: nothing in memory is shared between two of them.
 *
 * @module
 */

import { currentPlatform, nodeOperations } from "../../src/brokers/file/node_operations.ts";
import { openFile } from "../../src/brokers/file/new_file.ts";
import type { FileBroker, FileConfig } from "../../src/brokers/file/mod.ts";
import type { FileOperations } from "../../src/brokers/file/operations.ts";

/** The real file operations, not shared with any other caller. */
export function freshOperations(): FileOperations {
  return nodeOperations(currentPlatform());
}

/** Opens a directory as a process of its own would. */
export function openAsProcess(config: FileConfig): Promise<FileBroker> {
  return openFile(config, freshOperations());
}

/** What every call to a dead process's file operations throws. */
export class ProcessDied extends Error {
  override readonly name = "ProcessDied";
}

/** File operations of a process that is killed after so many of them, as SIGKILL does: what was done stays done. */
export interface MortalOperations {
  readonly operations: FileOperations;
  /** Starts counting down; every call after the last allowed one throws. */
  dieAfter(calls: number): void;
  /** Whether the process has died. */
  readonly dead: boolean;
}

/** Wraps file operations so that they can be cut short at any step. */
export function mortal(inner: FileOperations): MortalOperations {
  let remaining = Infinity;
  let dead = false;
  const operations = {} as Record<string, unknown>;
  for (const [name, call] of Object.entries(inner)) {
    operations[name] = (...args: unknown[]) => {
      // Closing a descriptor is what the kernel does for a dead process; reading a clock or a permission is no step.
      if (!["close", "uptime", "isPermitted"].includes(name) && remaining-- <= 0) {
        dead = true;
        throw new ProcessDied(`Died before ${name}`);
      }
      return (call as (...args: unknown[]) => unknown)(...args);
    };
  }
  return {
    operations: operations as unknown as FileOperations,
    dieAfter: (calls) => void (remaining = calls),
    get dead() {
      return dead;
    },
  };
}
