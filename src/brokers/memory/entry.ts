/**
 * What the broker keeps of a message.
 *
 * @module
 */

import type { LastFailure, MessageHeaders, Priority, RecordedFailure } from "../../core/mod.ts";
import type { Chunk, Indexed } from "./id_index.ts";
import type { Slab, StoredPayload } from "./payload_slabs.ts";

/** How a message died; it is a dead letter as long as its entry's `death` is this record. */
export interface Death extends RecordedFailure {
  readonly entry: Entry;
  /** In ms. */
  readonly failedAt: number;
}

/**
 * One message through all its states: leased while it has a place among the leases, dead while `death` is set, else
 * waiting. One object, its
 * payload's whereabouts included, since every object more is felt in the rate.
 */
export class Entry implements Indexed<Entry>, StoredPayload {
  readonly id: string;
  /** In ms. */
  readonly enqueuedAt: number;
  readonly headers: MessageHeaders;
  readonly priority: Priority;
  bytes: Uint8Array | undefined;
  offset: number = 0;
  readonly length: number;
  slab: Slab | undefined = undefined;
  /** Its number among the ids that this broker minted in order; 0 for a message that came back or came from elsewhere. */
  serial: number;
  /** What it is ordered by while it waits, in ms. */
  visibleAt: number;
  deliveries: number;
  lastFailure: LastFailure | undefined = undefined;
  /** Where its lease is kept; -1 while it has none. A number, since a reference to a young object is paid for by the collector. */
  leasePlace: number = -1;
  death: Death | undefined = undefined;
  chunk: Chunk<Entry> | undefined = undefined;

  /** A message with the caller's own bytes, which are to be stored before it is used. */
  constructor(
    id: string,
    serial: number,
    enqueuedAt: number,
    payload: Uint8Array,
    headers: MessageHeaders,
    priority: Priority,
    visibleAt: number,
    deliveries: number,
  ) {
    this.id = id;
    this.serial = serial;
    this.enqueuedAt = enqueuedAt;
    this.bytes = payload;
    this.length = payload.byteLength;
    this.headers = headers;
    this.priority = priority;
    this.visibleAt = visibleAt;
    this.deliveries = deliveries;
  }
}

/** The order of delivery inside a level: by visibility, never delivered before delivered, then by id. */
export function isDeliveredBefore(a: Entry, b: Entry): boolean {
  if (a.visibleAt !== b.visibleAt) return a.visibleAt < b.visibleAt;
  const aWasDelivered = a.deliveries > 0;
  if (aWasDelivered !== b.deliveries > 0) return !aWasDelivered;
  // Fresh ids are compared by their numbers: comparing texts that were just put together makes the engine copy them.
  return a.serial > 0 && b.serial > 0 ? a.serial < b.serial : a.id < b.id;
}
