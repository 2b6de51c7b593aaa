/**
 * What this process knows of the waiting entries in one state directory, so that a receive never lists the backlog.
 *
 * Entries lie in buckets; a bucket's name says its level and the least key it may hold. A bucket is listed when the
 * walk reaches that key, its sorted names are walked down in memory, and an emptied one is removed.
 *
 * @module
 */

import { type FileOperations, systemCode } from "./operations.ts";
import { bucketLevel, bucketStart, isBucketName, leastKey, looksLikeEntry } from "./names.ts";

/** A bucket that the walk has not reached, or has listed. */
interface Bucket {
  readonly name: string;
  readonly level: number;
  readonly start: string;
  /** The least key put into it before it was listed, for a bucket of this process's own. */
  least: string | undefined;
  /** Made by this process, which reports every entry that it adds. */
  readonly own: boolean;
  /** The names still to take, in byte order from `cursor`; taken ones in between are empty strings. */
  names: string[];
  cursor: number;
  /** The most names ever listed at once: a bucket that was full gets no more. */
  seen: number;
  /** When it was last listed, by the monotonic clock in ms. */
  listedAt: number;
  /** When it was first found empty, by the monotonic clock in ms. */
  emptySince: number | undefined;
}

/** An entry to take. */
export interface Candidate {
  readonly bucket: string;
  readonly name: string;
}

/** What an index needs to know of its surroundings. */
export interface WaitingIndexOptions {
  readonly operations: FileOperations;
  /** The state directory. */
  readonly directory: string;
  /** How many entries fill a bucket. */
  readonly bucketSize: number;
  /** Whether a bucket may be entered; reports one that may not. */
  readonly mayEnter: (path: string) => boolean;
}

/** How long a bucket that may still be written to is left empty before it is removed, in ms. */
const emptyBucketLife = 10_000;

/** For how long what was listed of another process's bucket is good enough while there is something left of it, in ms. */
const freshListing = 10;

const levels = [0, 1, 2, 3, 4] as const;

/** The buckets of one state directory, walked in the order of delivery. */
export class WaitingIndex {
  readonly #options: WaitingIndexOptions;
  readonly #known = new Map<string, Bucket>();
  /** Per level: buckets not reached yet, the next one last. */
  readonly #closed: Bucket[][] = levels.map(() => []);
  /** Per level: buckets that were listed. */
  readonly #open: Bucket[][] = levels.map(() => []);
  readonly #refused = new Set<string>();
  /** How far from the head entries are picked, so that rivals do not all run for the same one. */
  #spread = 0;

  constructor(options: WaitingIndexOptions) {
    this.#options = options;
  }

  /** Notes a bucket that this process made. */
  addBucket(name: string): void {
    this.#insert(name, true);
  }

  /** Notes an entry that this process put into one of its own buckets. */
  addEntry(bucketName: string, name: string): void {
    const bucket = this.#known.get(bucketName) ?? this.#insert(bucketName, true);
    if (!this.#open[bucket.level]!.includes(bucket)) {
      if (bucket.least === undefined || name < bucket.least) bucket.least = name;
      return;
    }
    bucket.emptySince = undefined;
    const { names } = bucket;
    if (bucket.cursor === names.length) {
      bucket.names = [name];
      bucket.cursor = 0;
    } else if (names[names.length - 1]! < name) names.push(name);
    else names.splice(insertionPoint(names, bucket.cursor, name), 0, name);
  }

  /**
   * The next entry of a level, left in place.
   *
   * @param limit Entries whose key is not below it are not due.
   */
  head(level: number, limit: string): Candidate | undefined {
    const bucket = this.#reach(level, limit);
    return bucket && { bucket: bucket.name, name: bucket.names[bucket.cursor]! };
  }

  /** Takes the head of a level, or one near it while rivals race for heads. */
  take(level: number, limit: string): Candidate | undefined {
    const bucket = this.#reach(level, limit);
    if (bucket === undefined) return undefined;
    const index = this.#pick(bucket, limit);
    const name = bucket.names[index]!;
    if (index === bucket.cursor) bucket.cursor++;
    else bucket.names[index] = "";
    return { bucket: bucket.name, name };
  }

  /** Tells that a taken entry was gone: a rival is at work. */
  noteLoss(): void {
    this.#spread = Math.min(96, this.#spread * 2 + 2);
  }

  /** Tells that a taken entry was there. */
  noteWin(): void {
    if (this.#spread > 0) this.#spread -= 1 / 4;
  }

  /** When the first entry known comes due, by its key; `undefined` when nothing is known to wait. */
  firstKey(): string | undefined {
    let first: string | undefined;
    for (const level of levels) {
      for (const bucket of this.#open[level]!) {
        const name = skipTaken(bucket);
        if (name !== undefined && (first === undefined || name < first)) first = name;
      }
      const closed = this.#closed[level]!;
      for (let at = closed.length - 1; at >= 0; at--) {
        const { start, least = start } = closed[at]!;
        if (first !== undefined && start >= first) break;
        if (first === undefined || least < first) first = least;
      }
    }
    return first;
  }

  /** Looks for what other processes made and removed. */
  refresh(now: number): void {
    const present = new Set(this.#options.operations.list(this.#options.directory));
    for (const bucket of [...this.#known.values()]) {
      if (!present.has(bucket.name)) this.#forget(bucket);
    }
    // Nearly always later than all that is known, and in that order.
    for (const name of [...present].sort()) {
      if (!this.#known.has(name) && !this.#refused.has(name) && isBucketName(name)) this.#insert(name, false);
    }
    for (const level of levels) {
      for (const bucket of [...this.#open[level]!]) {
        const isStale = !bucket.own && now - bucket.listedAt >= freshListing;
        if (isStale || skipTaken(bucket) === undefined) this.#relist(bucket, now);
      }
    }
  }

  /** Forgets what was listed, so that the next walk lists anew. */
  reset(): void {
    this.#known.clear();
    for (const level of levels) {
      this.#closed[level] = [];
      this.#open[level] = [];
    }
  }

  /** The open bucket whose head comes next at a level; lists buckets as the walk reaches them. */
  #reach(level: number, limit: string): Bucket | undefined {
    const closed = this.#closed[level]!;
    for (;;) {
      let best: Bucket | undefined;
      let bestName = limit;
      for (const bucket of this.#open[level]!) {
        const name = skipTaken(bucket);
        if (name !== undefined && name < bestName) {
          best = bucket;
          bestName = name;
        }
      }
      const next = closed.at(-1);
      if (next === undefined || next.start >= bestName) return best;
      closed.pop();
      this.#enter(next);
    }
  }

  #enter(bucket: Bucket): void {
    const { directory, mayEnter } = this.#options;
    if (!bucket.own && !mayEnter(`${directory}/${bucket.name}`)) {
      this.#refused.add(bucket.name);
      this.#forget(bucket);
      return;
    }
    this.#open[bucket.level]!.push(bucket);
    this.#relist(bucket, undefined);
    // An empty bucket with later ones behind it has been left by its writer; one of this process's own, or one for what
    // comes to the front, may have been made a moment ago, and whoever made it would wait for its flush for nothing.
    const mayBeNew = bucket.own || bucket.start === leastKey;
    if (bucket.names.length === 0 && !mayBeNew && this.#closed[bucket.level]!.length > 0) this.#remove(bucket);
  }

  #relist(bucket: Bucket, now: number | undefined): void {
    const { operations, directory, bucketSize } = this.#options;
    const path = `${directory}/${bucket.name}`;
    try {
      bucket.names = operations.list(path).filter(looksLikeEntry).sort();
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      this.#forget(bucket);
      return;
    }
    bucket.listedAt = operations.uptime();
    bucket.cursor = 0;
    bucket.seen = Math.max(bucket.seen, bucket.names.length);
    if (bucket.names.length > 0) bucket.emptySince = undefined;
    else if (now !== undefined) {
      bucket.emptySince ??= now;
      if (bucket.seen >= bucketSize || now - bucket.emptySince >= emptyBucketLife) this.#remove(bucket);
    }
  }

  /** Removes an emptied bucket; whoever still writes to it makes another. */
  #remove(bucket: Bucket): void {
    try {
      this.#options.operations.removeDirectory(`${this.#options.directory}/${bucket.name}`);
    } catch (error) {
      // Something is in it again, or was never ours: leave it.
      if (["ENOTEMPTY", "EEXIST"].includes(systemCode(error))) return;
      if (systemCode(error) !== "ENOENT") throw error;
    }
    this.#forget(bucket);
  }

  #insert(name: string, own: boolean): Bucket {
    const bucket: Bucket = {
      name,
      level: bucketLevel(name),
      start: bucketStart(name),
      least: undefined,
      own,
      names: [],
      cursor: 0,
      seen: 0,
      listedAt: -Infinity,
      emptySince: undefined,
    };
    this.#known.set(name, bucket);
    const closed = this.#closed[bucket.level]!;
    let at = 0;
    while (at < closed.length && closed[at]!.name > name) at++;
    closed.splice(at, 0, bucket);
    return bucket;
  }

  #forget(bucket: Bucket): void {
    this.#known.delete(bucket.name);
    for (const list of [this.#open[bucket.level]!, this.#closed[bucket.level]!]) {
      const at = list.indexOf(bucket);
      if (at >= 0) list.splice(at, 1);
    }
  }

  #pick(bucket: Bucket, limit: string): number {
    if (this.#spread < 1) return bucket.cursor;
    const ahead = Math.min(Math.floor(this.#spread), bucket.names.length - bucket.cursor - 1);
    const index = bucket.cursor + Math.floor(Math.random() * (ahead + 1));
    const name = bucket.names[index]!;
    return name !== "" && name < limit ? index : bucket.cursor;
  }
}

/** Moves a bucket's cursor past entries taken out of order; returns the head's name. */
function skipTaken(bucket: Bucket): string | undefined {
  const { names } = bucket;
  while (bucket.cursor < names.length && names[bucket.cursor] === "") bucket.cursor++;
  return names[bucket.cursor];
}

/** Where a name belongs among sorted names, some of which are empty because they were taken. */
function insertionPoint(names: readonly string[], from: number, name: string): number {
  let at = names.length;
  while (at > from && (names[at - 1] === "" || names[at - 1]! > name)) at--;
  return at;
}
