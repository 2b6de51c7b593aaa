/**
 * Sharing the event loop: system calls are made in slices, with a turn of the loop in between.
 *
 * @module
 */

import type { FileOperations } from "./operations.ts";

/** How long the broker goes on before the event loop gets a turn, in ms. */
const sliceLength = 5;

const shared = new WeakMap<FileOperations, Slices>();

/** After so many promise reactions whoever goes on has made its next system call. */
const reactions = 4;

/** Whoever waits for a slice. */
interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The slices of all who work on the same file operations, so that many at once keep the event loop no longer than one. */
export class Slices {
  readonly #operations: FileOperations;
  readonly #waiting: Waiting[] = [];
  #since: number;
  #running = false;

  private constructor(operations: FileOperations) {
    this.#operations = operations;
    this.#since = operations.uptime();
  }

  /** The slices of some file operations. */
  static of(operations: FileOperations): Slices {
    let slices = shared.get(operations);
    if (slices === undefined) shared.set(operations, slices = new Slices(operations));
    return slices;
  }

  /** Whether it is time to give way. */
  get isOver(): boolean {
    return this.#operations.uptime() - this.#since >= sliceLength;
  }

  /** Resolves in a later turn of the event loop, in the order of the calls. */
  giveWay(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      if (!this.#running) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#running = true;
    try {
      while (this.#waiting.length > 0) {
        await this.#operations.pause();
        this.#since = this.#operations.uptime();
        do {
          this.#waiting.shift()!.resolve();
          for (let reaction = 0; reaction < reactions; reaction++) await undefined;
        } while (this.#waiting.length > 0 && !this.isOver);
      }
    } catch (error) {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    }
    this.#running = false;
  }
}
