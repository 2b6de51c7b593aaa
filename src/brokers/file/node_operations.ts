/**
 * The file operations of a real file system, by `node:fs`, which Deno, Bun and Node all have.
 *
 * The module is fetched at call time and never imported, so that a bundle for the browser holds no trace of it.
 *
 * @module
 */

import type * as NodeCrypto from "node:crypto";
import type * as NodeFs from "node:fs";
import type * as NodeTimers from "node:timers";
import { QueueError } from "../../core/error.ts";
import { atPath, type FileOperations, type FileStatus } from "./operations.ts";
import { DeafWatch } from "./watch_failure.ts";

/** What of the running platform decides whether the broker can keep its promises. */
export interface Platform {
  /** The platform's name, such as `"linux"` or `"win32"`. */
  readonly name: string;
  /** Fetches a built-in module. */
  builtin(module: "node:fs"): typeof NodeFs;
  builtin(module: "node:timers"): typeof NodeTimers;
  builtin(module: "node:crypto"): typeof NodeCrypto;
}

interface ProcessLike {
  readonly platform: string;
  getBuiltinModule?(module: string): unknown;
}

function unsupported(problem: string): never {
  throw new QueueError("UNSUPPORTED_PLATFORM", `Cannot open a file queue: ${problem}`, { fields: { problem } });
}

/**
 * The platform this runs on.
 *
 * @throws {QueueError} `UNSUPPORTED_PLATFORM` where there is no file system (browser, edge).
 */
export function currentPlatform(): Platform {
  const { process } = globalThis as { process?: ProcessLike };
  if (typeof process?.getBuiltinModule !== "function") {
    unsupported(`there is no "node:fs" here, expected Deno 2, Bun or Node 22`);
  }
  const getBuiltinModule = process.getBuiltinModule.bind(process);
  return { name: process.platform, builtin: ((module: string) => getBuiltinModule(module)) as Platform["builtin"] };
}

/** Transfers above this many bytes leave the event loop free; below it the synchronous call is cheaper. */
const largeTransfer = 256 * 1024;

function describeStatus(stats: NodeFs.Stats): FileStatus {
  const kind = stats.isDirectory() ? "directory" : stats.isFile() ? "file" : stats.isSymbolicLink() ? "link" : "other";
  return { kind, mode: stats.mode & 0o7777, links: stats.nlink, size: stats.size, changedAt: stats.ctimeMs };
}

/** Runs a call in the callback form. */
function promised<T>(start: (done: (error: unknown, value: T) => void) => void): Promise<T> {
  return new Promise((resolve, reject) => start((error, value) => error ? reject(error) : resolve(value)));
}

interface DenoLike {
  readDirSync(path: string): Iterable<{ readonly name: string }>;
  readonly permissions: { querySync(descriptor: { name: "read"; path: string }): { readonly state: string } };
}

function isPermitted(path: string): boolean {
  const { Deno } = globalThis as unknown as { Deno?: DenoLike };
  return Deno === undefined || Deno.permissions.querySync({ name: "read", path }).state === "granted";
}

/** Deno lists a directory through its own call in half the time of its `node:fs`. */
function makeList(fs: typeof NodeFs): (path: string) => string[] {
  const { Deno } = globalThis as unknown as { Deno?: DenoLike };
  if (typeof Deno?.readDirSync !== "function") return (path) => fs.readdirSync(path);
  return (path) => {
    const names: string[] = [];
    try {
      for (const { name } of Deno.readDirSync(path)) names.push(name);
    } catch (error) {
      throw atPath(error, path);
    }
    return names;
  };
}

/**
 * The operations of the platform's own file system.
 *
 * @throws {QueueError} `UNSUPPORTED_PLATFORM` where directories cannot be flushed (Windows).
 */
export function nodeOperations(platform: Platform): FileOperations {
  if (platform.name === "win32") unsupported("Windows cannot flush a directory, expected Linux or macOS");
  const fs = platform.builtin("node:fs");
  const { O_CREAT, O_EXCL, O_WRONLY, O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  const timers = platform.builtin("node:timers");
  const crypto = platform.builtin("node:crypto");

  return {
    makeDirectory: (path) => fs.mkdirSync(path, 0o700),
    removeDirectory: (path) => promised((done) => fs.rmdir(path, (error) => done(error, undefined))),
    list: makeList(fs),
    rename: (from, to) => fs.renameSync(from, to),
    link: (existing, name) => fs.linkSync(existing, name),
    unlink: (path) => fs.unlinkSync(path),
    create: (path) => fs.openSync(path, O_CREAT | O_EXCL | O_WRONLY, 0o600),
    // Without waiting: a named pipe would hold up the whole process.
    open: (path) => fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK),
    write(descriptor, bytes) {
      if (bytes.byteLength > largeTransfer) return writeAll(fs, descriptor, bytes);
      for (let done = 0; done < bytes.byteLength;) {
        done += fs.writeSync(descriptor, bytes, done, bytes.byteLength - done);
      }
    },
    read(descriptor, position, length) {
      const bytes = new Uint8Array(length);
      if (length > largeTransfer) return readAll(fs, descriptor, position, bytes);
      let done = 0;
      while (done < length) {
        const count = fs.readSync(descriptor, bytes, done, length - done, position + done);
        if (count === 0) break;
        done += count;
      }
      return done === length ? bytes : bytes.subarray(0, done);
    },
    flush: (descriptor) => promised((done) => fs.fsync(descriptor, (error) => done(error, undefined))),
    close: (descriptor) => fs.closeSync(descriptor),
    status: (path) => describeStatus(fs.lstatSync(path)),
    statusOf: (descriptor) => describeStatus(fs.fstatSync(descriptor)),
    isPermitted,
    resolve: (path) => fs.realpathSync(path),
    touch(path) {
      const now = new Date();
      fs.utimesSync(path, now, now);
    },
    watch: (path, onChange, onFailure) => watchDirectory(fs, timers, path, onChange, onFailure),
    uptime: () => performance.now(),
    pause: makePause(timers),
    sha256: (text) => crypto.createHash("sha256").update(text).digest("hex"),
  };
}

/**
 * On Deno, while a watch is held, turns by `setImmediate` may leave what flushes answer lying for 100 ms and more. A timer
 * has all of it taken in, but costs a millisecond: so every third turn is one.
 */
const turnsPerTimer: number = "Deno" in globalThis ? 3 : Infinity;

/** Taken when the module loads: whoever fakes timers later holds nothing up. */
const { setTimeout: realSetTimeout } = globalThis;

function makePause(timers: typeof NodeTimers): () => Promise<void> {
  let turns = 0;
  return () =>
    new Promise((resolve) => {
      turns++;
      if (turns % turnsPerTimer === 0) realSetTimeout(resolve, 0);
      else timers.setImmediate(resolve);
    });
}

/** How long a watch is waited for between two touches until it is known to hear, in ms; after the last it is deaf. */
const hearingTests = [1, 5, 20, 50, 100, 200, 400, 800, 1_600] as const;

/**
 * Bun leaves out an event that is like the one before and comes within a millisecond of it, though whoever was woken by the
 * first may have looked in between. So an event there is told again after so many ms; elsewhere none is lost.
 */
const echo: number | undefined = "Bun" in globalThis ? 3 : undefined;

/**
 * Watches a directory, and makes sure that it hears, since some mounts never tell of anything: the directory is touched
 * until the first event comes.
 */
function watchDirectory(
  fs: typeof NodeFs,
  timers: typeof NodeTimers,
  path: string,
  onChange: () => void,
  onFailure: (error: unknown) => void,
): () => void {
  let timer: ReturnType<typeof NodeTimers.setTimeout> | undefined;
  let hears = false;
  let ended = false;
  const { ino } = fs.lstatSync(path);
  const fail = (error: unknown) => {
    if (!ended) onFailure(error);
    ended = true;
  };
  const watcher = fs.watch(path, (event) => {
    if (ended) return;
    hears = true;
    timers.clearTimeout(timer);
    if (echo !== undefined) timer = timers.setTimeout(onChange, echo);
    onChange();
    // The directory's own end looks like a change of a name, and is the last that is heard.
    if (event === "rename") {
      try {
        if (fs.lstatSync(path).ino !== ino) fail(new Error("Another directory has taken the place of the watched one"));
      } catch (error) {
        fail(error);
      }
    }
  });
  const test = (round: number) => {
    if (hears) return;
    if (round === hearingTests.length) return fail(new DeafWatch());
    try {
      const now = new Date();
      fs.utimesSync(path, now, now);
    } catch (error) {
      // Not before the caller has what ends the watch.
      return queueMicrotask(() => fail(error));
    }
    timer = timers.setTimeout(() => test(round + 1), hearingTests[round]!);
  };
  watcher.on("error", fail);
  test(0);
  return () => {
    ended = true;
    timers.clearTimeout(timer);
    hears = true;
    watcher.close();
  };
}

async function writeAll(fs: typeof NodeFs, descriptor: number, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.byteLength;) {
    done += await promised<number>((finish) =>
      fs.write(descriptor, bytes, done, bytes.byteLength - done, null, finish)
    );
  }
}

async function readAll(
  fs: typeof NodeFs,
  descriptor: number,
  position: number,
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  let done = 0;
  while (done < bytes.byteLength) {
    const count = await promised<number>((finish) =>
      fs.read(descriptor, bytes, done, bytes.byteLength - done, position + done, finish)
    );
    if (count === 0) break;
    done += count;
  }
  return bytes.subarray(0, done);
}
