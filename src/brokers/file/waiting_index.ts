/**
 * What this process knows of the waiting entries in one state directory, so that a receive never lists the backlog.
 *
 * Entries lie in buckets; a bucket's name says its level and the least key it may hold. A bucket is listed when the
 * walk reaches that key, its sorted names are walked down in memory, and an emptied one is removed.
 *
 * @module
 */

import { FolderChanges } from "./folder_changes.ts";
import { FolderRemover } from "./folder_remover.ts";
import { type FileOperations, systemCode } from "./operations.ts";
import type { Slices } from "./slices.ts";
import { bucketLevel, bucketStart, isBucketName, leastKey, looksLikeEntry } from "./names.ts";

/** A bucket as the walk knows it. */
interface Bucket {
  readonly name: string;
  readonly level: number;
  readonly start: string;
  /** Not reached yet; listed, with something left; listed, with nothing left; removed. */
  place: "ahead" | "open" | "spent" | "gone";
  /** The least key that this process put into it before it was listed. */
  least: string | undefined;
  /** Made by this process. */
  readonly own: boolean;
  /** Its writer has given it up. */
  abandoned: boolean;
  /** The names still to take, in byte order from `cursor`; taken ones in between are empty strings. */
  names: string[];
  cursor: number;
  /** The next entry of this process's own stretch while rivals are at work. */
  stretch: number | undefined;
  /** The most names ever listed at once: a bucket that was full gets no more. */
  seen: number;
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
  readonly slices: Slices;
  /** The state directory. */
  readonly directory: string;
  /** How many entries fill a bucket. */
  readonly bucketSize: number;
  /** Whether a bucket may be entered; reports one that may not. */
  readonly mayEnter: (path: string) => boolean;
}

/** How long a bucket that may still be written to is left empty before it is removed, in ms. */
const emptyBucketLife = 10_000;

/** How many emptied buckets of a level are left for their writers; each is looked into again and again. */
const keptEmpty = 16;

/** How many buckets that were found are taken in at a time: 500 take about 1 ms. */
const insertedAtOnce = 500;

/** For how long after a lost race rivals are taken to be at work, in ms. */
const rivalry = 200;

const levels = [0, 1, 2, 3, 4] as const;

/** The buckets of one state directory, walked in the order of delivery. */
export class WaitingIndex {
  readonly #options: WaitingIndexOptions;
  readonly #remover: FolderRemover;
  readonly #changes: FolderChanges;
  readonly #known = new Map<string, Bucket>();
  /** Per level: buckets not reached yet, the next one last. */
  readonly #ahead: Bucket[][] = levels.map(() => []);
  /** Per level: buckets that were listed and may have something left. */
  readonly #open: Bucket[][] = levels.map(() => []);
  /** Per level: buckets of other processes that were emptied, the first one first. */
  readonly #spent: Bucket[][] = levels.map(() => []);
  readonly #refused = new Set<string>();
  /** Whether the walk has listed a bucket since it was told to go on. */
  #entered = false;
  /** Until when rivals are taken to be at work, by the monotonic clock in ms. */
  #rivalsUntil = -Infinity;

  constructor(options: WaitingIndexOptions) {
    this.#options = options;
    this.#remover = FolderRemover.of(options.operations);
    this.#changes = new FolderChanges(options.operations, options.directory);
  }

  /** Notes a bucket that this process made. */
  addBucket(name: string): void {
    this.#insert(name, true);
  }

  /** Notes an entry that this process put into a bucket. */
  addEntry(bucketName: string, name: string): void {
    const bucket = this.#known.get(bucketName) ?? this.#insert(bucketName, false);
    if (bucket.place === "ahead") {
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
    if (bucket.place === "spent") this.#putAt(bucket, "open");
  }

  /**
   * A bucket that is there already and that an entry may be put into, whoever made it, so that processes which publish
   * little do not leave a bucket each; how many entries it holds, or `undefined` when there is none.
   *
   * @param key What the entry sorts by; the bucket is the one with the greatest start that is not above it.
   * @param prefix What the bucket's start begins with.
   */
  findBucket(level: number, key: string, prefix: string): { name: string; count: number } | undefined {
    let best: Bucket | undefined;
    for (const bucket of this.#known.values()) {
      const { start } = bucket;
      if (bucket.level !== level || start > key || start === leastKey || !start.startsWith(prefix)) continue;
      if (!bucket.abandoned && (best === undefined || bucket.name > best.name)) best = bucket;
    }
    if (best === undefined) return undefined;
    const { operations, directory, mayEnter } = this.#options;
    const path = `${directory}/${best.name}`;
    if (!best.own && !mayEnter(path)) return undefined;
    const names = listOrNothing(operations, path);
    return names && { name: best.name, count: names.length };
  }

  /** Tells that a bucket will not be written to any more by this process. */
  abandon(name: string): void {
    const bucket = this.#known.get(name);
    if (bucket !== undefined) bucket.abandoned = true;
  }

  /** Whether the walk stopped to let the event loop turn; `startTurn` lets it go on by one bucket at least. */
  get needsTurn(): boolean {
    return this.#entered && this.#options.slices.isOver;
  }

  /** Lets the walk list more buckets. */
  startTurn(): void {
    this.#entered = false;
  }

  /**
   * The next entry of a level, left in place; none while the walk needs a turn.
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

  /** Tells that a taken entry was gone: a rival has been there, so this process looks again and goes on elsewhere. */
  noteLoss(bucketName: string): void {
    this.#rivalsUntil = this.#options.operations.uptime() + rivalry;
    const bucket = this.#known.get(bucketName);
    if (bucket?.place === "open") this.#relist(bucket, undefined);
  }

  /** When the first entry known comes due, by its key; `undefined` when nothing is known to wait. */
  firstKey(): string | undefined {
    let first: string | undefined;
    for (const level of levels) {
      for (const bucket of this.#open[level]!) {
        const name = skipTaken(bucket);
        if (name !== undefined && (first === undefined || name < first)) first = name;
      }
      const ahead = this.#ahead[level]!;
      for (let at = ahead.length - 1; at >= 0; at--) {
        const { start, least = start } = ahead[at]!;
        if (first !== undefined && start >= first) break;
        if (first === undefined || least < first) first = least;
      }
    }
    return first;
  }

  /** Looks for what other processes made and removed; `now` by the monotonic clock in ms. */
  async refresh(now: number): Promise<void> {
    if (this.#changes.mayHaveChanged(now)) await this.#listBuckets(now);
    const { slices } = this.#options;
    for (const level of levels) {
      // Those of this process's own too: a process that has just begun may have put something into one.
      for (const bucket of [...this.#open[level]!, ...this.#spent[level]!]) {
        if (slices.isOver) await slices.giveWay();
        if (bucket.place !== "gone") this.#relist(bucket, now);
      }
    }
  }

  /** Forgets what was listed, so that the next walk lists anew. */
  reset(): void {
    this.#forgetAllBut(new Set());
    this.#changes.reset();
  }

  async #listBuckets(now: number): Promise<void> {
    const names = this.#changes.list(now);
    this.#forgetAllBut(new Set(names));
    const isNew = (name: string) => !this.#known.has(name) && !this.#refused.has(name) && isBucketName(name);
    const found = names.filter(isNew).sort();
    const { slices } = this.#options;
    for (let from = 0; from < found.length; from += insertedAtOnce) {
      if (slices.isOver) await slices.giveWay();
      const fresh: Bucket[][] = levels.map(() => []);
      // Meanwhile another look may have found them too.
      for (const name of found.slice(from, from + insertedAtOnce).filter(isNew)) {
        const bucket = makeBucket(name, false);
        this.#known.set(name, bucket);
        fresh[bucket.level]!.push(bucket);
      }
      for (const level of levels) this.#ahead[level] = mergeBackwards(this.#ahead[level]!, fresh[level]!);
    }
  }

  /** The open bucket whose head comes next at a level; lists buckets as the walk reaches them. */
  #reach(level: number, limit: string): Bucket | undefined {
    for (;;) {
      let best: Bucket | undefined;
      let bestName = limit;
      let emptied: Bucket | undefined;
      for (const bucket of this.#open[level]!) {
        const name = skipTaken(bucket);
        if (name === undefined) {
          if (!bucket.own) emptied = bucket;
        } else if (name < bestName) {
          best = bucket;
          bestName = name;
        }
      }
      if (emptied !== undefined) {
        this.#putAside(emptied);
        continue;
      }
      const next = this.#ahead[level]!.at(-1);
      if (next === undefined || next.start >= bestName) return best;
      if (this.needsTurn) return undefined;
      this.#entered = true;
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
    this.#putAt(bucket, "open");
    this.#relist(bucket, undefined);
    // An empty bucket with later ones behind it has been left by its writer; one of this process's own, or one for what
    // comes to the front, may have been made a moment ago, and whoever made it would wait for its flush for nothing.
    const mayBeNew = bucket.own || bucket.start === leastKey;
    if (bucket.names.length === 0 && !mayBeNew && this.#ahead[bucket.level]!.length > 0) this.#remove(bucket);
  }

  /** Keeps an emptied bucket of another process in mind for a while; a few of them, and none that was full. */
  #putAside(bucket: Bucket): void {
    this.#putAt(bucket, "spent");
    const spent = this.#spent[bucket.level]!;
    if (bucket.seen >= this.#options.bucketSize) this.#remove(bucket);
    else if (spent.length > keptEmpty) this.#remove(spent[0]!);
  }

  #relist(bucket: Bucket, now: number | undefined): void {
    const { operations, directory, bucketSize } = this.#options;
    const names = listOrNothing(operations, `${directory}/${bucket.name}`);
    if (names === undefined) return this.#forget(bucket);
    bucket.names = names.filter(looksLikeEntry).sort();
    bucket.cursor = 0;
    bucket.stretch = undefined;
    bucket.seen = Math.max(bucket.seen, bucket.names.length);
    if (bucket.names.length > 0) {
      bucket.emptySince = undefined;
      if (bucket.place === "spent") this.#putAt(bucket, "open");
    } else if (now !== undefined) {
      bucket.emptySince ??= now;
      if (bucket.seen >= bucketSize || now - bucket.emptySince >= emptyBucketLife) this.#remove(bucket);
    }
  }

  /** Removes an emptied bucket; whoever still writes to it makes another. */
  #remove(bucket: Bucket): void {
    this.#remover.remove(`${this.#options.directory}/${bucket.name}`, () => {
      if (bucket.place !== "gone") this.#forget(bucket);
    });
  }

  #insert(name: string, own: boolean): Bucket {
    const bucket = makeBucket(name, own);
    this.#known.set(name, bucket);
    const ahead = this.#ahead[bucket.level]!;
    let at = 0;
    while (at < ahead.length && ahead[at]!.name > name) at++;
    ahead.splice(at, 0, bucket);
    return bucket;
  }

  #listFor(bucket: Bucket): Bucket[] {
    const lists = { ahead: this.#ahead, open: this.#open, spent: this.#spent };
    return bucket.place === "gone" ? [] : lists[bucket.place][bucket.level]!;
  }

  #putAt(bucket: Bucket, place: Bucket["place"]): void {
    const list = this.#listFor(bucket);
    const at = list.lastIndexOf(bucket);
    if (at >= 0) list.splice(at, 1);
    bucket.place = place;
    this.#listFor(bucket).push(bucket);
  }

  #forget(bucket: Bucket): void {
    this.#known.delete(bucket.name);
    this.#putAt(bucket, "gone");
  }

  /** Forgets all buckets but some, in one pass however many they are. */
  #forgetAllBut(present: ReadonlySet<string>): void {
    let left = 0;
    for (const bucket of this.#known.values()) {
      if (present.has(bucket.name)) continue;
      bucket.place = "gone";
      this.#known.delete(bucket.name);
      left++;
    }
    for (const name of this.#refused) if (!present.has(name)) this.#refused.delete(name);
    if (left === 0) return;
    for (const lists of [this.#ahead, this.#open, this.#spent]) {
      for (const level of levels) lists[level] = lists[level]!.filter(({ place }) => place !== "gone");
    }
  }

  /**
   * Which entry to take: the head, or while rivals race for heads the next of a stretch of this process's own, which begins
   * anywhere in the bucket and ends where a rival has been.
   */
  #pick(bucket: Bucket, limit: string): number {
    if (this.#options.operations.uptime() >= this.#rivalsUntil) return bucket.cursor;
    const { names, cursor } = bucket;
    let at = bucket.stretch ?? cursor + Math.floor(Math.random() * (names.length - cursor));
    while (names[at] === "") at++;
    const name = names[at];
    if (at < cursor || name === undefined || name >= limit) at = cursor;
    bucket.stretch = at + 1;
    return at;
  }
}

function makeBucket(name: string, own: boolean): Bucket {
  return {
    name,
    level: bucketLevel(name),
    start: bucketStart(name),
    place: "ahead",
    least: undefined,
    own,
    abandoned: false,
    names: [],
    cursor: 0,
    stretch: undefined,
    seen: 0,
    emptySince: undefined,
  };
}

/** The names in a bucket; `undefined` when it is gone. */
function listOrNothing(operations: FileOperations, path: string): string[] | undefined {
  try {
    return operations.list(path);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    return undefined;
  }
}

/** Joins buckets sorted from the last to the first with some that are sorted the other way. */
function mergeBackwards(backwards: Bucket[], others: readonly Bucket[]): Bucket[] {
  if (others.length === 0) return backwards;
  const merged: Bucket[] = [];
  let left = others.length;
  for (const bucket of backwards) {
    while (left > 0 && others[left - 1]!.name > bucket.name) merged.push(others[--left]!);
    merged.push(bucket);
  }
  while (left > 0) merged.push(others[--left]!);
  return merged;
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
