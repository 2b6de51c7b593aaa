/**
 * Dead letters: one file each, in folders by the beginning of their id, so that finding one lists little.
 *
 * A letter goes to the shortest folder name of its id, from 6 digits (17.5 minutes of ids) to 12, that is not full, so a
 * look-up reads the folders of its seven prefixes and a listing in id order reads folders as it reaches them.
 *
 * @module
 */

import type { RecordedFailure } from "../../core/failure.ts";
import type { DeadRecord } from "../../core/records.ts";
import { QueueError } from "../../core/error.ts";
import { maxDeliveryCount, maxInstant } from "../../core/limits.ts";
import { isPriority, Priority } from "../../core/priority.ts";
import type { DeadLetter } from "../../core/values.ts";
import { FolderRemover } from "./folder_remover.ts";
import { isLinkRefusal, writeFlushed } from "./committer.ts";
import { type DeadName, isId, type NonceSource, parseDead, renderDead } from "./names.ts";
import {
  atPath,
  attempt,
  type FileOperations,
  flushEntries,
  forEachParallel,
  systemCode,
  tidyUp,
} from "./operations.ts";
import { encodeHeaders, encodeWithFooter, readRecord, splitFooter, type StoredRecord } from "./records.ts";

const shortestPrefix = 6;
const longestPrefix = 12;
const folderPattern = /^[0-9A-HJKMNP-TV-Z]{6,12}$/;

/** Where a dead letter lies. */
export interface DeadEntry extends DeadName {
  readonly path: string;
}

/** A dead letter to be written. */
export interface Burial {
  readonly id: string;
  readonly record: DeadRecord;
}

interface PlacedBurial extends Burial {
  readonly folder: string;
  /** Whether a record of the id lies there already. */
  readonly recorded: boolean;
}

/** A dead letter read whole. */
export interface ReadLetter {
  readonly letter: DeadLetter;
  /** How many bytes of its file are its record. */
  readonly recordLength: number;
}

/** What a dead letter keeps of a message and its failure. */
export function makeDeadRecord(
  stored: StoredRecord,
  life: { readonly enqueuedAt: number; readonly deliveries: number; readonly priority: Priority },
  failure: RecordedFailure,
  failedAt: number,
): DeadRecord {
  return {
    payload: stored.payload,
    headers: stored.headers,
    enqueuedAt: life.enqueuedAt,
    failedAt,
    reason: failure.reason,
    cause: failure.cause,
    code: failure.code,
    trail: failure.trail,
    deliveries: life.deliveries,
    priority: life.priority,
  };
}

/** The dead letters of one queue. */
export class DeadStore {
  readonly #operations: FileOperations;
  readonly #directory: string;
  readonly #temporary: string;
  readonly #nonces: NonceSource;
  readonly #folderSize: number;
  readonly #mayEnter: (path: string) => boolean;

  constructor(
    operations: FileOperations,
    directory: string,
    temporary: string,
    nonces: NonceSource,
    folderSize: number,
    mayEnter: (path: string) => boolean,
  ) {
    this.#operations = operations;
    this.#directory = directory;
    this.#temporary = temporary;
    this.#nonces = nonces;
    this.#folderSize = folderSize;
    this.#mayEnter = mayEnter;
  }

  /**
   * Writes dead letters, which share one file and its flush; all are on the device when it resolves. One whose id has a
   * record already is passed over: an earlier burial was cut short after it had written.
   */
  async bury(burials: readonly Burial[]): Promise<void> {
    const placed = this.#placeAll(burials);
    const fresh = placed.filter(({ recorded }) => !recorded);
    // What an earlier burial wrote may not have come to the device.
    await this.#flushFolders(placed.filter(({ recorded }) => recorded).map(({ folder }) => folder));
    if (fresh.length === 0) return;
    try {
      await this.#buryTogether(fresh);
    } catch (error) {
      if (fresh.length === 1 || !isLinkRefusal(error)) throw error;
      // No hard links here: a file each.
      for (const burial of fresh) await this.#buryTogether([burial]);
    }
  }

  async #buryTogether(burials: readonly PlacedBurial[]): Promise<void> {
    const letters = burials.map(({ id, record }) => encodeLetter(id, record));
    const bytes = new Uint8Array(letters.reduce((sum, letter) => sum + letter.byteLength, 0));
    const temporary = `${this.#temporary}/${this.#nonces.next()}`;
    const names: DeadName[] = [];
    let offset = 0;
    for (const [index, { id, record }] of burials.entries()) {
      const length = letters[index]!.byteLength;
      bytes.set(letters[index]!, offset);
      names.push({ id, failedAt: record.failedAt, offset, length });
      offset += length;
    }
    await writeFlushed(this.#operations, temporary, bytes);
    const entered: string[] = [];
    try {
      for (const [index, name] of names.entries()) {
        const target = `${this.#directory}/${burials[index]!.folder}/${renderDead(name)}`;
        // Noted before the attempt, since a refusal may come after the effect.
        entered.push(target);
        this.#enter(target, temporary, names.length === 1);
      }
      await this.#flushFolders(burials.map(({ folder }) => folder));
    } catch (error) {
      // The messages are still where they were; what the device may not hold must not pass for their record.
      for (const path of entered) tidyUp(() => this.#operations.unlink(path));
      throw error;
    } finally {
      tidyUp(() => this.#operations.unlink(temporary));
    }
  }

  async #flushFolders(folders: readonly string[]): Promise<void> {
    if (folders.length === 0) return;
    const paths = new Set(folders.map((folder) => `${this.#directory}/${folder}`)).add(this.#directory);
    await forEachParallel(paths, (path) => flushEntries(this.#operations, path));
  }

  /** Every record of an id: more than one only after a crash. */
  find(id: string): DeadEntry[] {
    if (!isId(id)) return [];
    const found: DeadEntry[] = [];
    for (let length = shortestPrefix; length <= longestPrefix; length++) {
      const folder = id.slice(0, length);
      found.push(...this.#list(folder).filter((entry) => entry.id === id));
    }
    return found;
  }

  /** Dead letters in id order, strictly after an id, each id once; folders are listed as they are reached. */
  *walk(after: string): Generator<DeadEntry, void, undefined> {
    const folders = this.folders().filter((folder) => after.slice(0, folder.length) <= folder).reverse();
    let ahead: DeadEntry[] = [];
    let last = after;
    while (folders.length > 0 || ahead.length > 0) {
      while (folders.length > 0 && (ahead.length === 0 || folders.at(-1)! <= ahead.at(-1)!.id)) {
        const entries = this.#list(folders.pop()!).filter(({ id }) => id > last);
        ahead = [...ahead, ...entries].sort((a, b) => a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
      }
      const entry = ahead.pop();
      if (entry === undefined || entry.id === last) continue;
      last = entry.id;
      yield entry;
    }
  }

  /** The folders there are, in the order of their names. */
  folders(): string[] {
    return this.#operations.list(this.#directory).filter((name) => folderPattern.test(name)).sort();
  }

  /** The dead letters in a folder, unsorted. */
  entriesOf(folder: string): DeadEntry[] {
    return this.#list(folder);
  }

  /** Reads a dead letter; `undefined` when it is gone or is not what its name says. */
  async read(entry: DeadEntry): Promise<ReadLetter | undefined> {
    let descriptor: number;
    try {
      descriptor = this.#operations.open(entry.path);
    } catch (error) {
      if (systemCode(error) === "ENOENT" || systemCode(error) === "ELOOP") return undefined;
      throw error;
    }
    try {
      const { kind, size } = this.#operations.statusOf(descriptor);
      // A name may say anything; memory is set aside only for what there is.
      if (kind !== "file" || size < entry.offset + entry.length) return undefined;
      return decodeLetter(entry, await this.#operations.read(descriptor, entry.offset, entry.length));
    } catch (error) {
      throw atPath(error, entry.path);
    } finally {
      this.#operations.close(descriptor);
    }
  }

  /** Removes a record for good, and its folder once that is empty; `false` when it was gone. */
  remove(entry: DeadEntry): boolean {
    const removed = attempt(() => this.#operations.unlink(entry.path), "ENOENT");
    this.tidy(entry);
    return removed;
  }

  /** Removes the folder of a letter that left, if it is empty now. */
  tidy(entry: DeadEntry): void {
    const folder = entry.path.slice(0, entry.path.lastIndexOf("/"));
    FolderRemover.of(this.#operations).remove(folder);
  }

  #list(folder: string): DeadEntry[] {
    const path = `${this.#directory}/${folder}`;
    let names: string[];
    try {
      names = this.#operations.list(path);
    } catch (error) {
      if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return [];
      throw error;
    }
    if (names.length === 0) {
      // Whoever took the last letter may have died before it removed the folder.
      FolderRemover.of(this.#operations).remove(path);
      return [];
    }
    if (!this.#mayEnter(path)) return [];
    const entries: DeadEntry[] = [];
    for (const name of names) {
      const parsed = parseDead(name);
      if (parsed?.id.startsWith(folder)) entries.push({ ...parsed, path: `${path}/${name}` });
    }
    return entries;
  }

  /** Where each letter goes, or lies already. Lists each folder once. */
  #placeAll(burials: readonly Burial[]): PlacedBurial[] {
    const listed = new Map<string, Set<string> | undefined>();
    const idsIn = (folder: string) => {
      if (!listed.has(folder)) {
        const trusted = this.#mayEnter(`${this.#directory}/${folder}`);
        listed.set(folder, trusted ? new Set(this.#list(folder).map(({ id }) => id)) : undefined);
      }
      return listed.get(folder);
    };
    return burials.map((burial) => {
      const place = choosePlace(burial.id, this.#folderSize, idsIn);
      idsIn(place.folder)!.add(burial.id);
      return { ...burial, ...place };
    });
  }

  /** Gives a letter its name. */
  #enter(target: string, from: string, alone: boolean): void {
    // Somebody may remove the folder between the two calls, since it is empty until the second.
    for (;;) {
      attempt(() => this.#operations.makeDirectory(target.slice(0, target.lastIndexOf("/"))), "EEXIST");
      const enter = () => alone ? this.#operations.rename(from, target) : this.#operations.link(from, target);
      if (attempt(enter, "ENOENT")) return;
      this.#operations.status(from);
    }
  }
}

/** The folder that holds a record of an id, or else the shortest that is trusted and not full. */
function choosePlace(
  id: string,
  folderSize: number,
  idsIn: (folder: string) => ReadonlySet<string> | undefined,
): { folder: string; recorded: boolean } {
  let place: string | undefined;
  for (let length = shortestPrefix; length <= longestPrefix; length++) {
    const folder = id.slice(0, length);
    const ids = idsIn(folder);
    if (ids?.has(id)) return { folder, recorded: true };
    if (ids !== undefined && (ids.size < folderSize || length === longestPrefix)) place ??= folder;
  }
  if (place !== undefined) return { folder: place, recorded: false };
  throw new QueueError("QUEUE_BACKEND_FAILED", "Cannot write the dead letter: none of its folders can be trusted", {
    fields: { operation: "write a dead letter" },
  });
}

function encodeLetter(id: string, record: DeadRecord): Uint8Array {
  const { payload, headers, ...footer } = record;
  return encodeWithFooter(id, encodeHeaders(headers), payload, footer);
}

function decodeLetter(entry: DeadEntry, bytes: Uint8Array): ReadLetter | undefined {
  const split = splitFooter(bytes);
  const stored = split && readRecord(split.record, entry.id);
  if (stored === undefined) return undefined;
  const { footer } = split!;
  const { trail, priority } = footer;
  const codes = Array.isArray(trail) ? trail.filter((code) => isCount(code, maxCode)) : [];
  return {
    recordLength: split!.record.byteLength,
    letter: {
      message: {
        id: entry.id,
        // A field that is not what the broker writes is lost by itself.
        enqueuedAt: new Date(isCount(footer.enqueuedAt, maxInstant) ? footer.enqueuedAt : entry.failedAt),
        payload: stored.payload.slice(),
        headers: stored.headers,
      },
      failedAt: new Date(entry.failedAt),
      reason: textOr(footer.reason),
      cause: textOr(footer.cause),
      code: isCount(footer.code, maxCode) ? footer.code : 0,
      ...(codes.length > 0 ? { trail: codes } : {}),
      deliveries: isCount(footer.deliveries, maxDeliveryCount) ? footer.deliveries : 0,
      priority: isPriority(priority) ? priority : Priority.normal,
    },
  };
}

const maxCode = 0xffff_ffff;

function isCount(value: unknown, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max;
}

function textOr(value: unknown): string {
  return typeof value === "string" ? value : "";
}
