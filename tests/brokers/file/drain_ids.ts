/**
 * Draining a queue among rivals.
 *
 * @module
 */

import type { FileBroker } from "../../../src/brokers/file/mod.ts";

/** Receives and acknowledges until nothing is left for it; the ids that it got. */
export async function drainIds(jobs: FileBroker, batch = 16): Promise<string[]> {
  const ids: string[] = [];
  for (let found = await jobs.receive(batch); found.length > 0; found = await jobs.receive(batch)) {
    for (const { message, deliveries } of found) {
      if (deliveries !== 1) throw new Error("Nobody died, so nothing is delivered again");
      ids.push(message.id);
    }
    for (const outcome of await jobs.ackMany(found.map(({ lease }) => lease.receipt))) {
      if (outcome !== 1) throw new Error("A lease that is held is acknowledged");
    }
  }
  return ids;
}
