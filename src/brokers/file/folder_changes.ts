/**
 * Whether a folder of folders has to be listed again: one of thousands, which seldom changes, costs one status instead.
 *
 * @module
 */

import type { FileOperations } from "./operations.ts";

/**
 * A listing counts only when it was made so many ms after the change that the folder's time tells of: file systems stamp by
 * clocks of up to two seconds' grain, so that another change may bear the same time.
 */
const grain = 3_000;

/** How long a listing is trusted at most, in ms, should a file system not stamp its folders. */
const longestTrust = 60_000;

/** Compares a folder's time of change with that of its last listing. */
export class FolderChanges {
  readonly #operations: FileOperations;
  readonly #path: string;
  #changedAt: number | undefined;
  #noticedAt = 0;
  #listedAt = -Infinity;

  constructor(operations: FileOperations, path: string) {
    this.#operations = operations;
    this.#path = path;
  }

  /** Whether there may be something that the last listing did not show; `now` by the monotonic clock in ms. */
  mayHaveChanged(now: number): boolean {
    const { changedAt } = this.#operations.status(this.#path);
    if (changedAt !== this.#changedAt) {
      this.#changedAt = changedAt;
      this.#noticedAt = now;
    }
    return this.#listedAt < this.#noticedAt + grain || now >= this.#listedAt + longestTrust;
  }

  /** Lists the folder. */
  list(now: number): string[] {
    const names = this.#operations.list(this.#path);
    this.#listedAt = now;
    return names;
  }

  /** Makes the next look list the folder. */
  reset(): void {
    this.#listedAt = -Infinity;
  }
}
