/**
 * Breaks the broker on purpose, between it and the disk: leaves out flushes, or swaps two steps that follow each other in
 * one call.
 *
 * @module
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { attempt, type FileOperations } from "../../src/brokers/file/operations.ts";
import { queueRoot } from "./contents.ts";

/** Where sabotage is at work. */
export interface Scene {
  /** Checks what would be if the processes died at this very moment, or the power went. */
  readonly crashHere: () => void;
  /** Flushes a path within one step. */
  readonly flushNow: (path: string) => void;
}

/** What stands between a broker and its disk, and its caller. */
export interface Sabotage {
  /** Makes broken file operations of sound ones. */
  operations(inner: FileOperations, scene: Scene): FileOperations;
  /** Makes calls known, so that their steps can be told from another's. */
  broker(jobs: FileBroker): FileBroker;
  /** Whether it has struck since it was last asked. */
  hasStruck(): boolean;
}

/** What kind of place a path is, such as "ready bucket". */
export function placeOf(path: string): string {
  const [state = "root", folder, entry] = path.slice(queueRoot.length + 1).split("/").filter((name) => name !== "");
  if (folder === undefined) return state;
  if (state === "tmp") return folder === "clock" ? "clock" : "temporary file";
  if (state === "pending") return "pending file";
  if (state === "wake" || state === "damaged") return `${state} file`;
  const kind = state === "dead" || state === "once" ? "folder" : "bucket";
  return entry === undefined
    ? `${state} ${kind}`
    : state === "dead"
    ? "letter"
    : state === "once"
    ? "key"
    : `${state} entry`;
}

/** A step of a call. */
interface Step {
  /** What it does, such as "rename temporary file to ready entry". */
  readonly kind: string;
  readonly paths: readonly string[];
  /** Whether it would be refused now. */
  readonly isRefused: () => boolean;
  /** Does it. */
  readonly run: () => unknown;
}

/** Shows every step to a function, which does it, now or later, or not. */
function withSteps(
  inner: FileOperations,
  take: (step: Step) => unknown,
  look: (path: string, at: "entries" | "itself") => void,
): FileOperations {
  const paths = new Map<number, string>();
  const exists = (path: string) => attempt(() => void inner.status(path), "ENOENT");
  const parentOf = (path: string) => path.slice(0, path.lastIndexOf("/")) || "/";
  const note = (path: string, descriptor: number) => {
    paths.set(descriptor, path);
    return descriptor;
  };
  return {
    ...inner,
    makeDirectory: (path) =>
      void take({
        kind: `make ${placeOf(path)}`,
        paths: [path],
        isRefused: () => exists(path) || !exists(parentOf(path)),
        run: () => inner.makeDirectory(path),
      }),
    removeDirectory: (path) =>
      void take({
        kind: `remove ${placeOf(path)}`,
        paths: [path],
        isRefused: () => !exists(path) || inner.list(path).length > 0,
        run: () => inner.removeDirectory(path),
      }),
    rename: (from, to) =>
      void take({
        kind: `rename ${placeOf(from)} to ${placeOf(to)}`,
        paths: [from, to],
        isRefused: () => !exists(from) || !exists(parentOf(to)),
        run: () => inner.rename(from, to),
      }),
    link: (existing, name) =>
      void take({
        kind: `link ${placeOf(existing)} as ${placeOf(name)}`,
        paths: [existing, name],
        isRefused: () => !exists(existing) || exists(name) || !exists(parentOf(name)),
        run: () => inner.link(existing, name),
      }),
    unlink: (path) =>
      void take({
        kind: `unlink ${placeOf(path)}`,
        paths: [path],
        isRefused: () => !exists(path),
        run: () => inner.unlink(path),
      }),
    create: (path) =>
      note(
        path,
        take({
          kind: `create ${placeOf(path)}`,
          paths: [path],
          // Whoever creates a file wants its descriptor at once.
          isRefused: () => true,
          run: () => inner.create(path),
        }) as number,
      ),
    write: (descriptor, bytes) => {
      const path = paths.get(descriptor)!;
      void take({
        kind: `write ${placeOf(path)}`,
        paths: [path],
        isRefused: () => false,
        run: () => inner.write(descriptor, bytes),
      });
    },
    flush: async (descriptor) => {
      const path = paths.get(descriptor)!;
      await take({
        kind: `flush ${placeOf(path)}`,
        paths: [path],
        isRefused: () => false,
        run: () => inner.flush(descriptor),
      });
    },
    open: (path) => {
      look(path, "itself");
      return note(path, inner.open(path));
    },
    list: (path) => {
      look(path, "entries");
      return inner.list(path);
    },
    status: (path) => {
      look(path, "itself");
      return inner.status(path);
    },
  };
}

/** Remembers that something happened until it is asked. */
class Bell {
  #rung = false;

  ring(): void {
    this.#rung = true;
  }

  hasRung(): boolean {
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
}

/** Leaves out the flushes of one kind of place. */
export function leaveOutFlush(place: string): Sabotage {
  const bell = new Bell();
  return {
    operations: (inner) =>
      withSteps(inner, ({ kind, run }) => {
        if (kind !== `flush ${place}`) return run();
        bell.ring();
      }, () => {}),
    broker: (jobs) => jobs,
    hasStruck: () => bell.hasRung(),
  };
}

/** A call of a broker. */
interface Call {
  /** The step that waits until the next one is done. */
  deferred: Step | undefined;
  /** The kind of its last step. */
  last: string | undefined;
  ended: boolean;
}

const calls = new AsyncLocalStorage<Call>();

/** Runs every call of a broker so that its steps are known as its own; `onEnd` is told when it settles. */
function withCalls(jobs: FileBroker, onEnd: (call: Call) => void): FileBroker {
  return new Proxy(jobs, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        const call: Call = { deferred: undefined, last: undefined, ended: false };
        const result: unknown = calls.run(call, () => value.apply(target, args));
        if (!(result instanceof Promise)) return result;
        const end = () => {
          onEnd(call);
          call.ended = true;
        };
        return result.finally(end);
      };
    },
  });
}

/** Counts which kinds of steps follow which in one call. */
export function countPairs(pairs: Map<string, number>): Sabotage {
  return {
    operations: (inner) =>
      withSteps(inner, ({ kind, run }) => {
        const call = calls.getStore();
        const result = run();
        if (call === undefined) return result;
        if (call.last !== undefined) {
          const pair = `${call.last}, ${kind}`;
          pairs.set(pair, (pairs.get(pair) ?? 0) + 1);
        }
        call.last = kind;
        return result;
      }, () => {}),
    broker: (jobs) => withCalls(jobs, () => {}),
    hasStruck: () => false,
  };
}

/** How often two steps were swapped, and how often the second was refused before the first was done. */
export interface SwapCount {
  swapped: number;
  refused: number;
}

/** Whether a step deals with any of some paths, or with what lies below them. */
function isTouched(step: Step, paths: readonly string[]): boolean {
  return paths.some((path) =>
    step.paths.some((own) => own === path || own.startsWith(`${path}/`) || path.startsWith(`${own}/`))
  );
}

/** Swaps two kinds of steps wherever they follow each other in one call. */
export function swapSteps(first: string, second: string, count: SwapCount = { swapped: 0, refused: 0 }): Sabotage {
  const bell = new Bell();
  const catchUp = (call: Call) => {
    const { deferred } = call;
    call.deferred = undefined;
    if (!deferred?.isRefused()) deferred?.run();
  };
  const operations = (inner: FileOperations, { crashHere, flushNow }: Scene) => {
    /** Does the first step after the second. */
    const between = (call: Call, deferred: Step) => {
      call.deferred = undefined;
      count.swapped++;
      bell.ring();
      crashHere();
      if (!deferred.isRefused()) deferred.run();
    };
    const take = (step: Step): unknown => {
      const call = calls.getStore();
      if (call === undefined) return step.run();
      const { deferred } = call;
      if (deferred !== undefined) {
        const refused = !step.kind.startsWith("create ") && step.isRefused();
        // What would be refused in any order is no step.
        if (refused && !isTouched(deferred, step.paths)) return step.run();
        if (refused && step.kind === second) count.refused++;
        else if (step.kind === second) {
          const result = step.run();
          if (result instanceof Promise) return result.then(() => between(call, deferred));
          between(call, deferred);
          return result;
        }
        catchUp(call);
      }
      // What makes a folder in the background outlives the call that asked for it.
      const mayWait = !call.ended || first.startsWith("make ");
      if (step.kind !== first || !mayWait || step.isRefused()) return step.run();
      const isFlush = first.startsWith("flush ");
      call.deferred = isFlush ? { ...step, run: () => flushNow(step.paths[0]!) } : step;
    };
    const look = (path: string, at: "entries" | "itself") => {
      const call = calls.getStore();
      const deferred = call?.deferred;
      if (deferred === undefined || deferred.kind.startsWith("flush ")) return;
      // Whoever looks at what a step made needs it to be done.
      const touched = deferred.paths.some((changed) =>
        changed === path || (at === "entries" && changed.startsWith(`${path}/`))
      );
      if (touched) catchUp(call!);
    };
    return withSteps(inner, take, look);
  };
  return {
    operations,
    broker: (jobs) => withCalls(jobs, catchUp),
    hasStruck: () => bell.hasRung(),
  };
}
