/**
 * The state of one queue in memory, and every move between its states.
 *
 * @module
 */

import {
  type DeadRecord,
  expiredFailure,
  IdMint,
  lapsedFailure,
  type LiveRecord,
  maxDeliveryCount,
  maxInstant,
  type NormalizedPolicy,
  Priority,
  type Publication,
  type PurgeResult,
  type RecordedFailure,
  retryDelay,
} from "../../core/mod.ts";
import { DeadLetters } from "./dead_letters.ts";
import { Entry, isDeliveredBefore } from "./entry.ts";
import { IdIndex } from "./id_index.ts";
import { type HeldLease, LeaseTable } from "./leases.ts";
import { OnceKeys } from "./once_keys.ts";
import { PayloadSlabs } from "./payload_slabs.ts";
import { SortedQueue } from "./sorted_queue.ts";

/** How many messages one receive buries at most, lapsed and expired ones together. */
const mostBurials = 1_000;

/** The least time between two retention sweeps, in ms. */
const sweepInterval = 60_000;

/** How many dead letters one receive deletes at most; the next ones go on where it stopped. */
const mostSwept = 100;

/** Where a message that was handed back went. */
export interface HandBack {
  readonly deliveries: number;
  /** In ms; absent for a message that was dead-lettered. */
  readonly visibleAt?: number;
}

/** Keeps the messages of one queue. Its methods are given checked arguments and the broker's clock, and never wait. */
export class MemoryStore {
  readonly leases: LeaseTable = new LeaseTable();
  readonly live: IdIndex<Entry> = new IdIndex<Entry>();
  readonly dead: DeadLetters;
  readonly slabs: PayloadSlabs = new PayloadSlabs();
  readonly onceKeys: OnceKeys = new OnceKeys();

  readonly #policy: NormalizedPolicy;
  readonly #random: () => number;
  readonly #ids: IdMint = new IdMint();
  /** What is visible, by level; the index is the level plus 2. */
  readonly #ready: readonly SortedQueue<Entry>[];
  /** What waits for an instant. */
  readonly #later: SortedQueue<Entry> = new SortedQueue<Entry>(isDeliveredBefore);
  /** How many ids were minted in order. */
  #minted = 0;
  /** Whether a live message may have an id that is not the latest minted: then order takes comparing. */
  #hasForeignIds = false;
  #lastSweep = -Infinity;
  /** Dead letters that failed before this instant are still to be deleted, in ms. */
  #sweepBefore: number | undefined;

  constructor(policy: NormalizedPolicy, random: () => number) {
    this.#policy = policy;
    this.#random = random;
    this.dead = new DeadLetters(this.slabs, policy.deadLetterRetention);
    this.#ready = Array.from({ length: 5 }, () => new SortedQueue<Entry>(isDeliveredBefore));
  }

  /** Adds a new message. */
  publish(publication: Publication, now: number): Entry {
    const { payload, headers, priority, visibleAt } = publication;
    const id = this.#ids.next(now);
    const serial = ++this.#minted;
    const entry = new Entry(id, serial, now, payload.byteLength, headers, priority, visibleAt, 0);
    this.slabs.store(entry, payload);
    this.#addFresh(entry);
    this.#wait(entry, visibleAt, now);
    return entry;
  }

  /** Adds a waiting message recorded elsewhere; returns the id it was given. */
  putLive(record: LiveRecord, now: number): string {
    const { enqueuedAt, payload, headers, priority, visibleAt, deliveries } = record;
    const id = this.#ids.at(enqueuedAt);
    const entry = new Entry(id, 0, enqueuedAt, payload.byteLength, headers, priority, visibleAt, deliveries);
    this.slabs.store(entry, payload);
    this.#addForeign(entry, now);
    return id;
  }

  /** Adds a dead letter recorded elsewhere; returns the id it was given. */
  putDead(record: DeadRecord): string {
    const { enqueuedAt, payload, headers, priority, failedAt, deliveries } = record;
    const id = this.#ids.at(enqueuedAt);
    const entry = new Entry(id, 0, enqueuedAt, payload.byteLength, headers, priority, failedAt, deliveries);
    this.slabs.store(entry, payload);
    this.dead.add(entry, record, failedAt);
    return id;
  }

  /**
   * Leases up to `max` messages. First it does what nobody does in the background: it deletes dead letters past their
   * retention and takes back lapsed leases.
   */
  receive(max: number, now: number, deadline: number): HeldLease[] {
    this.#sweep(now);
    let burials = this.#reclaim(now);
    this.#promote(now);
    const leases: HeldLease[] = [];
    while (leases.length < max) {
      const level = this.#highestReady();
      if (level === undefined) break;
      if (this.isExpired(level.first()!, now)) {
        if (burials === mostBurials) break;
        burials++;
        this.#expire(level.shift()!, now);
        continue;
      }
      const entry = level.shift()!;
      if (entry.deliveries < maxDeliveryCount) entry.deliveries++;
      leases.push(this.leases.hold(entry, deadline));
    }
    return leases;
  }

  /** Removes a leased message for good. */
  remove(lease: HeldLease): void {
    const entry = this.leases.end(lease);
    this.live.remove(entry);
    this.slabs.free(entry);
  }

  /** Replaces a lease by one that ends at `deadline`. */
  extend(lease: HeldLease, deadline: number): HeldLease {
    return this.leases.hold(this.leases.end(lease), deadline);
  }

  /** Hands a message back after a failure, or buries it on its last attempt. Without a delay the policy's is drawn. */
  fail(lease: HeldLease, failure: RecordedFailure, now: number, delay?: number): HandBack {
    const entry = this.leases.end(lease);
    const { deliveries } = entry;
    if (deliveries >= this.#policy.maxDeliveries) {
      this.#bury(entry, failure, now);
      return { deliveries };
    }
    const wait = delay ?? retryDelay(this.#policy, deliveries, this.#random);
    entry.failure = Object.freeze({ reason: failure.reason, code: failure.code });
    this.#wait(entry, Math.min(now + wait, maxInstant), now);
    return { deliveries, visibleAt: entry.visibleAt };
  }

  /** Buries a leased message whatever its count. */
  reject(lease: HeldLease, failure: RecordedFailure, now: number): void {
    this.#bury(this.leases.end(lease), failure, now);
  }

  /** Hands a message back as if it had not been delivered; without a delay it sorts by the instant of its enqueueing. */
  release(lease: HeldLease, delay: number, now: number): void {
    const entry = this.leases.end(lease);
    entry.deliveries--;
    if (delay > 0) return this.#wait(entry, now + delay, now);
    this.#wait(entry, Math.min(entry.enqueuedAt, now), now);
  }

  /** Whether a message has reached its greatest age. */
  isExpired(entry: { readonly enqueuedAt: number }, now: number): boolean {
    const { maxAge } = this.#policy;
    return maxAge > 0 && now - entry.enqueuedAt >= maxAge;
  }

  /** Queues a dead letter's message again, visible at once and with its whole attempt budget. */
  replay(dead: Entry, now: number): void {
    this.dead.take(dead);
    dead.deliveries = 0;
    dead.visibleAt = now;
    this.#addForeign(dead, now);
  }

  /** Removes every live message. */
  purge(): PurgeResult {
    const leased = this.leases.size;
    const queued = this.live.size - leased;
    for (const entry of this.live.from("")) this.slabs.free(entry);
    this.live.clear();
    this.leases.clear();
    this.#later.clear();
    for (const level of this.#ready) level.clear();
    return { queued, leased };
  }

  /** How many waiting messages its queues have room for; tests read it to see that a drained queue gives memory back. */
  get waitingCapacity(): number {
    return this.#ready.reduce((sum, level) => sum + level.capacity, this.#later.capacity);
  }

  /** How many messages are visible. */
  countReady(now: number): number {
    this.#promote(now);
    return this.#ready.reduce((sum, level) => sum + level.size, 0);
  }

  /** The earliest visibility of a waiting message, in ms and possibly past. */
  nextVisible(): number | undefined {
    let next = this.#later.first()?.visibleAt;
    for (const level of this.#ready) {
      const visibleAt = level.first()?.visibleAt;
      if (visibleAt !== undefined && (next === undefined || visibleAt < next)) next = visibleAt;
    }
    return next;
  }

  /** How long until something can be received, in ms, 0 for now; `undefined` when nothing will be by itself. */
  untilReceivable(now: number): number | undefined {
    if (this.#highestReady() !== undefined) return 0;
    const visible = this.#later.first()?.visibleAt ?? Infinity;
    const lapses = this.leases.first()?.deadline ?? Infinity;
    const next = Math.min(visible, lapses);
    return next === Infinity ? undefined : Math.max(0, next - now);
  }

  /** Drops everything. */
  clear(): void {
    this.purge();
    this.dead.clear();
    this.slabs.clear();
    this.onceKeys.clear();
  }

  #addFresh(entry: Entry): void {
    if (!this.#hasForeignIds) return this.live.append(entry);
    if (this.live.size > 0) return this.live.add(entry);
    // The last foreign id is gone, and with it what the index remembers of it.
    this.#hasForeignIds = false;
    this.live.clear();
    this.live.append(entry);
  }

  #addForeign(entry: Entry, now: number): void {
    this.#hasForeignIds = true;
    this.live.add(entry);
    this.#wait(entry, entry.visibleAt, now);
  }

  /**
   * Lets a message wait for an instant. What is visible when it comes stays so: a clock that steps back hides nothing
   * that could be received before.
   */
  #wait(entry: Entry, visibleAt: number, now: number): void {
    entry.visibleAt = visibleAt;
    if (visibleAt <= now) this.#ready[entry.priority + 2]!.push(entry);
    else this.#later.push(entry);
  }

  #promote(now: number): void {
    const later = this.#later;
    for (let first = later.first(); first !== undefined && first.visibleAt <= now; first = later.first()) {
      later.shift();
      this.#ready[first.priority + 2]!.push(first);
    }
  }

  #highestReady(): SortedQueue<Entry> | undefined {
    for (let index = Priority.highest + 2; index >= 0; index--) {
      const level = this.#ready[index]!;
      if (level.size > 0) return level;
    }
    return undefined;
  }

  /** Takes lapsed leases back; returns how many messages were buried since that was their last attempt. */
  #reclaim(now: number): number {
    let burials = 0;
    for (let lease = this.leases.first(); lease !== undefined && lease.deadline <= now; lease = this.leases.first()) {
      const lastAttempt = lease.entry!.deliveries >= this.#policy.maxDeliveries;
      if (lastAttempt && burials === mostBurials) break;
      const entry = this.leases.end(lease);
      if (lastAttempt) {
        burials++;
        this.#bury(entry, lapsedFailure, now);
      } else {
        entry.failure = lapse;
        this.#wait(entry, now, now);
      }
    }
    return burials;
  }

  #expire(entry: Entry, now: number): void {
    this.#bury(entry, expiredFailure(entry.failure?.code ?? 0), now);
  }

  #bury(entry: Entry, failure: RecordedFailure, now: number): void {
    this.live.remove(entry);
    this.dead.add(entry, failure, now);
  }

  #sweep(now: number): void {
    const { deadLetterRetention } = this.#policy;
    if (deadLetterRetention === 0) return;
    // A clock that stepped back must not put sweeps off until it has caught up.
    if (Math.abs(now - this.#lastSweep) >= sweepInterval) {
      this.#lastSweep = now;
      this.#sweepBefore = now - deadLetterRetention;
    }
    if (this.#sweepBefore === undefined) return;
    if (this.dead.deleteFailedBefore(this.#sweepBefore, mostSwept) < mostSwept) this.#sweepBefore = undefined;
  }
}

/** The last failure of a message whose lease lapsed: nobody reported anything. */
const lapse: Readonly<{ reason: string; code: number }> = Object.freeze({
  reason: lapsedFailure.reason,
  code: lapsedFailure.code,
});
