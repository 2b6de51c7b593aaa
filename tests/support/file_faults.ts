/**
 * File operations that fail on command, or that skip what costs time.
 *
 * @module
 */

import fs from "node:fs";
import type { FileOperations } from "../../src/brokers/file/operations.ts";
import { freshOperations } from "./file_processes.ts";

/** The name of a file operation. */
export type OperationName = keyof FileOperations;

/** File operations whose flushes do nothing, for tests in which no device loses its power. */
export function unflushedOperations(): FileOperations {
  const inner = freshOperations();
  let looks = 0;
  return {
    ...inner,
    flush: () => Promise.resolve(),
    // At once, so that a test sees what became of a folder.
    removeDirectory: (path) => fs.rmdirSync(path),
    // Folders seem to change all the time: tests let the monotonic clock leap ahead of the file system's, to which all of
    // a test may be one instant.
    status(path) {
      const status = inner.status(path);
      return status.kind === "directory" ? { ...status, changedAt: looks++ } : status;
    },
  };
}

/** File operations that see some files as an hour older than they are. */
export function agedOperations(isOld: (path: string) => boolean): FileOperations {
  const inner = unflushedOperations();
  const status = (path: string) => {
    const seen = inner.status(path);
    return isOld(path) ? { ...seen, changedAt: seen.changedAt - 3_600_000 } : seen;
  };
  return { ...inner, status };
}

/** One failure: the `nth` call of an operation from now on, before or after it took effect. */
export interface Fault {
  readonly operation: OperationName;
  /** 1 for the next call. */
  readonly nth: number;
  readonly when: "before" | "after";
  readonly code: string;
  /** Counts only calls whose arguments satisfy it. */
  readonly where?: (...args: unknown[]) => boolean;
  /** Whether every later call fails too. */
  readonly lasting?: boolean;
}

/** File operations that can be told to fail. */
export interface FaultyOperations {
  readonly operations: { -readonly [Name in OperationName]: FileOperations[Name] };
  /** Plans a failure; the one before is forgotten. */
  arm(fault: Fault): void;
  /** Forgets the planned failure. */
  disarm(): void;
  /** The error that was thrown since the last `arm`. */
  readonly thrown: Error | undefined;
  /** How many calls of each operation were made. */
  readonly calls: ReadonlyMap<OperationName, number>;
  /** Descriptors that are open. */
  readonly open: ReadonlySet<number>;
}

function refusal(code: string, operation: string, args: readonly unknown[]): Error {
  const [path] = args;
  return Object.assign(new Error(`${code}: planted by a test, ${operation}`), {
    code,
    errno: -1,
    syscall: operation,
    ...(typeof path === "string" ? { path } : {}),
  });
}

/** Wraps file operations. */
export function faultyOperations(inner: FileOperations = unflushedOperations()): FaultyOperations {
  const calls = new Map<OperationName, number>();
  const open = new Set<number>();
  let fault: Fault | undefined;
  let remaining = 0;
  let thrown: Error | undefined;

  const strikes = (name: OperationName, args: readonly unknown[]) =>
    fault?.operation === name && (fault.where?.(...args) ?? true) &&
    (--remaining === 0 || (fault.lasting && remaining < 0));
  const fail = (name: string, args: readonly unknown[]) => thrown = refusal(fault!.code, name, args);

  const invoke = (name: OperationName, args: unknown[]): unknown => {
    const result = (inner[name] as (...args: unknown[]) => unknown)(...args);
    if (name === "create" || name === "open") open.add(result as number);
    if (name === "close") open.delete(args[0] as number);
    return result;
  };

  const operations = {} as Record<string, unknown>;
  for (const name of Object.keys(inner) as OperationName[]) {
    operations[name] = (...args: unknown[]) => {
      calls.set(name, (calls.get(name) ?? 0) + 1);
      if (!strikes(name, args)) return invoke(name, args);
      const { when } = fault!;
      const error = fail(name, args);
      if (name === "flush") {
        return (when === "after" ? invoke(name, args) as Promise<void> : Promise.resolve()).then(() => {
          throw error;
        });
      }
      if (when === "after") {
        const result = invoke(name, args);
        // A call that failed gave nobody a descriptor.
        if (name === "create" || name === "open") invoke("close", [result]);
        if (result instanceof Promise) return result.then(() => Promise.reject(error));
      }
      throw error;
    };
  }
  return {
    operations: operations as unknown as FaultyOperations["operations"],
    arm(planned) {
      fault = planned;
      remaining = planned.nth;
      thrown = undefined;
    },
    disarm: () => void (fault = undefined),
    get thrown() {
      return thrown;
    },
    calls,
    open,
  };
}
