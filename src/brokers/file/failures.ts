/**
 * How a refusal of the file system reaches the caller.
 *
 * @module
 */

import { isQueueError, QueueError } from "../../core/error.ts";
import { systemCode } from "./operations.ts";

/**
 * Turns a file system's error into `QUEUE_BACKEND_FAILED` with operation, path and code; everything else is returned as
 * it is. The original stays reachable as the cause.
 */
export function describeFileError(error: unknown, operation: string, partial?: unknown): unknown {
  const code = systemCode(error);
  if (isQueueError(error) || !/^E[A-Z0-9]+$/.test(code)) return error;
  const { path, syscall } = error as { path?: unknown; syscall?: unknown };
  const where = typeof path === "string" ? ` at ${JSON.stringify(path)}` : "";
  return new QueueError("QUEUE_BACKEND_FAILED", `Cannot ${operation}: the file system answered ${code}${where}`, {
    fields: { operation, code, ...(typeof path === "string" ? { path } : {}), ...(syscall ? { syscall } : {}) },
    cause: error,
    ...(partial === undefined ? {} : { partial }),
  });
}
