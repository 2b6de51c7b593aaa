/**
 * What a receive hands out: every delivery with a payload of its own.
 *
 * @module
 */

import type { Delivery, Message } from "../../core/mod.ts";
import type { Entry } from "./entry.ts";
import type { HeldLease } from "./leases.ts";
import { copyPayload, paddedLength, type Slab } from "./payload_slabs.ts";

/** A larger payload has a buffer of its own in every delivery. */
const largestShared = 1_024;

/** The largest buffer that deliveries of one call share. */
const largestArena = 16_384;

/**
 * Copies payloads out. Small ones that one call hands out are laid side by side into one buffer, since a buffer each is
 * slow to make on V8: they are views that never overlap. A delivery that is alone has a buffer of its own.
 */
export function makeDeliveries(leases: readonly HeldLease[]): Delivery[] {
  const deliveries = new Array<Delivery>(leases.length);
  let start = 0;
  while (start < leases.length) {
    let end = start;
    let size = 0;
    while (end < leases.length) {
      const shared = sharedSize(leases[end]!.entry!);
      if (end > start && size + shared > largestArena) break;
      size += shared;
      end++;
    }
    fill(deliveries, leases, start, end, size);
    start = end;
  }
  return deliveries;
}

function sharedSize(entry: Entry): number {
  return entry.length > largestShared ? 0 : paddedLength(entry.length);
}

/** Makes the deliveries from `start` to `end`; neighbours in a slab are copied in one go. */
function fill(deliveries: Delivery[], leases: readonly HeldLease[], start: number, end: number, size: number): void {
  if (end - start === 1) {
    deliveries[start] = deliver(leases[start]!, copyPayload(leases[start]!.entry!));
    return;
  }
  const arena = new Uint8Array(size);
  const buffer = arena.buffer;
  let at = 0;
  let source: Slab | undefined;
  let sourceStart = 0;
  let sourceEnd = 0;
  const copyRun = (): void => {
    if (source === undefined) return;
    arena.set(source.bytes.subarray(sourceStart, sourceEnd), at - (sourceEnd - sourceStart));
  };
  for (let index = start; index < end; index++) {
    const lease = leases[index]!;
    const stored = lease.entry!;
    if (stored.length > largestShared || stored.length === 0) {
      deliveries[index] = deliver(lease, copyPayload(stored));
      continue;
    }
    if (stored.slab !== source || stored.offset !== sourceEnd) {
      copyRun();
      source = stored.slab;
      sourceStart = sourceEnd = stored.offset;
    }
    const padded = paddedLength(stored.length);
    deliveries[index] = deliver(lease, new Uint8Array(buffer, at, stored.length));
    sourceEnd += padded;
    at += padded;
  }
  copyRun();
}

function deliver(held: HeldLease, payload: Uint8Array): Delivery {
  const entry = held.entry!;
  const lease = { receipt: held.receipt, expiresAt: new Date(held.deadline) };
  const message: Message = { id: entry.id, enqueuedAt: new Date(entry.enqueuedAt), payload, headers: entry.headers };
  const { deliveries, priority, failure: lastFailure } = entry;
  return lastFailure === undefined
    ? { lease, message, deliveries, priority }
    : { lease, message, deliveries, priority, lastFailure };
}
