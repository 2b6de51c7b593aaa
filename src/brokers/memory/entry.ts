/**
 * What the broker keeps of a message.
 *
 * @module
 */

import type { LastFailure, MessageHeaders, Priority, RecordedFailure } from "../../core/mod.ts";
import type { Chunk, Indexed } from "./id_index.ts";
import type { Slab, StoredPayload } from "./payload_slabs.ts";

/** How a message died. */
export interface Death extends RecordedFailure {
  readonly entry: Entry;
  /** In ms. */
  readonly failedAt: number;
}

/**
 * One message through all its states: waiting, leased while it has a place among the leases, or dead while its failure is
 * its death. One object and few fields, its payload's whereabouts included: what a backlog weighs is felt in the rate.
 * The fields are only declared: defining each before the constructor sets it costs more than all the rest.
 */
export class Entry implements Indexed<Entry>, StoredPayload {
  declare readonly id: string;
  /** Its number among the ids that this broker minted in order; 0 for a message that came from elsewhere. */
  declare readonly serial: number;
  /** In ms. */
  declare readonly enqueuedAt: number;
  declare readonly headers: MessageHeaders;
  declare readonly priority: Priority;
  /** What it is ordered by while it waits, in ms. */
  declare visibleAt: number;
  declare deliveries: number;
  declare slab: Slab | undefined;
  declare offset: number;
  declare readonly length: number;
  /** What last went wrong; of a dead letter, how it died. */
  declare failure: LastFailure | Death | undefined;
  /** Where its lease is kept; -1 while it has none. A number, since a reference to a young object burdens the collector. */
  declare leasePlace: number;
  declare chunk: Chunk<Entry> | undefined;

  /** A message whose payload of `length` bytes is to be stored before it is used. */
  constructor(
    id: string,
    serial: number,
    enqueuedAt: number,
    length: number,
    headers: MessageHeaders,
    priority: Priority,
    visibleAt: number,
    deliveries: number,
  ) {
    this.id = id;
    this.serial = serial;
    this.enqueuedAt = enqueuedAt;
    this.headers = headers;
    this.priority = priority;
    this.visibleAt = visibleAt;
    this.deliveries = deliveries;
    this.slab = undefined;
    this.offset = 0;
    this.length = length;
    this.failure = undefined;
    this.leasePlace = -1;
    this.chunk = undefined;
  }
}

/** How a dead letter died. */
export function deathOf(dead: Entry): Death {
  return dead.failure as Death;
}

/** The order of delivery inside a level: by visibility, never delivered before delivered, then by id. */
export function isDeliveredBefore(a: Entry, b: Entry): boolean {
  if (a.visibleAt !== b.visibleAt) return a.visibleAt < b.visibleAt;
  const aWasDelivered = a.deliveries > 0;
  if (aWasDelivered !== b.deliveries > 0) return !aWasDelivered;
  // Fresh ids are compared by their numbers: comparing texts that were just put together makes the engine copy them.
  return a.serial > 0 && b.serial > 0 ? a.serial < b.serial : a.id < b.id;
}
