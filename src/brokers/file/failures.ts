/**
 * How a refusal of the file system reaches the caller.
 *
 * @module
 */

import { isQueueError, QueueError } from "../../core/error.ts";
import { systemCode } from "./operations.ts";

/** A refusal after which nobody can say whether the message was published: it stands, but may not be on the device. */
export class UnknownOutcome extends Error {
  override readonly name: string = "UnknownOutcome";

  constructor(refusal: unknown) {
    super("Whether the message was published is unknown", { cause: refusal });
  }
}

/**
 * Turns a file system's error into `QUEUE_BACKEND_FAILED` with operation, path and code; everything else is returned as
 * it is. The original stays reachable as the cause.
 *
 * @param partial What the call had done.
 */
export function describeFileError(error: unknown, operation: string, partial?: unknown): unknown {
  const unknown = error instanceof UnknownOutcome;
  const refusal = unknown ? error.cause : error;
  const code = systemCode(refusal);
  if (isQueueError(refusal) || !/^E[A-Z0-9]+$/.test(code)) return refusal;
  const { path, syscall } = refusal as { path?: unknown; syscall?: unknown };
  const where = typeof path === "string" ? ` at ${JSON.stringify(path)}` : "";
  const doubt = unknown ? "; whether the message was published is unknown" : "";
  return new QueueError(
    "QUEUE_BACKEND_FAILED",
    `Cannot ${operation}: the file system answered ${code}${where}${doubt}`,
    {
      fields: {
        operation,
        code,
        ...(typeof path === "string" ? { path } : {}),
        ...(typeof syscall === "string" ? { syscall } : {}),
        ...(unknown ? { published: "unknown" } : {}),
      },
      cause: refusal,
      ...(partial === undefined ? {} : { partial }),
    },
  );
}
