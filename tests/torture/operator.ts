/**
 * Looks at the queue and decides on dead letters.
 *
 * @module
 */

import { isQueueError } from "../../src/core/error.ts";
import type { DeadLetter } from "../../src/core/values.ts";
import type { LedgerNote } from "./ledger.ts";
import { type Part, rest } from "./part.ts";
import { readPayload } from "./payloads.ts";

/** Operates until it is told to end. */
export async function runOperator({ jobs, ledger, random, signal }: Part): Promise<void> {
  const surprise = (what: string) => ledger.note({ kind: "surprise", what: `operator: ${what}` });

  const pageThrough = async (): Promise<DeadLetter[]> => {
    const all: DeadLetter[] = [];
    for (let after = "";;) {
      const page = await jobs.deadLettersAfter({ after, max: 1 + random.below(20) });
      for (const letter of page) {
        if (letter.message.id <= after) surprise(`dead letters out of order at ${letter.message.id}`);
        after = letter.message.id;
        const { wrong } = readPayload(letter.message, letter.priority);
        if (wrong !== undefined) surprise(`dead letter ${after}: ${wrong}`);
      }
      all.push(...page);
      if (page.length === 0 || signal.aborted) return all;
    }
  };
  const list = async () => {
    let last = "";
    for await (const { message, priority } of jobs.allMessages()) {
      if (message.id <= last) surprise(`messages out of order at ${message.id}`);
      last = message.id;
      const { wrong } = readPayload(message, priority);
      if (wrong !== undefined) surprise(`message ${last}: ${wrong}`);
      if (signal.aborted) return;
    }
  };
  const page = async () => {
    let after = "";
    for (let pages = 0; pages < 5; pages++) {
      const messages = await jobs.messages({ after, max: 10 });
      if (messages.some(({ message }) => message.id <= after)) surprise(`a page begins before ${after}`);
      if (messages.length < 10) return;
      after = messages.at(-1)!.message.id;
    }
  };
  const decide = async (note: LedgerNote, act: () => Promise<number | void>) => {
    ledger.note(note);
    try {
      ledger.note({ kind: "operated", count: await act() ?? 1 });
    } catch (error) {
      if (!isQueueError(error, "DEAD_LETTER_NOT_FOUND")) throw error;
      ledger.note({ kind: "operated", count: 0 });
    }
  };

  while (!signal.aborted) {
    const letters = await pageThrough();
    for (const { message: { id } } of letters) {
      const choice = random.next();
      if (choice < 0.1) await decide({ kind: "replaying", id }, () => jobs.replayDeadLetter(id));
      else if (choice < 0.2) await decide({ kind: "deleting", id }, () => jobs.deleteDeadLetter(id));
      if (signal.aborted) return;
    }
    const { ready, delayed, queued, leased, dead } = await jobs.stats();
    if (ready + delayed !== queued || leased < 0 || dead < 0) surprise("its statistics do not add up");
    const choice = random.next();
    if (choice < 0.2) await decide({ kind: "replaying" }, () => jobs.replayDeadLetters({ max: 3 }));
    else if (choice < 0.4) {
      const before = new Date(Date.now() - random.below(3_000));
      await decide({ kind: "purging", before: before.getTime() }, () => jobs.purgeDeadLetters({ before, max: 5 }));
    } else if (choice < 0.7) await list();
    else await page();
    await rest(random.below(100));
  }
}
