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
import type { Priority } from "../../core/priority.ts";
import type { DeadLetter } from "../../core/values.ts";
import { isLinkRefusal, writeFlushed } from "./committer.ts";
import { type DeadName, isId, type NonceSource, parseDead, renderDead } from "./names.ts";
import { attempt, type FileOperations, flushEntries, systemCode } from "./operations.ts";
import { encodeHeaders, encodeWithFooter, readRecord, splitFooter, type StoredRecord } from "./records.ts";

const shortestPrefix = 6;
const longestPrefix = 12;
const folderSize = 250;
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
  readonly #mayEnter: (path: string) => boolean;

  constructor(
    operations: FileOperations,
    directory: string,
    temporary: string,
    nonces: NonceSource,
    mayEnter: (path: string) => boolean,
  ) {
    this.#operations = operations;
    this.#directory = directory;
    this.#temporary = temporary;
    this.#nonces = nonces;
    this.#mayEnter = mayEnter;
  }

  /**
   * Writes dead letters, which share one file and its flush; all are on the device when it resolves. One whose id has a
   * record already is passed over: an earlier burial was cut short after it had written.
   */
  async bury(burials: readonly Burial[]): Promise<void> {
    const fresh = this.#placeAll(burials);
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
    const folders = new Set<string>();
    try {
      for (const [index, name] of names.entries()) {
        folders.add(this.#enter(burials[index]!.folder, name, temporary, names.length === 1));
      }
    } finally {
      attempt(() => this.#operations.unlink(temporary), "ENOENT");
    }
    await Promise.all([...folders, this.#directory].map((path) => flushEntries(this.#operations, path)));
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
      return decodeLetter(entry, await this.#operations.read(descriptor, entry.offset, entry.length));
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
    attempt(() => this.#operations.removeDirectory(folder), "ENOENT", "ENOTEMPTY", "EEXIST");
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
    if (names.length === 0 || !this.#mayEnter(path)) return [];
    const entries: DeadEntry[] = [];
    for (const name of names) {
      const parsed = parseDead(name);
      if (parsed?.id.startsWith(folder)) entries.push({ ...parsed, path: `${path}/${name}` });
    }
    return entries;
  }

  /** Where each letter goes; those whose id has a record already are left out. Lists each folder once. */
  #placeAll(burials: readonly Burial[]): PlacedBurial[] {
    const listed = new Map<string, Set<string>>();
    const idsIn = (folder: string) => {
      let ids = listed.get(folder);
      if (ids === undefined) listed.set(folder, ids = new Set(this.#list(folder).map(({ id }) => id)));
      return ids;
    };
    const placed: PlacedBurial[] = [];
    for (const burial of burials) {
      const folder = choosePlace(burial.id, idsIn);
      if (folder === undefined) continue;
      idsIn(folder).add(burial.id);
      placed.push({ ...burial, folder });
    }
    return placed;
  }

  /** Gives a letter its name; returns the folder it went to. */
  #enter(folder: string, name: DeadName, from: string, alone: boolean): string {
    const path = `${this.#directory}/${folder}`;
    const target = `${path}/${renderDead(name)}`;
    // Somebody may remove the folder between the two calls, since it is empty until the second.
    for (;;) {
      attempt(() => this.#operations.makeDirectory(path), "EEXIST");
      const enter = () => alone ? this.#operations.rename(from, target) : this.#operations.link(from, target);
      if (attempt(enter, "ENOENT")) return path;
      this.#operations.status(from);
    }
  }
}

/** The shortest folder name for an id that is not full, `undefined` when the id has a record already. */
function choosePlace(id: string, idsIn: (folder: string) => ReadonlySet<string>): string | undefined {
  let place: string | undefined;
  for (let length = shortestPrefix; length <= longestPrefix; length++) {
    const folder = id.slice(0, length);
    const ids = idsIn(folder);
    if (ids.has(id)) return undefined;
    if (ids.size < folderSize || length === longestPrefix) place ??= folder;
  }
  return place;
}

function encodeLetter(id: string, record: DeadRecord): Uint8Array {
  const { payload, headers, ...footer } = record;
  return encodeWithFooter(id, encodeHeaders(headers), payload, footer);
}

function decodeLetter(entry: DeadEntry, bytes: Uint8Array): ReadLetter | undefined {
  const split = splitFooter(bytes);
  const stored = split && readRecord(split.record, entry.id);
  if (stored === undefined) return undefined;
  const footer = split!.footer;
  const trail = Array.isArray(footer.trail) ? footer.trail.filter((code) => typeof code === "number") : [];
  return {
    recordLength: split!.record.byteLength,
    letter: {
      message: {
        id: entry.id,
        enqueuedAt: new Date(numberOr(footer.enqueuedAt, 0)),
        payload: stored.payload.slice(),
        headers: stored.headers,
      },
      failedAt: new Date(entry.failedAt),
      reason: textOr(footer.reason),
      cause: textOr(footer.cause),
      code: numberOr(footer.code, 0),
      ...(trail.length > 0 ? { trail } : {}),
      deliveries: numberOr(footer.deliveries, 0),
      priority: numberOr(footer.priority, 0) as Priority,
    },
  };
}

function numberOr(value: unknown, fallback: number): number {
  return typeof value === "number" ? value : fallback;
}

function textOr(value: unknown): string {
  return typeof value === "string" ? value : "";
}
