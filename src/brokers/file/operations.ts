/**
 * Everything that the file broker asks of a file system: one narrow interface, so that a test can crash it at any step.
 *
 * Metadata calls are synchronous, since they are several times cheaper so (a rename is 20 us, its asynchronous form 50);
 * flushes and large transfers are asynchronous, always, so that the event loop goes on meanwhile.
 *
 * @module
 */

/** What is asked of a file's or directory's status. */
export interface FileStatus {
  /** What it is; a link is not followed. */
  readonly kind: "directory" | "file" | "link" | "other";
  /** The permission bits, sticky bit included. */
  readonly mode: number;
  /** How many names it has. */
  readonly links: number;
  /** Size in bytes. */
  readonly size: number;
  /** When its name, links or contents last changed, in ms by the file system's own clock. */
  readonly changedAt: number;
}

/** The file operations. A failure throws an error with the system's `code`, such as `"ENOENT"`. */
export interface FileOperations {
  /** Makes one directory, owner-only; `EEXIST` when the name is taken. */
  makeDirectory(path: string): void;
  /** Removes an empty directory; `ENOTEMPTY` otherwise. It may have to wait for flushes of others. */
  removeDirectory(path: string): Promise<void> | void;
  /** The names in a directory, in no order. */
  list(path: string): string[];
  /** Moves a name, over an existing one too. */
  rename(from: string, to: string): void;
  /** Adds a name to a file; `EEXIST` when the name is taken. */
  link(existing: string, name: string): void;
  /** Removes a name. */
  unlink(path: string): void;
  /** Creates a file that must not exist, owner-only, for writing; returns a descriptor. */
  create(path: string): number;
  /** Opens a file or directory for reading without following a link; returns a descriptor. */
  open(path: string): number;
  /** Appends all bytes to a descriptor. */
  write(descriptor: number, bytes: Uint8Array): Promise<void> | void;
  /** Reads up to `length` bytes from a position. */
  read(descriptor: number, position: number, length: number): Promise<Uint8Array> | Uint8Array;
  /** Puts a file's bytes, or a directory's entries, on the device. */
  flush(descriptor: number): Promise<void>;
  /** Closes a descriptor. */
  close(descriptor: number): void;
  /** The status of a path; a link is not followed. */
  status(path: string): FileStatus;
  /** The status behind a descriptor. */
  statusOf(descriptor: number): FileStatus;
  /** Whether a path may be opened without asking anybody: Deno asks on a terminal for what it was not permitted. */
  isPermitted(path: string): boolean;
  /** The path without links, as the file system spells it. */
  resolve(path: string): string;
  /** Changes a file's times in place, which watchers of its directory see. */
  touch(path: string): void;
  /** Tells of changes in a directory until the returned function is called. */
  watch(path: string, onChange: () => void, onFailure: (error: unknown) => void): () => void;
  /** Lets the event loop turn once. */
  pause(): Promise<void>;
  /** A clock that never steps, in ms from any beginning. */
  uptime(): number;
  /** The SHA-256 of a text in lower-case hex. */
  sha256(text: string): string;
}

/** The system's code of an error, such as `"ENOENT"`; empty when it has none. */
export function systemCode(error: unknown): string {
  const code = typeof error === "object" && error !== null ? (error as { code?: unknown }).code : undefined;
  return typeof code === "string" ? code : "";
}

/** Runs a call and tells whether it was done; `false` when it failed with one of the codes, every other error is thrown. */
export function attempt(call: () => void, ...tolerated: readonly string[]): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if (tolerated.includes(systemCode(error))) return false;
    throw error;
  }
}

/** Runs a call that tidies up: what it was about is done, or has failed already, so a refusal of its own says nothing. */
export function tidyUp(call: () => void): void {
  try {
    call();
  } catch {
    // Leftovers are found by whoever looks for them later.
  }
}

/** Notes the path on an error of a call that knew only a descriptor. */
export function atPath(error: unknown, path: string): unknown {
  const located = error as { path?: unknown };
  if (systemCode(error) !== "" && located.path === undefined) tidyUp(() => void (located.path = path));
  return error;
}

/** Flushes a directory, so that its entries are on the device. */
export async function flushDirectory(operations: FileOperations, path: string): Promise<void> {
  const descriptor = operations.open(path);
  try {
    await operations.flush(descriptor);
  } catch (error) {
    throw atPath(error, path);
  } finally {
    operations.close(descriptor);
  }
}

/** How many descriptors are open at once while many things go to the device. */
const parallelFlushes = 16;

/** Runs a call for every item, a few at a time; all have ended when it settles, with the first failure if there was one. */
export async function forEachParallel<T>(items: Iterable<T>, run: (item: T) => Promise<void>): Promise<void> {
  const failures: unknown[] = [];
  const iterator = items[Symbol.iterator]();
  const work = async () => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) {
      try {
        await run(next.value);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: parallelFlushes }, work));
  if (failures.length > 0) throw failures[0];
}

/**
 * Makes what was put into a folder durable, although a reader may have taken it out and removed the folder meanwhile: what
 * left by a rename is as durable as its leaving, so then the folder's own end is what has to be on the device.
 */
export async function flushEntries(operations: FileOperations, folder: string): Promise<void> {
  try {
    await flushDirectory(operations, folder);
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error;
    await flushDirectory(operations, folder.slice(0, folder.lastIndexOf("/")));
  }
}
