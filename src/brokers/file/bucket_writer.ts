/**
 * Where this process puts waiting entries: buckets of few entries each, its own or ones that it finds with room left, named
 * so that readers need not list them before their time.
 *
 * @module
 */

import type { Priority } from "../../core/priority.ts";
import { attempt, type FileOperations, flushDirectory } from "./operations.ts";
import {
  bucketStart,
  keyLength,
  leastKey,
  type NonceSource,
  parseInstant,
  renderBucket,
  renderInstant,
  renderLevel,
} from "./names.ts";
import type { WaitingIndex } from "./waiting_index.ts";

/** A bucket that this process puts entries into. */
export interface OwnBucket {
  readonly name: string;
  readonly path: string;
  readonly level: Priority;
  /** The least key it may hold. */
  readonly start: string;
  /** How many entries were put into it, as far as this process knows. */
  count: number;
  /** Whether its own entry is on the device; entries that must survive may be moved in only then. */
  durable: boolean;
  /** The flush of its parent that is under way. */
  flushing: Promise<void> | undefined;
}

/** What a writer needs to know of its surroundings. */
export interface BucketWriterOptions {
  readonly operations: FileOperations;
  readonly directory: string;
  readonly nonces: NonceSource;
  readonly index: WaitingIndex;
  readonly bucketSize: number;
}

/** How many buckets a level keeps open, for publishers whose clocks disagree. */
const openBuckets = 4;

/** How much earlier than its first entry a bucket starts when the clock has gone back, in ms: it may go back further. */
const slack = 60_000;

/** Makes buckets in one state directory. */
export class BucketMaker {
  readonly options: BucketWriterOptions;

  constructor(options: BucketWriterOptions) {
    this.options = options;
  }

  make(level: Priority, start: string): OwnBucket {
    const { operations, directory, nonces, index } = this.options;
    const name = renderBucket(level, start, nonces.next());
    const path = `${directory}/${name}`;
    operations.makeDirectory(path);
    index.addBucket(name);
    return { name, path, level, start, count: 0, durable: false, flushing: undefined };
  }

  /** A bucket that is there already, found as `WaitingIndex.findBucket` says; who made it may not have flushed it. */
  adopt(level: Priority, key: string, prefix: string): OwnBucket | undefined {
    const { directory, index } = this.options;
    const found = index.findBucket(Number(renderLevel(level)), key, prefix);
    if (found === undefined) return undefined;
    const { name, count } = found;
    const path = `${directory}/${name}`;
    return { name, path, level, start: bucketStart(name), count, durable: false, flushing: undefined };
  }

  /** Puts the buckets' own entries on the device. */
  async secureAll(buckets: Iterable<OwnBucket>): Promise<void> {
    const { operations, directory } = this.options;
    const flushes = new Set<Promise<void>>();
    let flush: Promise<void> | undefined;
    for (const bucket of buckets) {
      if (bucket.durable) continue;
      bucket.flushing ??= flush ??= flushDirectory(operations, directory);
      flushes.add(bucket.flushing);
      // Whoever waits for the flush takes part in its outcome; here it is only noted.
      bucket.flushing.then(() => bucket.durable = true, () => {}).finally(() => bucket.flushing = undefined);
    }
    await Promise.all(flushes);
  }
}

/** Decides which bucket an entry of a key goes to. */
export interface BucketWriter {
  /** A bucket for an entry. */
  place(level: Priority, key: string, front?: boolean): OwnBucket;
  /** Never uses a bucket again: it is gone, or a flush of it failed. */
  abandon(bucket: OwnBucket): void;
}

/** Places entries that are visible now: in the order of their keys, bucket after bucket. */
export class ReadyWriter implements BucketWriter {
  readonly #maker: BucketMaker;
  readonly #open = new Map<Priority, OwnBucket[]>();
  /** Per level a bucket for what is handed back to the front, whatever its key. */
  readonly #front = new Map<Priority, OwnBucket>();
  readonly #begun = new Set<Priority>();

  constructor(maker: BucketMaker) {
    this.#maker = maker;
  }

  place(level: Priority, key: string, front = false): OwnBucket {
    const { bucketSize } = this.#maker.options;
    if (front) {
      const bucket = this.#front.get(level);
      if (bucket !== undefined && bucket.count < bucketSize) return bucket;
      const made = this.#maker.make(level, leastKey);
      this.#front.set(level, made);
      return made;
    }
    let open = this.#open.get(level);
    if (open === undefined) this.#open.set(level, open = []);
    let best: OwnBucket | undefined;
    for (const bucket of open) {
      if (bucket.start <= key && (best === undefined || bucket.start > best.start)) best = bucket;
    }
    if (best !== undefined && best.count < bucketSize) return best;
    const made = this.#adopt(level, key) ?? this.#maker.make(level, open.length === 0 || best ? key : earlier(key));
    if (best !== undefined) open.splice(open.indexOf(best), 1, made);
    else if (open.push(made) > openBuckets) open.shift();
    return made;
  }

  /** The first bucket of a level may be one that others left, so that a process a message does not leave a bucket each. */
  #adopt(level: Priority, key: string): OwnBucket | undefined {
    if (this.#begun.has(level)) return undefined;
    this.#begun.add(level);
    const found = this.#maker.adopt(level, key, "");
    return found !== undefined && found.count < this.#maker.options.bucketSize ? found : undefined;
  }

  abandon(bucket: OwnBucket): void {
    this.#maker.options.index.abandon(bucket.name);
    if (this.#front.get(bucket.level) === bucket) this.#front.delete(bucket.level);
    const open = this.#open.get(bucket.level) ?? [];
    const at = open.indexOf(bucket);
    if (at >= 0) open.splice(at, 1);
  }
}

/** The shortest span of instants that begins a delayed bucket's range: the first 5 of 13 digits, 27.8 hours. */
const shortestPrefix = 5;

/** How many ranges are remembered; the bucket of one that was forgotten is looked for. */
const rememberedRanges = 10_000;

/**
 * Places entries that are visible later: coarse ranges of time first; when a range's bucket is full, the entry goes to the
 * tenth of it that it falls into, down to one instant, where full buckets follow each other by key.
 */
export class DelayedWriter implements BucketWriter {
  readonly #maker: BucketMaker;
  readonly #ranges = new Map<string, OwnBucket>();

  constructor(maker: BucketMaker) {
    this.#maker = maker;
  }

  place(level: Priority, key: string): OwnBucket {
    const { bucketSize } = this.#maker.options;
    for (let digits = shortestPrefix; digits < 13; digits++) {
      const range = `${level}:${key.slice(0, digits)}`;
      const start = startOfRange(key, digits);
      const bucket = this.#ranges.get(range) ?? this.#adopt(range, level, start, start);
      if (bucket === undefined) return this.#remember(range, this.#maker.make(level, start));
      if (bucket.count < bucketSize) return bucket;
    }
    const range = `${level}:${key.slice(0, 13)}`;
    const bucket = this.#ranges.get(range) ?? this.#adopt(range, level, key, key.slice(0, 13));
    if (bucket !== undefined && bucket.count < bucketSize && bucket.start <= key) return bucket;
    return this.#remember(range, this.#maker.make(level, key));
  }

  abandon(bucket: OwnBucket): void {
    this.#maker.options.index.abandon(bucket.name);
    for (const [range, held] of this.#ranges) {
      if (held === bucket) this.#ranges.delete(range);
    }
  }

  #adopt(range: string, level: Priority, key: string, prefix: string): OwnBucket | undefined {
    const found = this.#maker.adopt(level, key, prefix);
    return found && this.#remember(range, found);
  }

  #remember(range: string, bucket: OwnBucket): OwnBucket {
    this.#ranges.set(range, bucket);
    if (this.#ranges.size > rememberedRanges) this.#ranges.delete(this.#ranges.keys().next().value!);
    return bucket;
  }
}

/** Below all keys of a range and unlike the start of any other: the shorter ranges that begin with it have their own. */
function startOfRange(key: string, digits: number): string {
  return key.slice(0, digits).padEnd(13, "0") + String(digits).padStart(keyLength - 13, "0");
}

/** A key that others of a little earlier are not below. */
function earlier(key: string): string {
  return renderInstant(Math.max(0, parseInstant(key) - slack)).padEnd(keyLength, "0");
}

/** Moves a file into a bucket under a name; `false` when the file was gone. A bucket that is gone is replaced. */
export function moveInto(
  operations: FileOperations,
  from: string,
  bucket: OwnBucket,
  name: string,
): "moved" | "sourceGone" | "bucketGone" {
  if (attempt(() => operations.rename(from, `${bucket.path}/${name}`), "ENOENT")) return "moved";
  return attempt(() => void operations.status(bucket.path), "ENOENT") ? "sourceGone" : "bucketGone";
}
