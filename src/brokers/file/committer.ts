/**
 * Group commit: publications that arrive while one is on its way to the device go together in the next.
 *
 * @module
 */

import type { Priority } from "../../core/priority.ts";
import type { MessageHeaders } from "../../core/values.ts";
import type { BucketMaker, BucketWriter, OwnBucket } from "./bucket_writer.ts";
import { UnknownOutcome } from "./failures.ts";
import { keyLength, type NonceSource, renderEntry } from "./names.ts";
import {
  atPath,
  attempt,
  type FileOperations,
  flushEntries,
  forEachParallel,
  systemCode,
  tidyUp,
} from "./operations.ts";
import { encodeHeaders, recordLength, writeRecord } from "./records.ts";
import { Slices } from "./slices.ts";
import type { WaitingIndex } from "./waiting_index.ts";

/** A message on its way to the device. */
export interface Submission {
  readonly id: string;
  readonly enqueuedAt: number;
  readonly visibleAt: number;
  readonly deliveries: number;
  readonly priority: Priority;
  readonly headers: MessageHeaders;
  readonly payload: Uint8Array;
  /** Whether it is visible later. */
  readonly delayed: boolean;
}

/** Where waiting entries of one kind go. */
export interface Shelf {
  readonly maker: BucketMaker;
  readonly writer: BucketWriter;
  readonly index: WaitingIndex;
}

/** What a committer needs to know of its surroundings. */
export interface CommitterOptions {
  readonly operations: FileOperations;
  /** Where unfinished files lie. */
  readonly temporary: string;
  readonly nonces: NonceSource;
  /** The most messages of one segment. */
  readonly segmentMessages: number;
  readonly ready: Shelf;
  readonly delayed: Shelf;
  /** Called after messages became visible to readers. */
  readonly onPublished: () => void;
}

/** The most payload of one segment, in bytes; a larger payload has a file of its own. */
const segmentBytes = 1_048_576;

/** How far a caller's submissions have come. */
export interface Progress {
  /** How many of them, from the first on, are on the device. */
  done: number;
}

interface Pending {
  readonly submissions: readonly Submission[];
  readonly progress: Progress;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  failed: boolean;
}

interface Item {
  readonly submission: Submission;
  readonly owner: Pending;
}

/** A record's place in its segment. */
interface Placed {
  readonly item: Item;
  readonly segment: string;
  readonly offset: number;
  readonly length: number;
}

/** Puts messages on the device, many to a flush. */
export class Committer {
  readonly #options: CommitterOptions;
  #waiting: Pending[] = [];
  #running: Promise<void> | undefined;
  #hardLinks = true;

  constructor(options: CommitterOptions) {
    this.#options = options;
  }

  /** Resolves once all are on the device; after a failure `progress` says how many are. */
  submit(submissions: readonly Submission[], progress: Progress = { done: 0 }): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ submissions, progress, resolve, reject, failed: false });
      this.#running ??= this.#run();
    });
  }

  async #run(): Promise<void> {
    // Callers that publish in the same turn, or as soon as the last group resolved, come along.
    await Promise.resolve();
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      await this.#commitGroup(group);
      await Promise.resolve();
      await Promise.resolve();
    }
    this.#running = undefined;
  }

  async #commitGroup(group: readonly Pending[]): Promise<void> {
    for (const pending of group) if (pending.submissions.length === 0) pending.resolve();
    for (const chunk of splitIntoSegments(group, this.#options.segmentMessages)) {
      if (this.#hardLinks && await this.#commitItems(chunk)) continue;
      for (const item of chunk) await this.#commitItems([item]);
    }
  }

  /** Commits what goes into one segment and tells the owners; `false` when there are no hard links to do it with. */
  async #commitItems(chunk: readonly Item[]): Promise<boolean> {
    const items = chunk.filter((item) => !item.owner.failed);
    if (items.length === 0) return true;
    try {
      await this.#commitSegment(items);
      for (const { owner } of items) {
        if (++owner.progress.done === owner.submissions.length) owner.resolve();
      }
    } catch (error) {
      if (items.length > 1 && !this.#hardLinks) return false;
      for (const { owner } of items) fail(owner, error);
    }
    return true;
  }

  async #commitSegment(items: readonly Item[]): Promise<void> {
    const { operations, temporary, nonces } = this.#options;
    const segment = nonces.next();
    const path = `${temporary}/${segment}`;
    const { bytes, placed } = layOut(items, segment);
    await writeFlushed(operations, path, bytes);
    const touched = new Set<OwnBucket>();
    try {
      await this.#nameAll(path, placed, touched);
    } catch (error) {
      tidyUp(() => operations.unlink(path));
      if (placed.length > 1 && isLinkRefusal(error)) this.#hardLinks = false;
      throw error;
    }
    await this.#flushBuckets(touched, items[0]!.submission.delayed);
    if (placed.length > 1) tidyUp(() => operations.unlink(path));
    this.#options.onPublished();
  }

  async #nameAll(path: string, placed: readonly Placed[], touched: Set<OwnBucket>): Promise<void> {
    const { operations } = this.#options;
    const slices = Slices.of(operations);
    const named: string[] = [];
    const name = (target: string) => {
      named.push(target);
      if (placed.length === 1) operations.rename(path, target);
      else operations.link(path, target);
    };
    try {
      for (const [index, place] of placed.entries()) {
        if (index > 0 && slices.isOver) await slices.giveWay();
        this.#put(place, touched, name);
      }
    } catch (error) {
      // Nothing was promised yet: take back what is still there, the one that failed too, since it may have been done.
      try {
        for (const target of named) attempt(() => operations.unlink(target), "ENOENT");
      } catch (refusal) {
        throw new UnknownOutcome(refusal);
      }
      throw error;
    }
  }

  /** Gives a record its entry; a bucket that a reader removed meanwhile is replaced. */
  #put(placed: Placed, touched: Set<OwnBucket>, name: (target: string) => void): void {
    const { submission } = placed.item;
    const { writer, index } = submission.delayed ? this.#options.delayed : this.#options.ready;
    const entry = renderEntry({
      instant: submission.visibleAt,
      state: submission.deliveries === 0 ? "a" : "b",
      id: submission.id,
      enqueuedAt: submission.enqueuedAt,
      deliveries: submission.deliveries,
      priority: submission.priority,
      failure: "n",
      segment: placed.segment,
      offset: placed.offset,
      length: placed.length,
      nonce: this.#options.nonces.next(),
    });
    for (;;) {
      const bucket = writer.place(submission.priority, entry.slice(0, keyLength));
      const target = `${bucket.path}/${entry}`;
      try {
        name(target);
      } catch (error) {
        if (systemCode(error) !== "ENOENT") throw error;
        if (attempt(() => void this.#options.operations.status(bucket.path), "ENOENT")) throw error;
        writer.abandon(bucket);
        continue;
      }
      bucket.count++;
      touched.add(bucket);
      index.addEntry(bucket.name, entry);
      return;
    }
  }

  async #flushBuckets(buckets: ReadonlySet<OwnBucket>, delayed: boolean): Promise<void> {
    const { operations } = this.#options;
    const { maker, writer } = delayed ? this.#options.delayed : this.#options.ready;
    const flushes = [() => maker.secureAll(buckets)];
    for (const { path } of buckets) flushes.push(() => flushEntries(operations, path));
    try {
      await forEachParallel(flushes, (flush) => flush());
    } catch (error) {
      // A flush that failed says nothing when it is repeated, so these buckets are never written to again.
      for (const bucket of buckets) writer.abandon(bucket);
      throw new UnknownOutcome(error);
    }
  }
}

function fail(owner: Pending, error: unknown): void {
  if (owner.failed) return;
  owner.failed = true;
  owner.reject(error);
}

/** Whether a file system refuses hard links as such. */
export function isLinkRefusal(error: unknown): boolean {
  return ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"].includes(systemCode(error));
}

/** Splits what a group holds into segments, in order; what is visible later never shares one with what is visible now. */
function* splitIntoSegments(group: readonly Pending[], segmentMessages: number): Generator<Item[], void, undefined> {
  let chunk: Item[] = [];
  let bytes = 0;
  for (const owner of group) {
    for (const submission of owner.submissions) {
      const size = submission.payload.byteLength;
      const fits = chunk.length < segmentMessages && bytes + size <= segmentBytes &&
        chunk[0]?.submission.delayed === submission.delayed;
      if (chunk.length > 0 && !fits) {
        yield chunk;
        chunk = [];
        bytes = 0;
      }
      chunk.push({ submission, owner });
      bytes += size;
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** The bytes of a segment and where each record lies in it. */
function layOut(items: readonly Item[], segment: string): { bytes: Uint8Array; placed: Placed[] } {
  const headers = items.map(({ submission }) => encodeHeaders(submission.headers));
  const placed: Placed[] = [];
  let end = 0;
  for (const [index, item] of items.entries()) {
    const length = recordLength(headers[index]!, item.submission.payload);
    placed.push({ item, segment, offset: end, length });
    end += length;
  }
  const bytes = new Uint8Array(end);
  for (const [index, { item, offset }] of placed.entries()) {
    writeRecord(bytes, offset, item.submission.id, headers[index]!, item.submission.payload);
  }
  return { bytes, placed };
}

/** Creates a file with its bytes on the device; nothing is left of it after a failure. */
export async function writeFlushed(operations: FileOperations, path: string, bytes: Uint8Array): Promise<void> {
  const descriptor = operations.create(path);
  try {
    const writing = operations.write(descriptor, bytes);
    if (writing !== undefined) await writing;
    await operations.flush(descriptor);
  } catch (error) {
    tidyUp(() => operations.unlink(path));
    throw atPath(error, path);
  } finally {
    operations.close(descriptor);
  }
}
