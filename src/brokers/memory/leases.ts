/**
 * The leases that are held: by receipt, and by deadline.
 *
 * @module
 */

import { QueueError, type Receipt } from "../../core/mod.ts";
import type { Entry } from "./entry.ts";
import { ReceiptMint } from "./receipts.ts";
import { SortedQueue } from "./sorted_queue.ts";

/** Below so many places the tables of an idle broker are not worth shrinking. */
const leastShrunk = 1024;

/** One lease. It has ended when `entry` is gone: its place in the queue of deadlines is then skipped. */
export interface HeldLease {
  entry: Entry | undefined;
  readonly receipt: Receipt;
  /** In ms. */
  readonly deadline: number;
  readonly place: number;
}

/** Holds leases at O(1) each; the earliest deadline costs O(log n) at most, and nothing ever looks at all of them. */
export class LeaseTable {
  readonly #receipts: ReceiptMint = new ReceiptMint();
  readonly #deadlines: SortedQueue<HeldLease> = new SortedQueue<HeldLease>((a, b) => a.deadline < b.deadline);
  #places: (HeldLease | undefined)[] = [];
  #tails: string[] = [];
  #free: number[] = [];
  #size = 0;

  /** How many leases are held, lapsed ones that nobody reclaimed included. */
  get size(): number {
    return this.#size;
  }

  /** How many leases, ended ones included, the table still keeps something of. */
  get places(): number {
    return this.#places.length + this.#deadlines.size;
  }

  /** Leases a message under a receipt of its own. */
  hold(entry: Entry, deadline: number): HeldLease {
    const place = this.#free.pop() ?? this.#addPlace();
    const lease: HeldLease = { entry, receipt: this.#receipts.mint(this.#tails[place]!), deadline, place };
    this.#places[place] = lease;
    entry.leasePlace = place;
    this.#size++;
    // Ended leases behind a long one are not reached by skipping: the queue is swept when most of it has ended.
    if (this.#deadlines.size > 2 * this.#size + leastShrunk) this.#deadlines.filter((held) => held.entry !== undefined);
    this.#deadlines.push(lease);
    return lease;
  }

  /**
   * The lease that a receipt names, still held and not yet lapsed.
   *
   * @throws {QueueError} `LEASE_EXPIRED` or `UNKNOWN_RECEIPT`.
   */
  require(receipt: Receipt, now: number): HeldLease {
    const lease = this.find(receipt);
    if (lease !== undefined && now < lease.deadline) return lease;
    if (lease !== undefined || this.hasIssued(receipt)) {
      throw new QueueError(
        "LEASE_EXPIRED",
        "Cannot settle the message: its lease has ended, expected one that is held",
      );
    }
    throw new QueueError("UNKNOWN_RECEIPT", "Cannot settle the message: the receipt names no lease of this queue");
  }

  /** The lease that a receipt names, lapsed or not. */
  find(receipt: Receipt): HeldLease | undefined {
    // Leases mostly end in the order in which they were taken, and two references to one text are compared at once,
    // while reading it makes the engine put together what was concatenated.
    const first = this.first();
    if (first?.receipt === receipt) return first;
    if (typeof receipt !== "string") return undefined;
    const lease = this.#places[this.#receipts.placeOf(receipt)];
    return lease?.receipt === receipt ? lease : undefined;
  }

  /** The lease of a message. */
  of(entry: Entry): HeldLease | undefined {
    return entry.leasePlace === -1 ? undefined : this.#places[entry.leasePlace];
  }

  /** Whether a receipt was issued here, however its lease ended. */
  hasIssued(receipt: Receipt): boolean {
    return typeof receipt === "string" && this.#receipts.hasIssued(receipt);
  }

  /** Ends a lease; the message is nobody's now. */
  end(lease: HeldLease): Entry {
    const entry = lease.entry!;
    lease.entry = undefined;
    entry.leasePlace = -1;
    this.#places[lease.place] = undefined;
    this.#free.push(lease.place);
    this.#size--;
    if (this.#size === 0) this.#shrink();
    return entry;
  }

  /** The held lease that lapses first, lapsed or not. */
  first(): HeldLease | undefined {
    let lease = this.#deadlines.first();
    while (lease !== undefined && lease.entry === undefined) {
      this.#deadlines.shift();
      lease = this.#deadlines.first();
    }
    return lease;
  }

  /** Ends every lease. Their receipts stay known as issued. */
  clear(): void {
    this.#deadlines.clear();
    this.#places = [];
    this.#tails = [];
    this.#free = [];
    this.#size = 0;
  }

  #addPlace(): number {
    const place = this.#places.length;
    this.#places.push(undefined);
    this.#tails.push(this.#receipts.tailOf(place));
    return place;
  }

  #shrink(): void {
    if (this.#places.length < leastShrunk) return;
    this.#places = [];
    this.#tails = [];
    this.#free = [];
  }
}
