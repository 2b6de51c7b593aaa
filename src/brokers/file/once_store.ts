/**
 * Once keys: a key's entry is a hard link, made exclusively, to the flushed file that holds its message.
 *
 * The message's file lies in `pending/` under a flushed name first. The key is linked to it, then the file itself is moved
 * to its bucket. So a pending file with a key is a message that still has to be moved, whoever finds it, and after any
 * crash a reserved key's message is either pending or was moved: no key costs its message.
 *
 * Keys of one hash follow each other by a generation number, so that of processes that race for an expired key exactly one
 * makes the next generation's name.
 *
 * @module
 */

import { isLinkRefusal, writeFlushed } from "./committer.ts";
import { isEntryName, type NonceSource, parseEntry } from "./names.ts";
import { atPath, attempt, type FileOperations, flushDirectory, systemCode } from "./operations.ts";
import { splitFooter } from "./records.ts";

/** How many digits of a key's hash name its folder: of 4,096, so that one of a million keys lies among 250. */
const folderDigits = 3;

/** How many other reservations each new one looks at. */
const sweptPerKey = 3;

/** A footer and the four bytes of its length and mark lie within so many bytes of a file's end. */
const footerReach = 1_024;

/** What a once file's footer says. */
export interface OnceFooter {
  /** When the key is free again, in ms. */
  readonly end: number;
  /** The message's name in `pending/`. */
  readonly pending: string;
  /** The name that the message's entry gets. */
  readonly entry: string;
}

/** What a look at a key's reservations finds. */
export interface Look {
  /** The newest one, `undefined` for none that can be read. */
  readonly reservation: OnceFooter | undefined;
  /** Where the newest one lies. */
  readonly newest: string | undefined;
  /** Where the next one will lie. */
  readonly next: string;
  /** The reservations in the same folder, of whatever key. */
  readonly neighbours: readonly string[];
}

const keyPattern = /^[0-9a-f]{64}-[0-9]{10}$/;
const pendingPattern = /^[0-9A-HJKMNP-TV-Z]{10}$/;

/**
 * How long an expired key's entry stays, in ms: nobody who saw it expired may still be about to make the next generation
 * when it goes.
 */
const expiredKeyLife = 60_000;

/** The once keys of one queue. */
export class OnceStore {
  readonly #operations: FileOperations;
  readonly #directory: string;
  readonly #pending: string;
  readonly #nonces: NonceSource;
  /** Folders whose own entry is known to be on the device; none is ever removed. */
  readonly #durable = new Set<string>();

  constructor(operations: FileOperations, directory: string, pending: string, nonces: NonceSource) {
    this.#operations = operations;
    this.#directory = directory;
    this.#pending = pending;
    this.#nonces = nonces;
  }

  /** Where a pending message of that name lies. */
  pendingPath(name: string): string {
    return `${this.#pending}/${name}`;
  }

  /** A fresh name for a pending message. */
  pendingName(): string {
    return this.#nonces.next();
  }

  /** The newest reservation of a key and the name that the next one gets. */
  async look(key: string): Promise<Look> {
    const hash = this.#operations.sha256(key);
    const folder = `${this.#directory}/${hash.slice(0, folderDigits)}`;
    const neighbours = this.#list(folder);
    const newest = newestGeneration(neighbours, hash);
    const nextName = `${hash}-${String(newest === undefined ? 1 : newest.number + 1).padStart(10, "0")}`;
    const path = newest && `${folder}/${newest.name}`;
    return {
      reservation: path === undefined ? undefined : await this.#readFooter(path),
      newest: path,
      next: `${folder}/${nextName}`,
      neighbours,
    };
  }

  /** Makes the folder of a key's reservations where it is absent. */
  prepare(reservation: string): void {
    const folder = reservation.slice(0, reservation.lastIndexOf("/"));
    attempt(() => this.#operations.makeDirectory(folder), "EEXIST");
  }

  /** Reserves a key for a pending message; `false` when a rival was first. */
  async reserve(pendingName: string, { newest, next }: Look, bytes: Uint8Array): Promise<boolean> {
    if (!await this.#enter(pendingName, next, bytes)) return false;
    // While the one before it lies there, no rival can have counted from the start again. If it was swept in between,
    // one may have, and this name gives way, unless the message was moved on the strength of it.
    if (newest === undefined || this.#exists(newest) || !this.#exists(this.pendingPath(pendingName))) return true;
    this.#operations.unlink(next);
    return false;
  }

  async #enter(pendingName: string, reservation: string, bytes: Uint8Array): Promise<boolean> {
    try {
      return attempt(() => this.#operations.link(this.pendingPath(pendingName), reservation), "EEXIST");
    } catch (error) {
      if (!isLinkRefusal(error)) throw error;
    }
    // No hard links here: an exclusive copy reserves as well.
    try {
      await writeFlushed(this.#operations, reservation, bytes);
      return true;
    } catch (error) {
      if (systemCode(error) === "EEXIST") return false;
      throw error;
    }
  }

  /** Puts a reservation on the device. */
  async secure(reservation: string): Promise<void> {
    const folder = reservation.slice(0, reservation.lastIndexOf("/"));
    const flushes = [this.flush(folder)];
    // Whoever made the folder may have died, or still wait, before its own entry is on the device.
    if (!this.#durable.has(folder)) flushes.push(this.flush(this.#directory));
    await Promise.all(flushes);
    this.#durable.add(folder);
  }

  /** Puts the pending names on the device. */
  flushPending(): Promise<void> {
    return this.flush(this.#pending);
  }

  /** Flushes a folder. */
  flush(path: string): Promise<void> {
    return flushDirectory(this.#operations, path);
  }

  /** Pending messages whose publisher has not moved them. */
  pendingNames(): string[] {
    return this.#operations.list(this.#pending).filter((name) => pendingPattern.test(name));
  }

  /** What a pending message's file says of it; `undefined` when it is gone or torn. */
  async readPending(name: string): Promise<OnceFooter | undefined> {
    return await this.#readFooter(this.pendingPath(name));
  }

  /**
   * Looks at a few reservations beside a key's and removes those that expired some time ago and whose message was moved:
   * every new key looks at more than one, so that spent ones do not pile up.
   */
  async sweep({ next, neighbours }: Look, now: number): Promise<void> {
    const folder = next.slice(0, next.lastIndexOf("/"));
    for (let look = 0; look < Math.min(sweptPerKey, neighbours.length); look++) {
      const path = `${folder}/${neighbours[Math.floor(Math.random() * neighbours.length)]}`;
      const footer = await this.#readFooter(path);
      if (footer === undefined || footer.end + expiredKeyLife > now) continue;
      if (this.#exists(this.pendingPath(footer.pending))) continue;
      attempt(() => this.#operations.unlink(path), "ENOENT");
    }
  }

  #exists(path: string): boolean {
    return attempt(() => void this.#operations.status(path), "ENOENT");
  }

  #list(folder: string): string[] {
    try {
      return this.#operations.list(folder).filter((name) => keyPattern.test(name));
    } catch (error) {
      if (systemCode(error) === "ENOENT") return [];
      throw error;
    }
  }

  async #readFooter(path: string): Promise<OnceFooter | undefined> {
    let descriptor: number;
    try {
      descriptor = this.#operations.open(path);
    } catch (error) {
      if (systemCode(error) === "ENOENT" || systemCode(error) === "ELOOP") return undefined;
      throw error;
    }
    try {
      const { size } = this.#operations.statusOf(descriptor);
      const reach = Math.min(size, footerReach);
      return checkFooter(splitFooter(await this.#operations.read(descriptor, size - reach, reach))?.footer);
    } catch (error) {
      throw atPath(error, path);
    } finally {
      this.#operations.close(descriptor);
    }
  }
}

/** The name with the greatest number of a hash's. */
function newestGeneration(names: readonly string[], hash: string): { name: string; number: number } | undefined {
  let newest: { name: string; number: number } | undefined;
  for (const name of names) {
    if (!name.startsWith(hash)) continue;
    const number = Number(name.slice(hash.length + 1));
    if (newest === undefined || number > newest.number) newest = { name, number };
  }
  return newest;
}

/** Accepts only a footer that the broker wrote: its names go to the file system. */
function checkFooter(footer: Record<string, unknown> | undefined): OnceFooter | undefined {
  const { end, pending, entry } = footer ?? {};
  if (typeof end !== "number" || typeof pending !== "string" || typeof entry !== "string") return undefined;
  if (!pendingPattern.test(pending) || !isEntryName(entry) || parseEntry(entry)!.state === "l") return undefined;
  return { end, pending, entry };
}
