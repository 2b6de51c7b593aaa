/**
 * Which storage failures pass by themselves, and how long they are waited out.
 *
 * @module
 */

import { errorChain, isQueueError } from "../core/error.ts";

/** System errors that come from a shortage or an interruption and may be gone a moment later. */
const transientCodes: ReadonlySet<unknown> = new Set([
  "EINTR",
  "EAGAIN",
  "EMFILE",
  "ENFILE",
  "ENOSPC",
  "EDQUOT",
  "ESTALE",
  "EIO",
]);

const firstWait = 100;
const longestWait = 10_000;

/**
 * Whether a failure may pass by itself. The outermost error of ours that says so in `fields.transient` (true or false)
 * decides, which is how a broker classifies its driver's errors; else a system error's code anywhere in the chain.
 */
export function isTransient(error: unknown): boolean {
  let bySystem = false;
  for (const link of errorChain(error)) {
    if (isQueueError(link) && typeof link.fields.transient === "boolean") return link.fields.transient;
    if (typeof link === "object" && transientCodes.has((link as { code?: unknown }).code)) bySystem = true;
  }
  return bySystem;
}

/** How long to wait after the n-th failure in a row (from 1), in ms: doubling from 100 to 10 000. */
export function waitAfterFailure(failures: number): number {
  return Math.min(longestWait, firstWait * 2 ** Math.min(failures - 1, 16));
}

/** Counts the failures in a row of one kind of call. */
export class StoragePatience {
  readonly #patience: number;
  #since: number | undefined;
  #failures = 0;

  constructor(patience: number) {
    this.#patience = patience;
  }

  /** How long to wait before the next try, in ms; `undefined` once patience has run out. */
  afterFailure(now: number): number | undefined {
    this.#since ??= now;
    const left = this.#since + this.#patience - now;
    if (left <= 0) return undefined;
    return Math.min(left, waitAfterFailure(++this.#failures));
  }

  /** A call succeeded: the row has ended. */
  afterSuccess(): void {
    this.#since = undefined;
    this.#failures = 0;
  }
}
