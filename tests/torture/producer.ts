/**
 * Publishes in every way there is, and takes up again what a killed process before it left in doubt.
 *
 * @module
 */

import type { Priority } from "../../src/core/priority.ts";
import { readLedger } from "./ledger.ts";
import { type Part, rest } from "./part.ts";
import { type MadePayload, makePayload } from "./payloads.ts";
import { onceWindow } from "./settings.ts";

/** Above so many waiting messages a producer lets the consumers catch up. */
const backlog = 1_500;

/** How long two producers draw the same once key, in ms. */
const onceRace = 150;

/** Once keys that a ledger leaves in doubt. */
function doubtfulKeys(path: string): string[] {
  const doubts = new Map<string, string>();
  for (const event of readLedger(path)) {
    if (event.kind === "publishing" && event.once !== undefined) doubts.set(event.key, event.once);
    if (event.kind === "published" || event.kind === "reserved") doubts.delete(event.key);
  }
  return [...new Set(doubts.values())];
}

/** Publishes until it is told to end. */
export async function runProducer({ jobs, ledger, task, random, signal }: Part): Promise<void> {
  let made = 0;
  const make = (priority: Priority = 0, once?: string): MadePayload & { readonly priority: Priority } => {
    return { ...makePayload(random, `${task.name}.${made++}`, priority, once), priority };
  };
  const announce = (...payloads: readonly MadePayload[]) => {
    ledger.note(...payloads.map(({ attempted }) => ({ kind: "publishing" as const, ...attempted })));
  };
  const confirm = ({ attempted: { key } }: MadePayload, { id }: { readonly id: string }) => {
    ledger.note({ kind: "published", key, id });
  };
  const anyPriority = () => random.chance(0.3) ? random.below(5) - 2 as Priority : 0;
  const soon = () => new Date(Date.now() + random.below(1_500));

  const publish = async () => {
    const one = make(anyPriority());
    announce(one);
    confirm(one, await jobs.publish(one.payload, { headers: one.headers, priority: one.priority }));
  };
  const publishLater = async () => {
    const one = make();
    announce(one);
    confirm(one, await jobs.publishAt(one.payload, soon(), { headers: one.headers }));
  };
  const publishMany = async () => {
    const all = Array.from({ length: random.chance(0.03) ? 700 : 1 + random.below(40) }, () => make(anyPriority()));
    announce(...all);
    const later = random.chance(0.3);
    const messages = await jobs.publishMany(all.map(({ payload, headers, priority }) => {
      return { payload, headers, priority, ...(later && random.chance(0.5) ? { at: soon() } : {}) };
    }));
    ledger.note(...messages.map(({ id }, index) => {
      return { kind: "published" as const, key: all[index]!.attempted.key, id };
    }));
  };
  const publishOnce = async (once: string) => {
    const one = make(0, once);
    announce(one);
    const at = random.chance(0.2) ? { at: soon() } : {};
    const result = await jobs.publishOnce(once, one.payload, onceWindow, { headers: one.headers, ...at });
    if (result.published) confirm(one, result.message);
    else ledger.note({ kind: "reserved", key: one.attempted.key });
  };

  for (const once of doubtfulKeys(task.ledger)) await publishOnce(once);
  while (!signal.aborted) {
    const choice = random.next();
    if (choice < 0.3) await publish();
    else if (choice < 0.45) await Promise.all(Array.from({ length: 2 + random.below(12) }, publish));
    else if (choice < 0.6) await publishMany();
    else if (choice < 0.75) await publishLater();
    else if (choice < 0.95) await publishOnce(`once ${Math.floor(Date.now() / onceRace)}`);
    else await Promise.all([publishOnce(`once ${Math.floor(Date.now() / onceRace)}`), publishMany(), publishLater()]);
    await rest(random.below(15));
    if (random.chance(0.05)) {
      while (!signal.aborted && (await jobs.stats()).queued > backlog) await rest(100);
    }
  }
}
