/**
 * Reading, replaying and deleting dead letters.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import type { NormalizedPolicy } from "../../core/policy.ts";
import type { DeadLetter } from "../../core/values.ts";
import type { OwnBucket } from "./bucket_writer.ts";
import type { DeadEntry } from "./dead_store.ts";
import { describeFileError } from "./failures.ts";
import type { Entry } from "./names.ts";
import type { QueueDirectory } from "./queue_directory.ts";

/** How many letters of a bulk replay share the flushes of the buckets that they go to. */
const replayedTogether = 64;

/** A letter that was moved to the waiting entries, with other records of its id. */
interface Moved {
  readonly entry: DeadEntry;
  readonly others: readonly DeadEntry[];
  readonly bucket: OwnBucket;
}

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
    const bucket = entry === undefined ? "gone" : await this.#moveBack(entry, now);
    if (bucket === "gone") throw notFound();
    if (bucket === "expired") {
      throw new QueueError("MESSAGE_EXPIRED", 'Cannot replay the dead letter: its age has reached "policy.maxAge"', {
        fields: { id },
      });
    }
    await this.#complete([{ entry: entry!, others, bucket }]);
  }

  /** Removes every record of an id. */
  delete(id: string): void {
    const removed = this.#directory.dead.find(id).filter((entry) => this.#directory.dead.remove(entry));
    if (removed.length === 0) throw notFound();
  }

  /** Replays up to `max` in id order; returns how many. Those of a group share their flushes. */
  async replayMany(max: number, now: number, signal: AbortSignal | undefined): Promise<number> {
    const { slices, dead } = this.#directory;
    const group: Moved[] = [];
    let done = 0;
    const complete = async () => {
      done += await this.#complete(group.splice(0));
    };
    try {
      for (const entry of dead.walk("")) {
        signal?.throwIfAborted();
        if (slices.isOver) await slices.giveWay();
        // Found before: once it is queued, it may die again, and that record is not to go.
        const others = dead.find(entry.id).filter(({ path }) => path !== entry.path);
        const bucket = await this.#moveBack(entry, now);
        if (typeof bucket === "object") group.push({ entry, others, bucket });
        if (done + group.length === max) break;
        if (group.length === replayedTogether) await complete();
      }
      await complete();
    } catch (error) {
      // What was moved before counts as well, once it is on the device.
      await complete().catch(() => {});
      throw signal?.aborted ? error : describeFileError(error, "work through the dead letters", done);
    }
    return done;
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
    act: (entry: DeadEntry) => boolean,
  ): Promise<number> {
    let done = 0;
    const { slices } = this.#directory;
    for (const entry of this.#directory.dead.walk(after)) {
      try {
        signal?.throwIfAborted();
        if (slices.isOver) await slices.giveWay();
        if (act(entry)) done++;
      } catch (error) {
        throw signal?.aborted ? error : describeFileError(error, "work through the dead letters", done);
      }
      if (done === max) break;
    }
    return done;
  }

  /** Puts messages that were moved back on the device, and removes what else there is of them; how many they are. */
  async #complete(moved: readonly Moved[]): Promise<number> {
    if (moved.length === 0) return 0;
    const { dead, ready } = this.#directory;
    await this.#directory.flushMoved(new Set(moved.map(({ bucket }) => bucket)), ready);
    for (const { entry, others } of moved) {
      for (const other of others) dead.remove(other);
      dead.tidy(entry);
    }
    this.#directory.announce();
    return moved.length;
  }

  /**
   * Moves a letter's file to the waiting entries: its record comes first in the file, so the file itself is the message
   * again. One rename, so a replay is done once, whoever races, and a crash leaves it done or not done. Not yet flushed.
   */
  async #moveBack(entry: DeadEntry, now: number): Promise<OwnBucket | "gone" | "expired"> {
    const read = await this.#directory.dead.read(entry);
    if (read === undefined) return "gone";
    const { letter, recordLength } = read;
    const enqueuedAt = letter.message.enqueuedAt.getTime();
    if (this.#policy.maxAge > 0 && now - enqueuedAt >= this.#policy.maxAge) return "expired";
    const { nonces, ready } = this.#directory;
    const waiting: Entry = {
      instant: now,
      state: "a",
      id: entry.id,
      enqueuedAt,
      deliveries: 0,
      priority: letter.priority,
      failure: "n",
      segment: nonces.next(),
      offset: entry.offset,
      length: recordLength,
      nonce: "",
    };
    return await this.#directory.move(entry.path, waiting, ready) ?? "gone";
  }
}

function notFound(): QueueError {
  return new QueueError("DEAD_LETTER_NOT_FOUND");
}
