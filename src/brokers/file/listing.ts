/**
 * Passes over names: counting, paging and purging. A pass reads no payload and lets the event loop turn every few
 * folders.
 *
 * @module
 */

import type { LiveMessage, PurgeResult, Stats } from "../../core/values.ts";
import { FolderRemover } from "./folder_remover.ts";
import { isBucketName, isEntryName, isLeaseBucketName, parseEntry } from "./names.ts";
import { attempt, systemCode } from "./operations.ts";
import type { QueueDirectory } from "./queue_directory.ts";

type LiveState = "ready" | "delayed" | "leased";

/** A folder of entries and what lies in it. */
interface Folder {
  readonly state: LiveState;
  readonly path: string;
  readonly names: string[];
}

/** A name that was found, and where: fifty thousand of them are held at once, so no more is made of each before its turn. */
interface Listed {
  readonly id: string;
  readonly folder: string;
  readonly name: string;
}

const liveStates: readonly LiveState[] = ["ready", "delayed", "leased"];

/** How many names an iteration over everything keeps in memory, each pass over the queue: some 10 MB. */
const idsPerPass = 50_000;

/** How many ids beyond those that are wanted are gathered before the least are kept. */
const keptBeyond = 2_000;

/** Walks the names of one queue. */
export class Listing {
  readonly #directory: QueueDirectory;

  constructor(directory: QueueDirectory) {
    this.#directory = directory;
  }

  /** Counts everything; one pass over all names. */
  async stats(now: number, signal: AbortSignal | undefined): Promise<Stats> {
    let ready = 0;
    let delayed = 0;
    let leased = 0;
    let oldest = Infinity;
    let nextDue = Infinity;
    for await (const { state, names } of this.#folders(signal)) {
      for (const name of names) {
        const entry = parseEntry(name);
        if (entry === undefined) continue;
        oldest = Math.min(oldest, entry.enqueuedAt);
        if (state === "leased") leased++;
        else {
          nextDue = Math.min(nextDue, entry.instant);
          if (state === "ready" || entry.instant <= now) ready++;
          else delayed++;
        }
      }
    }
    const dead = await this.#countDead(signal);
    return {
      ready,
      delayed,
      queued: ready + delayed,
      leased,
      dead,
      ...(oldest === Infinity ? {} : { oldestEnqueuedAt: new Date(oldest) }),
      ...(nextDue === Infinity ? {} : { nextDueAt: new Date(nextDue) }),
    };
  }

  /** A page of live messages by id: one pass over all names, then the page's payloads. */
  async page(after: string, max: number, signal: AbortSignal | undefined): Promise<LiveMessage[]> {
    for (let from = after;;) {
      const listed = await this.#firstIds(from, max, signal);
      const page: LiveMessage[] = [];
      for (const item of listed) {
        await this.#giveWay(signal);
        const live = await this.#read(item);
        if (live !== undefined) page.push(live);
      }
      // A page of which everything left meanwhile is not the end.
      if (page.length > 0 || listed.length < max) return page;
      from = listed.at(-1)!.id;
    }
  }

  /** Live messages by id, read as they are asked for. */
  async *all(after: string, signal: AbortSignal | undefined): AsyncGenerator<LiveMessage, void, undefined> {
    for (let from = after;;) {
      const listed = await this.#firstIds(from, idsPerPass, signal);
      for (const item of listed) {
        await this.#giveWay(signal);
        const live = await this.#read(item);
        if (live !== undefined) yield live;
      }
      if (listed.length < idsPerPass) return;
      from = listed.at(-1)!.id;
    }
  }

  /** Removes every live message. */
  async purge(signal: AbortSignal | undefined): Promise<PurgeResult> {
    const { operations, slices } = this.#directory;
    let queued = 0;
    let leased = 0;
    for await (const { state, path, names } of this.#folders(signal)) {
      for (const name of names) {
        if (slices.isOver) await slices.giveWay();
        if (!isEntryName(name)) continue;
        if (!attempt(() => operations.unlink(`${path}/${name}`), "ENOENT")) continue;
        if (state === "leased") leased++;
        else queued++;
      }
      // Left to the next receives, thousands would be listed once more each.
      if (state !== "leased") FolderRemover.of(operations).remove(path);
    }
    return { queued, leased };
  }

  async *#folders(signal: AbortSignal | undefined): AsyncGenerator<Folder, void, undefined> {
    const { operations, slices } = this.#directory;
    for (const state of liveStates) {
      const isFolder = state === "leased" ? isLeaseBucketName : isBucketName;
      const directory = this.#directory.pathOf(state);
      for (const bucket of operations.list(directory).filter(isFolder).sort()) {
        signal?.throwIfAborted();
        const path = `${directory}/${bucket}`;
        const names = this.#directory.mayEnter(path) ? listOrNothing(() => operations.list(path)) : [];
        yield { state, path, names };
        if (slices.isOver) await slices.giveWay();
      }
    }
  }

  async #countDead(signal: AbortSignal | undefined): Promise<number> {
    const { dead, slices } = this.#directory;
    let count = 0;
    for (const folder of dead.folders()) {
      signal?.throwIfAborted();
      if (slices.isOver) await slices.giveWay();
      count += dead.entriesOf(folder).length;
    }
    return count;
  }

  /** Lets the event loop turn in time, and an aborted call end. */
  async #giveWay(signal: AbortSignal | undefined): Promise<void> {
    const { slices } = this.#directory;
    if (slices.isOver) await slices.giveWay();
    signal?.throwIfAborted();
  }

  /** The entries with the `max` least ids after one; an id seen twice while it moved counts once. */
  async #firstIds(after: string, max: number, signal: AbortSignal | undefined): Promise<Listed[]> {
    const { slices } = this.#directory;
    const found = new Map<string, Listed>();
    let bound = "~";
    const keepLeast = () => {
      const ids = [...found.keys()];
      // Mostly they are in order. Without a comparison of our own, which takes several times as long.
      if (ids.some((id, index) => index > 0 && id < ids[index - 1]!)) ids.sort();
      for (const id of ids.splice(max)) found.delete(id);
      if (ids.length === max) bound = ids.at(-1)!;
      return ids;
    };
    for await (const { path, names } of this.#folders(signal)) {
      // Nearly the order of the ids, so that most are found beyond the bound, and the rest is soon sorted.
      for (const name of names.sort()) {
        const id = name.slice(14, 40);
        if (id <= after || id > bound) continue;
        if (isEntryName(name)) found.set(id, { id, folder: path, name });
      }
      if (found.size <= max + keptBeyond) continue;
      if (slices.isOver) await slices.giveWay();
      keepLeast();
    }
    const ids = keepLeast();
    if (slices.isOver) await slices.giveWay();
    return ids.map((id) => found.get(id)!);
  }

  async #read({ folder, name }: Listed): Promise<LiveMessage | undefined> {
    const entry = parseEntry(name)!;
    const record = await this.#directory.reader.read(`${folder}/${name}`, entry);
    if (record === undefined) return undefined;
    return {
      message: {
        id: entry.id,
        enqueuedAt: new Date(entry.enqueuedAt),
        payload: record.payload,
        headers: record.headers,
      },
      visibleAt: new Date(entry.instant),
      deliveries: entry.deliveries,
      leased: entry.state === "l",
      priority: entry.priority,
    };
  }
}

function listOrNothing(list: () => string[]): string[] {
  try {
    return list();
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return [];
    throw error;
  }
}
