/**
 * The name grammar: a message's whole state is its file name, and no name from outside reaches the file system unparsed.
 *
 * An entry: `<instant><state><id>-<enqueued>-<deliveries>-<level>-<failure>-<segment>-<offset>-<length>-<nonce>`, where
 *
 * - instant is when a waiting message is visible, or when a leased one's lease ends, in 13 digits of ms;
 * - state is `a` waiting and never delivered, `b` waiting and delivered before, `l` leased;
 * - id is the message id, enqueued its instant, deliveries its count, level 0 (highest) to 4 (lowest);
 * - failure is the last one's code, `n` for none, `u` unreported, `c` unclassified, `l` a lapsed lease;
 * - segment, offset and length say where in the file the record lies, the segment so that readers can share it;
 * - nonce makes every name new: a rename onto another name of the same file would succeed and do nothing.
 *
 * Byte order of waiting names is delivery order: visibility, then never delivered before delivered, then id.
 *
 * @module
 */

import { Priority } from "../../core/priority.ts";
import { reasonOfCode } from "../../core/reasons.ts";
import type { LastFailure } from "../../core/values.ts";

/** What an entry's name says. */
export interface Entry {
  /** Visibility of a waiting message, end of the lease of a leased one, in ms. */
  readonly instant: number;
  /** `a` never delivered, `b` delivered before, `l` leased. */
  readonly state: "a" | "b" | "l";
  readonly id: string;
  readonly enqueuedAt: number;
  readonly deliveries: number;
  readonly priority: Priority;
  /** The last failure's code, or the letter of one without. */
  readonly failure: string;
  readonly segment: string;
  readonly offset: number;
  readonly length: number;
  readonly nonce: string;
}

const digit = "[0-9A-HJKMNP-TV-Z]";
const count = "(0|[1-9][0-9]{0,9})";
const entryPattern = new RegExp(
  `^([0-9]{13})([abl])(${digit}{26})-([0-9]{13})-${count}-([0-4])-([nucl]|[1-9][0-9]{0,9})-(${digit}{10})-${count}-${count}-(${digit}{10})$`,
);
const bucketPattern = new RegExp(`^[0-4]-[0-9]{13}[0ab]${digit}{26}-${digit}{10}$`);
const leaseBucketPattern = new RegExp(`^[0-9]{13}-${digit}{10}$`);
const deadPattern = new RegExp(`^(${digit}{26})-([0-9]{13})-${count}-${count}$`);
const idPattern = new RegExp(`^${digit}{26}$`);
/** The length of what orders a waiting name: instant, state and id. */
export const keyLength = 40;

/** The least of all keys, for a bucket that takes entries of any key. */
export const leastKey: string = "0".repeat(keyLength);

/** A level, a key and a nonce, with a dash between them. */
const bucketLength = 1 + 1 + keyLength + 1 + 10;

/** An entry's name has at least so many characters. */
const shortestEntry = 80;

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** An instant in 13 digits, which is how names hold it. */
export function renderInstant(instant: number): string {
  return instant >= 1e12 ? String(instant) : String(instant).padStart(13, "0");
}

/** The instant that a name or key begins with, in ms. */
export function parseInstant(name: string): number {
  return Number(name.slice(0, 13));
}

/** The name of an entry. */
export function renderEntry(entry: Entry): string {
  return `${renderInstant(entry.instant)}${entry.state}${entry.id}-${renderInstant(entry.enqueuedAt)}-` +
    `${entry.deliveries}-${renderLevel(entry.priority)}-${entry.failure}-${entry.segment}-${entry.offset}-` +
    `${entry.length}-${entry.nonce}`;
}

/** Reads an entry's name; `undefined` for any name that the broker would not write. */
export function parseEntry(name: string): Entry | undefined {
  const match = entryPattern.exec(name);
  if (match === null) return undefined;
  return {
    instant: Number(match[1]),
    state: match[2] as Entry["state"],
    id: match[3]!,
    enqueuedAt: Number(match[4]),
    deliveries: Number(match[5]),
    priority: (2 - Number(match[6])) as Priority,
    failure: match[7]!,
    segment: match[8]!,
    offset: Number(match[9]),
    length: Number(match[10]),
    nonce: match[11]!,
  };
}

/** Whether a name is an entry's. */
export function isEntryName(name: string): boolean {
  return entryPattern.test(name);
}

/**
 * Whether a name may be a waiting entry's: enough to sort a folder by. What is acted on is parsed whole.
 */
export function looksLikeEntry(name: string): boolean {
  const state = name.charCodeAt(13);
  return name.length > shortestEntry && (state === 0x61 || state === 0x62) && name.charCodeAt(keyLength) === 0x2d;
}

/** A level as names hold it: 0 the highest, so that byte order is the order of delivery. */
export function renderLevel(priority: Priority): number {
  return Priority.highest - priority;
}

/** The name of a bucket of waiting entries: its level, the least key it may hold, a nonce. */
export function renderBucket(priority: Priority, start: string, nonce: string): string {
  return `${renderLevel(priority)}-${start}-${nonce}`;
}

/** Whether a name is a waiting bucket's. */
export function isBucketName(name: string): boolean {
  return name.length === bucketLength && bucketPattern.test(name);
}

/** The level, 0 the highest, of a waiting bucket. */
export function bucketLevel(name: string): number {
  return name.charCodeAt(0) - 48;
}

/** The least key that a waiting bucket may hold. */
export function bucketStart(name: string): string {
  return name.slice(2, 2 + keyLength);
}

/** The name of a bucket of leases: when its earliest lease may end, and a nonce. */
export function renderLeaseBucket(start: number, nonce: string): string {
  return `${renderInstant(start)}-${nonce}`;
}

/** Whether a name is a lease bucket's. */
export function isLeaseBucketName(name: string): boolean {
  return leaseBucketPattern.test(name);
}

/** Where a receipt's entry lies; `undefined` for a receipt that this broker would not issue. */
export function parseReceipt(receipt: unknown): { bucket: string; name: string; entry: Entry } | undefined {
  if (typeof receipt !== "string") return undefined;
  const dot = receipt.indexOf(".");
  const bucket = receipt.slice(0, dot);
  const name = receipt.slice(dot + 1);
  if (dot < 0 || !isLeaseBucketName(bucket)) return undefined;
  const entry = parseEntry(name);
  return entry?.state === "l" && entry.deliveries > 0 ? { bucket, name, entry } : undefined;
}

/** What a dead letter's name says. */
export interface DeadName {
  readonly id: string;
  readonly failedAt: number;
  /** Where its record and footer lie in the file: letters buried together share one. */
  readonly offset: number;
  readonly length: number;
}

/** The name of a dead letter: its id, when it failed, where it lies in its file. */
export function renderDead({ id, failedAt, offset, length }: DeadName): string {
  return `${id}-${renderInstant(failedAt)}-${offset}-${length}`;
}

/** Reads a dead letter's name; `undefined` for any other. */
export function parseDead(name: string): DeadName | undefined {
  const match = deadPattern.exec(name);
  if (match === null) return undefined;
  return { id: match[1]!, failedAt: Number(match[2]), offset: Number(match[3]), length: Number(match[4]) };
}

/** Whether a text is an id that this broker could have minted. */
export function isId(text: unknown): text is string {
  return typeof text === "string" && idPattern.test(text);
}

/** How a name holds what last failed. */
export function renderFailure(failure: LastFailure): string {
  if (failure.code !== 0) return String(failure.code);
  if (failure.reason === "UNREPORTED") return "u";
  return failure.reason === "LEASE_EXPIRED" ? "l" : "c";
}

/** What last failed by its letter or code; `undefined` for none. */
export function parseFailure(failure: string): LastFailure | undefined {
  switch (failure) {
    case "n":
      return undefined;
    case "u":
      return { reason: "UNREPORTED", code: 0 };
    case "c":
      return { reason: "UNCLASSIFIED", code: 0 };
    case "l":
      return { reason: "LEASE_EXPIRED", code: 0 };
    default:
      return { reason: reasonOfCode(Number(failure)) ?? "UNCLASSIFIED", code: Number(failure) };
  }
}

/** Draws nonces: ten digits, 50 random bits each, a kilobyte of randomness at a time. */
export class NonceSource {
  #pool: Uint8Array = new Uint8Array(0);
  #used = 0;

  /** A nonce that no name has yet. */
  next(): string {
    if (this.#used + 10 > this.#pool.length) {
      this.#pool = crypto.getRandomValues(new Uint8Array(1000));
      this.#used = 0;
    }
    let text = "";
    const end = this.#used + 10;
    while (this.#used < end) text += alphabet[this.#pool[this.#used++]! & 31];
    return text;
  }
}
