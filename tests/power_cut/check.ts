/**
 * Holds a queue after a power cut against what its process had noted.
 *
 * @module
 */

import { newFile } from "../../src/brokers/file/mod.ts";
import type { Priority } from "../../src/core/priority.ts";
import type { Message } from "../../src/core/values.ts";
import type { Attempted, LedgerEvent } from "../torture/ledger.ts";
import { readPayload } from "../torture/payloads.ts";

/** What a power cut left. */
export interface Verdict {
  /** Publications that had resolved and of which no end had begun. */
  readonly promised: number;
  /** Messages found, whether promised or not. */
  readonly found: number;
  readonly problems: readonly string[];
}

/** Longer than all leases and delays. */
const later = 3_600_000;

/**
 * Drains the queue and compares.
 *
 * @param before What was noted before the power was cut.
 * @param after What was noted up to some time after it: an acknowledgement that was begun by then may have come through.
 */
export async function checkQueue(
  dir: string,
  before: readonly LedgerEvent[],
  after: readonly LedgerEvent[],
): Promise<Verdict> {
  const problems: string[] = [];
  const attempted = new Map<string, Attempted>();
  const ids = new Map<string, string>();
  const ended = new Set<string>();
  for (const event of after) {
    if (event.kind === "publishing") attempted.set(event.key, event);
    if (event.kind === "published") ids.set(event.key, event.id);
    if (event.kind === "handled" || event.kind === "deleting") ended.add(event.id);
  }
  const promised = before.flatMap((event) => event.kind === "published" && !ended.has(event.id) ? [event] : []);

  const found = new Set<string>();
  const note = (message: Message, priority: Priority) => {
    const { key, hash, wrong } = readPayload(message, priority);
    const known = attempted.get(key);
    if (wrong !== undefined) problems.push(`${message.id}: ${wrong}`);
    else if (known?.hash !== hash) problems.push(`${message.id}: nobody published that`);
    else if (known.priority !== priority) problems.push(`${message.id}: it had another level`);
    else if ((ids.get(key) ?? message.id) !== message.id) problems.push(`${message.id}: it had another id`);
    found.add(message.id);
  };
  await using jobs = await newFile({
    dir,
    policy: { visibilityTimeout: 1_000, maxDeliveries: 100 },
    clock: { now: () => Date.now() + later },
    onEvent: (event) => problems.push(`reported: ${event.kind} ${"why" in event ? event.why : ""}`),
  });
  for await (const { message, priority } of jobs.allMessages()) note(message, priority);
  for (let batch = await jobs.receive(500); batch.length > 0; batch = await jobs.receive(500)) {
    for (const { message, priority } of batch) note(message, priority);
    await jobs.ackMany(batch.map(({ lease }) => lease.receipt));
  }
  for (let page = await jobs.deadLetters({ max: 500 }); page.length > 0;) {
    for (const { message, priority } of page) note(message, priority);
    page = await jobs.deadLettersAfter({ after: page.at(-1)!.message.id, max: 500 });
  }
  const { queued, leased } = await jobs.stats();
  if (queued + leased > 0) problems.push(`${queued} waiting and ${leased} leased stay out of reach`);
  for (const { key, id } of promised) if (!found.has(id)) problems.push(`lost: ${key}, ${id}`);
  return { promised: promised.length, found: found.size, problems };
}
