/**
 * Reads records, sharing what neighbours in one segment have in common.
 *
 * @module
 */

import type { Entry } from "./names.ts";
import { atPath, type FileOperations, systemCode } from "./operations.ts";
import { readRecord, type StoredRecord } from "./records.ts";

/** The largest segment that is kept in memory whole, in bytes: a full one with its headers. */
const largestShared = 1_500_000;

/** How many segments are kept in memory, and how many bytes of them at most. */
const keptSegments = 16;
const keptBytes = 4 * largestShared;

/**
 * How many segments are remembered as touched once, the latest ones: of neighbours that are taken far apart, as those of a
 * batch due over a year are, reading the whole would serve one only.
 */
const touchedSegments = 16;

/** What opening or reading answers where no file lies: nothing, a link, a directory, a pipe, a socket. */
const noFile = ["ENOENT", "ELOOP", "EISDIR", "ESPIPE", "ENXIO"];

/** What a read gives: `undefined` when the bytes at the path are not that message's. */
export type ReadResult = StoredRecord | undefined;

/**
 * Reads the records of entries. The first message of a segment is read by itself; when a second one follows, the segment
 * is read whole, and its other messages cost no call at all. Payloads are the caller's to keep.
 */
export class SegmentReader {
  readonly #operations: FileOperations;
  readonly #kept = new Map<string, Uint8Array>();
  #keptBytes = 0;
  readonly #touched = new Set<string>();

  constructor(operations: FileOperations) {
    this.#operations = operations;
  }

  /** The record of an entry that lies at a path; `undefined` too when nothing lies there, or no file. */
  read(path: string, entry: Entry): ReadResult | Promise<ReadResult> {
    const kept = this.#kept.get(entry.segment);
    if (kept !== undefined) return copyFrom(kept, entry);
    try {
      return this.#readFile(path, entry);
    } catch (error) {
      if (noFile.includes(systemCode(error))) return undefined;
      throw atPath(error, path);
    }
  }

  #readFile(path: string, entry: Entry): ReadResult | Promise<ReadResult> {
    const descriptor = this.#operations.open(path);
    let bytes: Uint8Array | Promise<Uint8Array> | undefined;
    try {
      const sized = this.#touched.has(entry.segment) || entry.length > largestShared;
      const whole = sized ? this.#operations.statusOf(descriptor).size : Infinity;
      // A name may say anything; memory is set aside only for what there is.
      if (whole < entry.offset + entry.length) return undefined;
      const shared = whole <= largestShared;
      bytes = shared
        ? this.#operations.read(descriptor, 0, whole)
        : this.#operations.read(descriptor, entry.offset, entry.length);
      if (bytes instanceof Uint8Array) return this.#finish(bytes, entry, shared);
      const finish = (read: Uint8Array) => this.#finish(read, entry, shared);
      const fail = (error: unknown) => Promise.reject(atPath(error, path));
      return bytes.then(finish, fail).finally(() => this.#operations.close(descriptor));
    } finally {
      if (bytes === undefined || bytes instanceof Uint8Array) this.#operations.close(descriptor);
    }
  }

  #finish(bytes: Uint8Array, entry: Entry, shared: boolean): ReadResult {
    if (!shared) {
      remember(this.#touched, entry.segment);
      return readRecord(bytes, entry.id);
    }
    this.#keep(entry.segment, bytes);
    return copyFrom(bytes, entry);
  }

  #keep(segment: string, bytes: Uint8Array): void {
    this.#drop(segment);
    this.#kept.set(segment, bytes);
    this.#keptBytes += bytes.byteLength;
    while (this.#kept.size > keptSegments || this.#keptBytes > keptBytes) this.#drop(this.#kept.keys().next().value!);
  }

  #drop(segment: string): void {
    this.#keptBytes -= this.#kept.get(segment)?.byteLength ?? 0;
    this.#kept.delete(segment);
  }
}

function copyFrom(segment: Uint8Array, entry: Entry): ReadResult {
  const record = readRecord(segment.subarray(entry.offset, entry.offset + entry.length), entry.id);
  return record && { headers: record.headers, payload: record.payload.slice() };
}

function remember(touched: Set<string>, segment: string): void {
  touched.add(segment);
  if (touched.size > touchedSegments) touched.delete(touched.values().next().value!);
}
