/**
 * What the broker keeps of a message.
 *
 * @module
 */

import type { LastFailure, MessageHeaders, Priority } from "../../core/mod.ts";
import type { Chunk, Indexed } from "./id_index.ts";
import type { HeldLease } from "./leases.ts";
import type { StoredPayload } from "./payload_slabs.ts";

/** A live message: waiting, or leased while `lease` is set. Instants are in ms. */
export class LiveEntry implements Indexed<LiveEntry> {
  readonly id: string;
  /** Its number among the ids that this broker minted in order; 0 for a message that came back or came from elsewhere. */
  readonly serial: number;
  readonly enqueuedAt: number;
  readonly payload: StoredPayload;
  readonly headers: MessageHeaders;
  readonly priority: Priority;
  /** What it is ordered by while it waits. */
  visibleAt: number;
  deliveries: number;
  lastFailure: LastFailure | undefined = undefined;
  lease: HeldLease | undefined = undefined;
  chunk: Chunk<LiveEntry> | undefined = undefined;

  constructor(
    id: string,
    serial: number,
    enqueuedAt: number,
    payload: StoredPayload,
    headers: MessageHeaders,
    priority: Priority,
    visibleAt: number,
    deliveries: number,
  ) {
    this.id = id;
    this.serial = serial;
    this.enqueuedAt = enqueuedAt;
    this.payload = payload;
    this.headers = headers;
    this.priority = priority;
    this.visibleAt = visibleAt;
    this.deliveries = deliveries;
  }
}

/** A dead letter; instants are in ms, an absent trail is an empty one. */
export interface DeadEntry extends Indexed<DeadEntry> {
  readonly payload: StoredPayload;
  readonly headers: MessageHeaders;
  readonly priority: Priority;
  readonly deliveries: number;
  readonly failedAt: number;
  readonly reason: string;
  readonly cause: string;
  readonly code: number;
  readonly trail: readonly number[];
}

/** The order of delivery inside a level: by visibility, never delivered before delivered, then by id. */
export function isDeliveredBefore(a: LiveEntry, b: LiveEntry): boolean {
  if (a.visibleAt !== b.visibleAt) return a.visibleAt < b.visibleAt;
  const aWasDelivered = a.deliveries > 0;
  if (aWasDelivered !== b.deliveries > 0) return !aWasDelivered;
  // Fresh ids are compared by their numbers: comparing texts that were just put together makes the engine copy them.
  return a.serial > 0 && b.serial > 0 ? a.serial < b.serial : a.id < b.id;
}
