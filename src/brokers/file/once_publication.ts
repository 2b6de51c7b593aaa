/**
 * Publishing under a once key: reserve first, then move the message to where it is received from.
 *
 * @module
 */

import type { Submission } from "./committer.ts";
import { writeFlushed } from "./committer.ts";
import { UnknownOutcome } from "./failures.ts";
import { type Entry, renderEntry } from "./names.ts";
import { tidyUp } from "./operations.ts";
import type { QueueDirectory } from "./queue_directory.ts";
import { encodeHeaders, encodeWithFooter, recordLength } from "./records.ts";

/** A message to publish unless its key is reserved. */
export interface ReservedPublication {
  readonly key: string;
  /** When the key is free again, in ms. */
  readonly end: number;
  readonly now: number;
  readonly submission: Submission;
}

/** A pending file that this call wrote. */
interface Prepared {
  readonly name: string;
  readonly entry: Entry;
  readonly bytes: Uint8Array;
}

/** Publishes unless the key is reserved; whether it did. What it published is on the device. */
export async function publishReserved(directory: QueueDirectory, publication: ReservedPublication): Promise<boolean> {
  const { once, operations } = directory;
  const { key, end, now } = publication;
  let prepared: Prepared | undefined;
  try {
    for (;;) {
      const look = await once.look(key);
      const { reservation, next } = look;
      if (reservation !== undefined) {
        // Its publisher may have died between the reservation and the move.
        await directory.completePending(reservation.pending, now);
        if (reservation.end > now) {
          // Or is about to flush what it moved: the answer says that the message is published.
          await once.flushPending();
          return false;
        }
      }
      prepared ??= await prepare(directory, publication);
      once.prepare(next);
      const reserving: Prepared = prepared;
      // From here on the pending file may be a reserved message, which a refusal must not cost.
      prepared = undefined;
      try {
        if (!await once.reserve(reserving.name, look, reserving.bytes)) {
          prepared = reserving;
          continue;
        }
        await move(directory, reserving, publication.submission.delayed, next);
      } catch (error) {
        throw error instanceof UnknownOutcome ? error : new UnknownOutcome(error);
      }
      // What is published stays so, whatever becomes of old keys.
      await once.sweep(look, now).catch(() => {});
      return true;
    }
  } finally {
    if (prepared !== undefined) tidyUp(() => operations.unlink(once.pendingPath(prepared!.name)));
  }

  async function prepare(directory: QueueDirectory, { submission }: ReservedPublication): Promise<Prepared> {
    const name = once.pendingName();
    const headers = encodeHeaders(submission.headers);
    const entry: Entry = {
      instant: submission.visibleAt,
      state: "a",
      id: submission.id,
      enqueuedAt: submission.enqueuedAt,
      deliveries: 0,
      priority: submission.priority,
      failure: "n",
      segment: name,
      offset: 0,
      length: recordLength(headers, submission.payload),
      nonce: directory.nonces.next(),
    };
    const footer = { end, pending: name, entry: renderEntry(entry) };
    const bytes = encodeWithFooter(submission.id, headers, submission.payload, footer);
    await writeFlushed(operations, once.pendingPath(name), bytes);
    await once.flushPending();
    return { name, entry, bytes };
  }
}

/** Moves a reserved message to its bucket; on the device when it resolves, the key too. */
async function move(
  directory: QueueDirectory,
  { name, entry }: Prepared,
  delayed: boolean,
  reservation: string,
): Promise<void> {
  const { once } = directory;
  const shelf = delayed ? directory.delayed : directory.ready;
  const moved = await directory.shelveDurably(once.pendingPath(name), entry, shelf);
  // Where another call was quicker to move it, the name's end in `pending/` is what has to be on the device.
  if (!moved) await once.flushPending();
  await once.secure(reservation);
  directory.announce();
}
