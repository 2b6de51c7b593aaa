/**
 * Removing emptied folders, one after another and beside everything else: while others flush, a single removal can take
 * as long as their flushes do.
 *
 * @module
 */

import { type FileOperations, systemCode } from "./operations.ts";

const shared = new WeakMap<FileOperations, FolderRemover>();

/** Removes folders if they are empty. What is refused is left to whoever looks next. */
export class FolderRemover {
  readonly #operations: FileOperations;
  /** The folders to come, with what to do once one is gone. */
  readonly #queue = new Map<string, () => void>();
  /** The folder whose removal is under way, and its end. */
  #current: { readonly path: string; readonly end: Promise<void> } | undefined;

  private constructor(operations: FileOperations) {
    this.#operations = operations;
  }

  /** The remover of some file operations. */
  static of(operations: FileOperations): FolderRemover {
    let remover = shared.get(operations);
    if (remover === undefined) shared.set(operations, remover = new FolderRemover(operations));
    return remover;
  }

  /** Removes a folder soon if it is empty then; `onGone` is called once it is known not to be there. */
  remove(path: string, onGone: () => void = () => {}): void {
    if (this.#queue.has(path)) return;
    this.#queue.set(path, onGone);
    this.#next();
  }

  /** Leaves out what is to come below a root: whoever looks next asks for it again. */
  forget(root: string): void {
    for (const path of this.#queue.keys()) if (path.startsWith(`${root}/`)) this.#queue.delete(path);
  }

  /** Resolves once no removal below a root is under way or to come. */
  async idle(root: string): Promise<void> {
    const isBelow = (path: string | undefined) => path?.startsWith(`${root}/`) ?? false;
    while (isBelow(this.#current?.path) || [...this.#queue.keys()].some(isBelow)) await this.#current?.end;
  }

  #next(): void {
    for (const [path, onGone] of this.#queue) {
      if (this.#current !== undefined) return;
      this.#queue.delete(path);
      try {
        const removing = this.#operations.removeDirectory(path);
        if (removing === undefined) onGone();
        else this.#current = { path, end: this.#await(removing, onGone) };
      } catch (error) {
        if (systemCode(error) === "ENOENT") onGone();
      }
    }
  }

  async #await(removing: Promise<void>, onGone: () => void): Promise<void> {
    try {
      await removing;
      onGone();
    } catch (error) {
      if (systemCode(error) === "ENOENT") onGone();
    }
    this.#current = undefined;
    this.#next();
  }
}
