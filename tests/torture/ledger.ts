/**
 * What a process of the torture program says of itself: a line before each call and one after it, each written at once and
 * at the end of its file, so that a kill in between leaves a known doubt.
 *
 * @module
 */

import fs from "node:fs";

/** What a message was published as. */
export interface Attempted {
  /** Names this attempt to publish; the payload begins with it. */
  readonly key: string;
  /** The beginning of the payload's SHA-256. */
  readonly hash: string;
  readonly priority: number;
  /** The once key, if it was published under one. */
  readonly once?: string;
}

/** One line. A lease is named by the end of its receipt, which no other has. */
export type LedgerEvent =
  & { /** When, in ms since 1970. */ readonly t: number }
  & (
    | { readonly kind: "started"; readonly role: string; readonly runtime: string }
    | { readonly kind: "publishing" } & Attempted
    | { readonly kind: "published"; readonly key: string; readonly id: string }
    /** The once key had been published under before. */
    | { readonly kind: "reserved"; readonly key: string }
    /** Received, at an instant of the broker's clock, as what it was published as. */
    | { readonly kind: "received"; readonly id: string; readonly lease: string; readonly count: number } & {
      readonly at: number;
      readonly until: number;
      /** What is wrong with payload and headers, by themselves. */
      readonly wrong?: string;
    } & Attempted
    /** The handler came to its end; its acknowledgement follows. */
    | { readonly kind: "handled"; readonly id: string }
    | { readonly kind: "settling"; readonly verb: string; readonly lease: string }
    | {
      readonly kind: "settled";
      readonly verb: string;
      readonly lease: string;
      /** `done`, `dead` for a message that was buried, `expired` for a lease that had ended. */
      readonly outcome: string;
      /** The lease that an extension made of it, and its end. */
      readonly next?: string;
      readonly until?: number;
    }
    /** A dead letter is to be queued again, or any of them where no id is named. */
    | { readonly kind: "replaying"; readonly id?: string }
    | { readonly kind: "deleting"; readonly id: string }
    /** Dead letters that failed before an instant are to be removed. */
    | { readonly kind: "purging"; readonly before: number }
    /** The operator's call ended; with how many. */
    | { readonly kind: "operated"; readonly count: number }
    /** What a queue never does while only processes die. */
    | { readonly kind: "surprise"; readonly what: string }
  );

type WithoutInstant<E> = E extends unknown ? Omit<E, "t"> : never;

/** A line without its instant. */
export type LedgerNote = WithoutInstant<LedgerEvent>;

/** Appends to a ledger. */
export class Ledger {
  readonly #descriptor: number;

  constructor(path: string) {
    this.#descriptor = fs.openSync(path, "a");
    // Whoever wrote before may have died within a line.
    if (fs.fstatSync(this.#descriptor).size > 0) fs.writeSync(this.#descriptor, "\n");
  }

  /** Writes lines, which stay written whatever becomes of this process. */
  note(...notes: readonly LedgerNote[]): void {
    if (notes.length === 0) return;
    const t = Date.now();
    fs.writeSync(this.#descriptor, notes.map((note) => JSON.stringify({ t, ...note }) + "\n").join(""));
  }

  /** Ends the ledger. */
  close(): void {
    fs.closeSync(this.#descriptor);
  }
}

/** Reads a ledger, in its order; a line that was cut short says nothing. */
export function readLedger(path: string): LedgerEvent[] {
  if (!fs.existsSync(path)) return [];
  const events: LedgerEvent[] = [];
  for (const line of fs.readFileSync(path, "utf8").split("\n")) {
    if (line === "") continue;
    try {
      events.push(JSON.parse(line));
    } catch {
      // Its writer was killed within it.
    }
  }
  return events;
}
