/**
 * Reading, replaying and deleting dead letters.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import type { NormalizedPolicy } from "../../core/policy.ts";
import type { DeadLetter } from "../../core/values.ts";
import type { DeadEntry, ReadLetter } from "./dead_store.ts";
import { describeFileError } from "./failures.ts";
import type { QueueDirectory } from "./queue_directory.ts";

type ReplayOutcome = "replayed" | "gone" | "expired";

/** The dead letters of one directory under one policy. */
export class DeadLetters {
  readonly #directory: QueueDirectory;
  readonly #policy: NormalizedPolicy;

  constructor(directory: QueueDirectory, policy: NormalizedPolicy) {
    this.#directory = directory;
    this.#policy = policy;
  }

  /** A page in id order. */
  async page(after: string, max: number, signal: AbortSignal | undefined): Promise<DeadLetter[]> {
    const page: DeadLetter[] = [];
    const { slices } = this.#directory;
    for (const entry of this.#directory.dead.walk(after)) {
      if (slices.isOver) await slices.giveWay();
      signal?.throwIfAborted();
      const read = await this.#directory.dead.read(entry);
      if (read !== undefined) page.push(read.letter);
      if (page.length === max) break;
    }
    return page;
  }

  /** Queues a message again and removes every record of its id. */
  async replay(id: string, now: number): Promise<void> {
    const [entry, ...others] = this.#directory.dead.find(id);
    const outcome = entry === undefined ? "gone" : await this.#replayEntry(entry, now);
    if (outcome === "gone") throw notFound();
    if (outcome === "expired") {
      throw new QueueError("MESSAGE_EXPIRED", 'Cannot replay the dead letter: its age has reached "policy.maxAge"', {
        fields: { id },
      });
    }
    for (const other of others) this.#directory.dead.remove(other);
    this.#directory.announce();
  }

  /** Removes every record of an id. */
  delete(id: string): void {
    const removed = this.#directory.dead.find(id).filter((entry) => this.#directory.dead.remove(entry));
    if (removed.length === 0) throw notFound();
  }

  /** Replays up to `max` in id order; returns how many. */
  async replayMany(max: number, now: number, signal: AbortSignal | undefined): Promise<number> {
    const count = await this.#each("", max, signal, async (entry) => {
      // Found before: once it is queued, it may die again, and that record is not to go.
      const others = this.#directory.dead.find(entry.id).filter(({ path }) => path !== entry.path);
      if (await this.#replayEntry(entry, now) !== "replayed") return false;
      for (const other of others) this.#directory.dead.remove(other);
      return true;
    });
    if (count > 0) this.#directory.announce();
    return count;
  }

  /** Removes up to `max` in id order that failed before an instant; returns how many. */
  async purge(before: number, max: number, signal: AbortSignal | undefined): Promise<number> {
    return await this.#each("", max, signal, (entry) => {
      return entry.failedAt < before && this.#directory.dead.remove(entry);
    });
  }

  async #each(
    after: string,
    max: number,
    signal: AbortSignal | undefined,
    act: (entry: DeadEntry) => boolean | Promise<boolean>,
  ): Promise<number> {
    let done = 0;
    const { slices } = this.#directory;
    for (const entry of this.#directory.dead.walk(after)) {
      try {
        signal?.throwIfAborted();
        if (slices.isOver) await slices.giveWay();
        if (await act(entry)) done++;
      } catch (error) {
        throw signal?.aborted ? error : describeFileError(error, "work through the dead letters", done);
      }
      if (done === max) break;
    }
    return done;
  }

  /**
   * Moves a letter's file to the waiting entries: its record comes first in the file, so the file itself is the message
   * again. One rename, so a replay is done once, whoever races, and a crash leaves it done or not done.
   */
  async #replayEntry(entry: DeadEntry, now: number): Promise<ReplayOutcome> {
    const read = await this.#directory.dead.read(entry);
    if (read === undefined) return "gone";
    const { letter } = read;
    const enqueuedAt = letter.message.enqueuedAt.getTime();
    if (this.#policy.maxAge > 0 && now - enqueuedAt >= this.#policy.maxAge) return "expired";
    const moved = await this.#moveBack(entry, read, now);
    if (moved) this.#directory.dead.tidy(entry);
    return moved ? "replayed" : "gone";
  }

  #moveBack(entry: DeadEntry, { letter, recordLength }: ReadLetter, now: number): Promise<boolean> {
    const { nonces, ready } = this.#directory;
    return this.#directory.shelveDurably(entry.path, {
      instant: now,
      state: "a",
      id: entry.id,
      enqueuedAt: letter.message.enqueuedAt.getTime(),
      deliveries: 0,
      priority: letter.priority,
      failure: "n",
      segment: nonces.next(),
      offset: entry.offset,
      length: recordLength,
      nonce: "",
    }, ready);
  }
}

function notFound(): QueueError {
  return new QueueError("DEAD_LETTER_NOT_FOUND");
}
