/**
 * One queue directory as one process sees it: however many brokers are open on it, they share its indices, its group
 * commit, its wake and its watch.
 *
 * @module
 */

import type { BrokerEvent } from "../../core/capabilities/wake.ts";
import { WakeSource } from "../../core/wake.ts";
import { BucketMaker, DelayedWriter, moveInto, type OwnBucket, ReadyWriter } from "./bucket_writer.ts";
import { Committer, type Shelf } from "./committer.ts";
import { DeadStore } from "./dead_store.ts";
import { UnknownOutcome } from "./failures.ts";
import { LeaseIndex, sharedLeaseBucket } from "./lease_index.ts";
import { type Entry, keyLength, NonceSource, parseEntry, parseInstant, renderEntry, renderInstant } from "./names.ts";
import { OnceStore } from "./once_store.ts";
import { attempt, type FileOperations, flushDirectory, flushEntries, forEachParallel, tidyUp } from "./operations.ts";
import { SegmentReader } from "./segment_reader.ts";
import { Slices } from "./slices.ts";
import { findDistrust, prepareState } from "./trust.ts";
import { type Candidate, WaitingIndex } from "./waiting_index.ts";
import { explainWatchFailure } from "./watch_failure.ts";

/** The folders below a queue's root. */
export const states = ["ready", "delayed", "leased", "dead", "once", "pending", "damaged", "tmp", "wake"] as const;

/** How much goes into one folder or file; only tests choose others, so that a few messages fill them. */
export interface QueueSizes {
  /** How many entries fill a bucket of waiting ones. */
  readonly waitingBucket: number;
  /** How many leases fill a bucket. */
  readonly leaseBucket: number;
  /** How many dead letters fill a folder. */
  readonly deadFolder: number;
  /** The most messages of one segment. */
  readonly segment: number;
}

/** The sizes of every queue that `newFile` opens. */
export const queueSizes: QueueSizes = { waitingBucket: 500, leaseBucket: 1_000, deadFolder: 250, segment: 1_000 };

/** The least time between two looks for other processes' work while there is work at hand, in ms. */
const refreshInterval = 10;

/** A look may take a twentieth of the time, however large the queue. */
const refreshShare = 20;

/** How often leftovers of dead processes are looked for, in ms. */
const recoveryInterval = 60_000;

/** When a file without a name of its own is taken for a leftover, in ms by the file system's clock. */
const leftoverAge = 600_000;

/** When a reserved message that its publisher has not moved is taken to be left behind, in ms by the same clock. */
const pendingAge = 5_000;

/** After every entry: greater than any entry's key. */
const noLimit = "~";

/** An entry taken from the waiting ones. */
export interface Taken extends Candidate {
  /** Which index it came from. */
  readonly index: WaitingIndex;
  readonly path: string;
}

/** A directory shared by the brokers of this process. */
export class QueueDirectory {
  readonly operations: FileOperations;
  readonly root: string;
  readonly slices: Slices;
  readonly nonces: NonceSource = new NonceSource();
  readonly wake: WakeSource = new WakeSource();
  readonly ready: Shelf;
  readonly delayed: Shelf;
  readonly leases: LeaseIndex;
  readonly dead: DeadStore;
  readonly once: OnceStore;
  readonly reader: SegmentReader;
  readonly committer: Committer;
  readonly #listeners = new Set<(event: BrokerEvent) => void>();
  readonly #reported = new Set<string>();
  #watchers = 0;
  #unwatch: (() => void) | undefined;
  /** Why there is no watch although somebody holds one. */
  #watchFailure: BrokerEvent | undefined;
  #lastRefresh = -Infinity;
  #refreshCost = 0;
  #lastRecovery = -Infinity;

  constructor(operations: FileOperations, root: string, sizes: QueueSizes) {
    this.operations = operations;
    this.slices = Slices.of(operations);
    this.root = root;
    this.ready = this.#makeShelf("ready", sizes.waitingBucket, (maker) => new ReadyWriter(maker));
    this.delayed = this.#makeShelf("delayed", sizes.waitingBucket, (maker) => new DelayedWriter(maker));
    this.leases = new LeaseIndex({
      operations,
      directory: this.pathOf("leased"),
      nonces: this.nonces,
      bucketSize: sizes.leaseBucket,
      mayEnter: (path) => this.mayEnter(path),
    });
    this.reader = new SegmentReader(operations);
    this.dead = new DeadStore(
      operations,
      this.pathOf("dead"),
      this.pathOf("tmp"),
      this.nonces,
      sizes.deadFolder,
      (path) => this.mayEnter(path),
    );
    this.once = new OnceStore(operations, this.pathOf("once"), this.pathOf("pending"), this.nonces);
    this.committer = new Committer({
      operations,
      temporary: this.pathOf("tmp"),
      nonces: this.nonces,
      segmentMessages: sizes.segment,
      ready: this.ready,
      delayed: this.delayed,
      onPublished: () => this.announce(),
    });
  }

  /**
   * Makes and audits the folders of a queue; they are on the device when it resolves.
   *
   * @param madeAbove How many directories were made for the root, itself included.
   */
  static async prepare(operations: FileOperations, root: string, madeAbove: number): Promise<void> {
    let made = false;
    for (const state of [...states, `leased/${sharedLeaseBucket}`]) {
      made = prepareState(operations, root, state) || made;
    }
    // The signal file comes last: where it is missing, whoever made the folders may have died before the flush.
    const signal = `${root}/wake/signal`;
    if (!made && attempt(() => void operations.status(signal), "ENOENT")) return;
    await flushDirectory(operations, `${root}/leased`);
    await flushDirectory(operations, root);
    let parent = root;
    for (let level = 0; level < Math.max(1, madeAbove); level++) {
      parent = parent.slice(0, parent.lastIndexOf("/")) || "/";
      // It may be out of reach: a permission for the directory alone, a parent that others own. A journalling file
      // system puts a new directory's own entry on the device together with what is flushed in it.
      if (!operations.isPermitted(parent)) break;
      try {
        await flushDirectory(operations, parent);
      } catch {
        break;
      }
    }
    makeFile(operations, signal);
  }

  /** The path of a state folder. */
  pathOf(state: typeof states[number]): string {
    return `${this.root}/${state}`;
  }

  /** Tells this process's consumers, and whoever watches in other processes, that there may be something to take. */
  announce(): void {
    this.wake.fire();
    const signal = `${this.root}/wake/signal`;
    // Watchers are only hinted at; their poll finds the work.
    tidyUp(() => {
      if (!attempt(() => this.operations.touch(signal), "ENOENT")) makeFile(this.operations, signal);
    });
  }

  /**
   * Takes the next entry that is due, at the highest level that has one; `"turn"` when the event loop should turn before
   * the walk goes on.
   */
  take(now: number): Taken | "turn" | undefined {
    const due = `${renderInstant(now)}~`;
    for (let level = 0; level < 5; level++) {
      const ready = this.ready.index.head(level, noLimit);
      const delayed = this.delayed.index.head(level, due);
      if (isHeldUp(ready, this.ready.index) || isHeldUp(delayed, this.delayed.index)) return "turn";
      if (ready === undefined && delayed === undefined) continue;
      const fromDelayed = ready === undefined || (delayed !== undefined && delayed.name < ready.name);
      const { index } = fromDelayed ? this.delayed : this.ready;
      const taken = index.take(level, fromDelayed ? due : noLimit)!;
      return {
        ...taken,
        index,
        path: `${this.pathOf(fromDelayed ? "delayed" : "ready")}/${taken.bucket}/${taken.name}`,
      };
    }
    return undefined;
  }

  /** Lets the event loop turn, and the walk go on. */
  async turn(): Promise<void> {
    await this.slices.giveWay();
    this.ready.index.startTurn();
    this.delayed.index.startTurn();
  }

  /** Lists what the first receive will want. A refusal is left for it to meet. */
  lookAhead(now: number): void {
    tidyUp(() => {
      const first = this.take(now);
      if (typeof first === "object") this.giveBack(first);
    });
  }

  /** Puts an entry back that was taken and not moved. */
  giveBack(taken: Taken): void {
    taken.index.addEntry(taken.bucket, taken.name);
  }

  /** Forgets the entries it knows: they were all removed, and looking for each would pass for a race with rivals. */
  forgetEntries(): void {
    this.ready.index.reset();
    this.delayed.index.reset();
    this.leases.reset();
  }

  /** When something waiting or leased may become receivable by itself, in ms; `undefined` when nothing is known to. */
  nextDue(): number | undefined {
    const ready = this.ready.index.firstKey();
    if (ready !== undefined) return 0;
    const delayed = this.delayed.index.firstKey();
    const lapse = this.leases.firstDeadline();
    const due = Math.min(delayed === undefined ? Infinity : parseInstant(delayed), lapse ?? Infinity);
    return due === Infinity ? undefined : due;
  }

  /** Looks for what other processes did; while there is work at hand, only as often as is cheap. Whether it looked. */
  async refresh(force: boolean, now: number): Promise<boolean> {
    const started = this.operations.uptime();
    const pause = Math.max(refreshInterval, this.#refreshCost * refreshShare);
    if (!force && started - this.#lastRefresh < pause) return false;
    await this.look(now);
    this.#lastRefresh = this.operations.uptime();
    this.#refreshCost = this.#lastRefresh - started;
    return true;
  }

  /** Looks for what other processes did. */
  async look(now: number): Promise<void> {
    const started = this.operations.uptime();
    await this.ready.index.refresh(started);
    if (this.slices.isOver) await this.slices.giveWay();
    await this.delayed.index.refresh(started);
    if (this.slices.isOver) await this.slices.giveWay();
    this.leases.refresh(started);
    await this.#recover(started, now);
  }

  /** Moves a file to the waiting entries under a fresh name; `false` when it was gone. Nothing is flushed. */
  async shelve(from: string, entry: Entry, shelf: Shelf, front = false): Promise<boolean> {
    return await this.move(from, entry, shelf, front) !== undefined;
  }

  /** As `shelve`, and on the device when it resolves. */
  async shelveDurably(from: string, entry: Entry, shelf: Shelf): Promise<boolean> {
    const bucket = await this.move(from, entry, shelf);
    if (bucket === undefined) return false;
    await this.flushMoved([bucket], shelf);
    return true;
  }

  /** Moves a file into a bucket of the waiting entries, which is returned; `undefined` when the file was gone. */
  async move(from: string, entry: Entry, shelf: Shelf, front = false): Promise<OwnBucket | undefined> {
    const name = renderEntry({ ...entry, nonce: this.nonces.next() });
    for (;;) {
      const bucket = shelf.writer.place(entry.priority, name.slice(0, keyLength), front);
      if (!bucket.durable) {
        // A message that is on the device must not be moved into a folder that is not; meanwhile others may fill it.
        await this.#secure(bucket, shelf);
        // Whoever waited for the same flush goes on now.
        if (this.slices.isOver) await this.slices.giveWay();
        continue;
      }
      const outcome = moveInto(this.operations, from, bucket, name);
      if (outcome === "sourceGone") return undefined;
      if (outcome === "bucketGone") {
        shelf.writer.abandon(bucket);
        continue;
      }
      bucket.count++;
      shelf.index.addEntry(bucket.name, name);
      return bucket;
    }
  }

  /** Puts what was moved into some buckets on the device. */
  async flushMoved(buckets: Iterable<OwnBucket>, shelf: Shelf): Promise<void> {
    try {
      await forEachParallel(buckets, ({ path }) => flushEntries(this.operations, path));
    } catch (error) {
      // A flush that failed says nothing when it is repeated, so these buckets are never written to again.
      for (const bucket of buckets) shelf.writer.abandon(bucket);
      throw new UnknownOutcome(error);
    }
  }

  /** Moves a reserved message that its publisher has not moved to where it belongs. */
  async completePending(name: string, now: number): Promise<void> {
    const footer = await this.once.readPending(name);
    if (footer === undefined) return;
    const entry = parseEntry(footer.entry)!;
    const moved = await this.shelveDurably(
      this.once.pendingPath(name),
      entry,
      entry.instant > now ? this.delayed : this.ready,
    );
    if (moved) this.announce();
  }

  /** Sets an entry aside whose file does not hold its message. */
  setAside(path: string, name: string): void {
    if (!attempt(() => this.operations.rename(path, `${this.pathOf("damaged")}/${name}`), "ENOENT")) {
      // Either it has left by itself, or there is nowhere to put it.
      this.operations.status(this.pathOf("damaged"));
      return;
    }
    this.report({ kind: "entrySkipped", path: `${this.pathOf("damaged")}/${name}`, why: "damaged" });
  }

  /** Whether a folder can be trusted; one that cannot is reported once. */
  mayEnter(path: string): boolean {
    let why: string | undefined;
    if (!attempt(() => void (why = findDistrust(this.operations.status(path))), "ENOENT")) return true;
    if (why === undefined) return true;
    if (!this.#reported.has(path)) this.report({ kind: "entrySkipped", path, why });
    this.#reported.add(path);
    return false;
  }

  /** Tells everybody who listens. */
  report(event: BrokerEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch {
        // A listener's failure is its own.
      }
    }
  }

  /** Adds a listener; returns what removes it. */
  listen(listener: ((event: BrokerEvent) => void) | undefined): () => void {
    if (listener === undefined) return () => {};
    // A function of its own, so that one listener added twice is removed once.
    const own = (event: BrokerEvent) => listener(event);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Hears of other processes until the returned function is called; the first opens the watch, the last closes it. */
  hold(): () => void {
    if (this.#watchers++ === 0) this.#startWatching();
    else if (this.#watchFailure !== undefined) this.report(this.#watchFailure);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      if (--this.#watchers === 0) this.#stopWatching();
    };
  }

  #startWatching(): void {
    this.#watchFailure = undefined;
    const failed = (error: unknown) => {
      this.#stopWatching();
      this.#watchFailure = { kind: "watchFailed", error, why: explainWatchFailure(error) };
      this.report(this.#watchFailure);
    };
    try {
      this.#unwatch = this.operations.watch(this.pathOf("wake"), () => this.wake.fire(), failed);
    } catch (error) {
      failed(error);
    }
  }

  #stopWatching(): void {
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  #makeShelf(
    state: "ready" | "delayed",
    bucketSize: number,
    makeWriter: (maker: BucketMaker) => Shelf["writer"],
  ): Shelf {
    const { operations, slices, nonces } = this;
    const directory = this.pathOf(state);
    const mayEnter = (path: string) => this.mayEnter(path);
    const index = new WaitingIndex({ operations, slices, directory, bucketSize, mayEnter });
    const maker = new BucketMaker({ operations, directory, nonces, index, bucketSize });
    return { maker, writer: makeWriter(maker), index };
  }

  async #secure(bucket: OwnBucket, shelf: Shelf): Promise<void> {
    try {
      await shelf.maker.secureAll([bucket]);
    } catch (error) {
      // Repeated, the flush would tell nothing.
      shelf.writer.abandon(bucket);
      throw error;
    }
  }

  /** Finishes what dead processes left: reserved messages that were not moved, temporary files. */
  async #recover(started: number, instant: number): Promise<void> {
    const pending = this.once.pendingNames();
    const due = started - this.#lastRecovery >= recoveryInterval;
    if (pending.length === 0 && !due) return;
    const now = this.#readFileClock();
    for (const name of pending.slice(0, 100)) await this.#recoverPending(name, now, instant);
    if (!due) return;
    this.#lastRecovery = started;
    for (const name of this.operations.list(this.pathOf("tmp")).slice(0, 1_000)) {
      const path = `${this.pathOf("tmp")}/${name}`;
      attempt(() => {
        const { kind, changedAt } = this.operations.status(path);
        if (kind === "file" && now - changedAt > leftoverAge) this.operations.unlink(path);
      }, "ENOENT");
    }
  }

  /** The instant by the file system's own clock, which stamps the files that it is compared with. */
  #readFileClock(): number {
    // Not the signal file: touching that wakes every watcher, whose look would touch it again.
    const path = `${this.pathOf("tmp")}/clock`;
    if (!attempt(() => this.operations.touch(path), "ENOENT")) makeFile(this.operations, path);
    return this.operations.status(path).changedAt;
  }

  async #recoverPending(name: string, now: number, instant: number): Promise<void> {
    const path = this.once.pendingPath(name);
    let links = 0;
    let age = 0;
    if (
      !attempt(() => {
        const status = this.operations.status(path);
        links = status.links;
        age = now - status.changedAt;
      }, "ENOENT")
    ) return;
    if (links > 1 && age > pendingAge) await this.completePending(name, instant);
    else if (links === 1 && age > leftoverAge) attempt(() => this.operations.unlink(path), "ENOENT");
  }
}

/** Whether there may be an entry that the walk has not come to. */
function isHeldUp(head: Candidate | undefined, index: WaitingIndex): boolean {
  return head === undefined && index.needsTurn;
}

function makeFile(operations: FileOperations, path: string): void {
  attempt(() => operations.close(operations.create(path)), "EEXIST");
}
