/**
 * What a handler says beside success and failure: do not retry, retry later, or already acknowledged.
 *
 * @module
 */

import { errorChain, hasCode, isQueueError, QueueError } from "./error.ts";
import { maxInstant } from "./limits.ts";

/**
 * Marks an error as final: the message becomes a dead letter on this very failure, with `error` as its cause. It wins
 * over {@linkcode retryAfter} when both are present.
 *
 * @param error What went wrong; the mark wraps it as its `cause`.
 * @returns An error to throw from a handler.
 *
 * @example
 * ```ts
 * import { doNotRetry, hasCode } from "jsr:@x/queue";
 *
 * const marked = doNotRetry(new Error("No such customer"));
 * if (!hasCode(marked, "NOT_RETRYABLE")) throw new Error("It carries the mark");
 * ```
 */
export function doNotRetry(error?: unknown): QueueError {
  return new QueueError("NOT_RETRYABLE", undefined, error === undefined ? {} : { cause: error });
}

/**
 * Marks an error with the time after which the message shall come back. The delivery is counted; the policy's retry
 * delay and jitter play no part.
 *
 * @param error What went wrong; the mark wraps it as its `cause`.
 * @param delay In ms. A negative delay is read as 0; one beyond what a broker can record is clamped.
 * @returns An error to throw from a handler. Of nested marks the outermost wins.
 * @throws {TypeError} When the delay is NaN or no number.
 *
 * @example
 * ```ts
 * import { retryAfter } from "jsr:@x/queue";
 *
 * const marked = retryAfter(new Error("Rate limited"), 60_000);
 * if (marked.reason !== "RETRY_REQUESTED") throw new Error("It carries the mark");
 * ```
 */
export function retryAfter(error: unknown, delay: number): QueueError {
  if (typeof delay !== "number" || Number.isNaN(delay)) {
    throw new TypeError(`Cannot mark for a retry: "delay" is ${String(delay)}, expected a number of ms`);
  }
  const clamped = Math.min(Math.max(0, Math.floor(delay)), maxInstant);
  return new QueueError("RETRY_REQUESTED", undefined, {
    fields: { delay: clamped },
    ...(error === undefined ? {} : { cause: error }),
  });
}

/**
 * What a handler returns or throws after it acknowledged the message itself, typically inside its own transaction: the
 * engine then neither acknowledges nor hands back.
 */
export const acknowledged: QueueError = Object.freeze(new QueueError("ACKNOWLEDGED"));

/** Whether an error says not to retry, anywhere in its chain. */
export function isMarkedFinal(error: unknown): boolean {
  return hasCode(error, "NOT_RETRYABLE");
}

/** The delay in ms of the outermost {@linkcode retryAfter} mark in an error's chain, `undefined` without one. */
export function markedDelay(error: unknown): number | undefined {
  for (const link of errorChain(error)) {
    if (isQueueError(link, "RETRY_REQUESTED")) {
      const delay = link.fields.delay;
      return typeof delay === "number" ? delay : 0;
    }
  }
  return undefined;
}
