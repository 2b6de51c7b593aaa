/**
 * What a process of the torture program works with.
 *
 * @module
 */

import type { FileBroker } from "../../src/brokers/file/mod.ts";
import type { Random } from "../simulation/random.ts";
import type { Ledger } from "./ledger.ts";
import type { Task } from "./settings.ts";

/** One process's part. */
export interface Part {
  readonly jobs: FileBroker;
  readonly ledger: Ledger;
  readonly task: Task;
  readonly random: Random;
  /** Aborts when the process is asked to end. */
  readonly signal: AbortSignal;
}

/** Lets time pass. */
export function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
