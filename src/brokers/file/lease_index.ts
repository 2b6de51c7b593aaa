/**
 * Leases by deadline: where this process puts them, and which have lapsed, whoever made them.
 *
 * A lease bucket's name says when its earliest lease may end, so that a receive reads only those that have begun to lapse.
 * Each process makes its own: a bucket is never made twice under one name, so its entry in the parent, once flushed,
 * stays flushed.
 *
 * @module
 */

import { FolderChanges } from "./folder_changes.ts";
import { FolderRemover } from "./folder_remover.ts";
import { type FileOperations, flushDirectory, systemCode } from "./operations.ts";
import { isLeaseBucketName, type NonceSource, parseEntry, parseInstant, renderLeaseBucket } from "./names.ts";

/** A bucket of leases. */
export interface LeaseBucket {
  readonly name: string;
  readonly path: string;
  /** The earliest deadline that it may hold, in ms. */
  readonly start: number;
  readonly own: boolean;
  /** A bound below every deadline in it, in ms; `Infinity` when it is known to be empty. */
  earliest: number;
  /** How many leases this process put into it and has not settled. */
  held: number;
  /** When a look first found that it holds nothing, by the monotonic clock in ms. */
  idleSince: number | undefined;
}

/** What an index needs to know of its surroundings. */
export interface LeaseIndexOptions {
  readonly operations: FileOperations;
  /** The state directory. */
  readonly directory: string;
  readonly nonces: NonceSource;
  /** How many leases fill a bucket. */
  readonly bucketSize: number;
  /** Whether a bucket may be entered; reports one that may not. */
  readonly mayEnter: (path: string) => boolean;
}

/** A lease that has lapsed. */
export interface LapsedLease {
  readonly bucket: LeaseBucket;
  readonly name: string;
}

/**
 * The one bucket that is there from the start, shared and never removed: it takes leases of any deadline while a process
 * waits for the flush of a bucket of its own, so that no receive has to.
 */
export const sharedLeaseBucket: string = renderLeaseBucket(0, "0000000000");

/** How far apart the deadlines in one bucket may be, in ms. */
const bucketSpan = 10_000;

/**
 * How long a bucket of this process's own may hold nothing before it is removed although its time has not come, in ms: long
 * leases would leave a folder for every span of their length.
 */
const idleBucketLife = 10_000;

/** The lease buckets of one queue. */
export class LeaseIndex {
  readonly #options: LeaseIndexOptions;
  readonly #changes: FolderChanges;
  readonly #known = new Map<string, LeaseBucket>();
  /** The buckets that this process fills, by start. */
  readonly #filling = new Map<number, LeaseBucket>();
  readonly #making = new Map<number, Promise<void>>();
  readonly #refused = new Set<string>();
  readonly #shared: LeaseBucket;

  constructor(options: LeaseIndexOptions) {
    this.#options = options;
    this.#changes = new FolderChanges(options.operations, options.directory);
    this.#shared = this.#note(sharedLeaseBucket, false);
    // Nothing is known of it before the first look.
    this.#shared.earliest = Infinity;
  }

  /** The bucket for a deadline; the shared one, and one of its own is made for later calls, while none is at hand. */
  bucketFor(deadline: number): LeaseBucket {
    const start = startOf(deadline);
    const bucket = this.#filling.get(start);
    if (bucket !== undefined && bucket.held < this.#options.bucketSize) return bucket;
    if (!this.#making.has(start)) {
      // A refusal leaves the shared bucket in use; the next lease tries again.
      this.#making.set(start, this.#make(start).catch(() => {}).finally(() => this.#making.delete(start)));
    }
    return this.#shared;
  }

  /** Resolves once no bucket is being made. */
  async idle(): Promise<void> {
    await Promise.all(this.#making.values());
  }

  /** Notes a lease that this process made. */
  hold(bucket: LeaseBucket, deadline: number): void {
    bucket.held++;
    bucket.idleSince = undefined;
    if (deadline < bucket.earliest) bucket.earliest = deadline;
  }

  /** Notes that a lease lies again where it was. */
  restore(bucketName: string, deadline: number): void {
    const bucket = this.#known.get(bucketName);
    if (bucket !== undefined) this.hold(bucket, deadline);
  }

  /** Notes that a lease was settled or lost. */
  settle(bucketName: string): void {
    const bucket = this.#known.get(bucketName);
    if (bucket !== undefined && bucket.held > 0) bucket.held--;
  }

  /** Never fills a bucket again: it is gone. The shared one is kept: without it the queue is broken. */
  abandon(bucket: LeaseBucket): void {
    if (bucket === this.#shared) return;
    if (this.#filling.get(bucket.start) === bucket) this.#filling.delete(bucket.start);
    this.#known.delete(bucket.name);
  }

  /** Looks for what other processes made and removed. */
  refresh(now: number): void {
    if (this.#changes.mayHaveChanged(now)) this.#listBuckets(now);
    for (const bucket of [...this.#known.values()]) {
      if (!bucket.own) bucket.earliest = Math.min(bucket.earliest, bucket.start);
      else if (bucket.held === 0) this.#removeIdle(bucket);
    }
  }

  /** Leases that have lapsed, at most `max`; lists only buckets that have begun to lapse, and removes emptied ones. */
  *lapsed(now: number, max: number): Generator<LapsedLease, void, undefined> {
    let found = 0;
    for (const bucket of this.#begun(now)) {
      const names = this.#list(bucket);
      if (names === undefined) continue;
      let left = 0;
      // From here on it counts what is seen below, and what others put into the bucket meanwhile.
      bucket.earliest = Infinity;
      let given = false;
      try {
        for (const name of names) {
          const deadline = parseInstant(name);
          if (deadline <= now && found < max) {
            found++;
            yield { bucket, name };
          } else {
            left++;
            bucket.earliest = Math.min(bucket.earliest, deadline);
          }
        }
        given = true;
      } finally {
        // Whoever asked gave up half-way: all of it is to be looked at again.
        if (!given) bucket.earliest = bucket.start;
      }
      if (left === 0 && this.#isOver(bucket, now)) this.#remove(bucket);
      if (found >= max) return;
    }
  }

  /** Removes what is empty of this process's own, before the process goes. */
  removeOwn(): void {
    for (const bucket of [...this.#known.values()]) if (bucket.own && bucket.held === 0) this.#remove(bucket);
  }

  /** A bound below every deadline known, in ms; `undefined` when nothing is known to be leased. */
  firstDeadline(): number | undefined {
    let first = Infinity;
    for (const { earliest } of this.#known.values()) {
      // The shared bucket before it was listed: of that nothing is known.
      if (earliest > 0) first = Math.min(first, earliest);
    }
    return first === Infinity ? undefined : first;
  }

  /** Forgets deadlines and looks at every bucket anew when it is next asked. */
  reset(): void {
    for (const bucket of this.#known.values()) bucket.earliest = bucket.start;
  }

  /** The buckets that have begun to lapse or are over, the earliest first: there is seldom one, however many there are. */
  #begun(now: number): LeaseBucket[] {
    const begun: LeaseBucket[] = [];
    for (const bucket of this.#known.values()) {
      if (bucket.earliest <= now || this.#isOver(bucket, now)) begun.push(bucket);
    }
    return begun.sort((a, b) => a.earliest - b.earliest);
  }

  #listBuckets(now: number): void {
    const present = new Set(this.#changes.list(now).filter(isLeaseBucketName));
    for (const bucket of [...this.#known.values()]) if (!present.has(bucket.name)) this.abandon(bucket);
    for (const name of present) {
      if (!this.#known.has(name) && !this.#refused.has(name)) this.#note(name, false);
    }
  }

  #isOver(bucket: LeaseBucket, now: number): boolean {
    return bucket !== this.#shared && bucket.start + bucketSpan <= now;
  }

  #list(bucket: LeaseBucket): string[] | undefined {
    const { operations, mayEnter } = this.#options;
    if (!bucket.own && !mayEnter(bucket.path)) {
      this.#refused.add(bucket.name);
      this.#known.delete(bucket.name);
      return undefined;
    }
    try {
      return operations.list(bucket.path).filter((name) => parseEntry(name)?.state === "l");
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      this.abandon(bucket);
      return undefined;
    }
  }

  #removeIdle(bucket: LeaseBucket): void {
    const now = this.#options.operations.uptime();
    bucket.idleSince ??= now;
    if (now - bucket.idleSince >= idleBucketLife) this.#remove(bucket);
  }

  #remove(bucket: LeaseBucket): void {
    if (this.#filling.get(bucket.start) === bucket) this.#filling.delete(bucket.start);
    // Until it is gone it stays known: something may be left in it, and nobody would look for that.
    FolderRemover.of(this.#options.operations).remove(bucket.path, () => this.abandon(bucket));
  }

  /** Makes a bucket and puts its entry on the device, so that a lease moved into it cannot be lost. */
  async #make(start: number): Promise<void> {
    const { operations, directory, nonces } = this.#options;
    const name = renderLeaseBucket(start, nonces.next());
    // The receive that asked for it goes first.
    await operations.pause();
    operations.makeDirectory(`${directory}/${name}`);
    await flushDirectory(operations, directory);
    this.#filling.set(start, this.#note(name, true));
  }

  #note(name: string, own: boolean): LeaseBucket {
    const start = parseInstant(name);
    const path = `${this.#options.directory}/${name}`;
    const bucket: LeaseBucket = {
      name,
      path,
      start,
      own,
      earliest: own ? Infinity : start,
      held: 0,
      idleSince: undefined,
    };
    this.#known.set(name, bucket);
    return bucket;
  }
}

function startOf(deadline: number): number {
  return deadline - deadline % bucketSpan;
}
