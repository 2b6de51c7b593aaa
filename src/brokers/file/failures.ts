/**
 * How a refusal of the file system reaches the caller.
 *
 * @module
 */

import { isError, isQueueError, QueueError } from "../../core/error.ts";
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
  const code = refusalCode(refusal);
  if (isQueueError(refusal) || code === undefined) return refusal;
  const { path, syscall } = refusal as { path?: unknown; syscall?: unknown };
  const where = typeof path === "string" ? ` at ${JSON.stringify(path)}` : "";
  const advice = code === "NotCapable" ? ", grant --allow-read and --allow-write for the queue's directory" : "";
  const doubt = unknown ? "; whether the message was published is unknown" : "";
  return new QueueError(
    "QUEUE_BACKEND_FAILED",
    `Cannot ${operation}: the file system answered ${code}${where}${advice}${doubt}`,
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

/** The system's code of a refusal, or the name of Deno's own; `undefined` for any other error. */
function refusalCode(error: unknown): string | undefined {
  if (isError(error) && error.name === "NotCapable") return error.name;
  const code = systemCode(error);
  return /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}
