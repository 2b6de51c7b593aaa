/**
 * The one error class, and how to recognise it.
 *
 * @module
 */

import { type QueueReason, reasons } from "./reasons.ts";

const brand: unique symbol = Symbol.for("@x/queue.error");

/** What a {@linkcode QueueError} is made of, beside its reason and message. */
export interface QueueErrorOptions<Partial = unknown> {
  /** What was refused: `field`, `value`, `problem`, sizes, paths. Never payload. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** The error behind this one. */
  readonly cause?: unknown;
  /** What a call that did part of its work had done; the method's documentation names the type. */
  readonly partial?: Partial;
}

/**
 * Everything that the queue refuses or that fails in it. `message` says what happened to whom, `reason` and `code` are
 * for programs. Neither ever holds a payload or a driver's text; the original error is the `cause`.
 *
 * @example Tell a lost lease from a failure
 * ```ts
 * import { isQueueError, newMemory, type Receipt } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * try {
 *   await jobs.ack("nonsense" as Receipt);
 *   throw new Error("Not reached");
 * } catch (error) {
 *   if (!isQueueError(error, "UNKNOWN_RECEIPT")) throw error;
 * }
 * ```
 */
export class QueueError<Partial = unknown> extends Error {
  /** Always `"QueueError"`. */
  override readonly name: string = "QueueError";
  /** What kind of refusal or failure this is. */
  readonly reason: QueueReason;
  /** The numeric code of the reason. */
  readonly code: number;
  /** What was refused: `field`, `value`, `problem`, sizes, paths. Never payload. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** What a call that did part of its work had done. Not enumerable, so that printing an error prints no payload. */
  declare readonly partial?: Partial;
  /** Errors of siblings that failed too, in the order in which they came; set by `consume` when several workers failed. */
  others?: readonly unknown[];

  /** Makes an error of a reason. Without a message it is the reason's public text. */
  constructor(reason: QueueReason, message?: string, options: QueueErrorOptions<Partial> = {}) {
    super(message ?? reasons[reason].text, "cause" in options ? { cause: options.cause } : undefined);
    this.reason = reason;
    this.code = reasons[reason].code;
    this.fields = options.fields ?? {};
    if ("partial" in options) Object.defineProperty(this, "partial", { value: options.partial });
    Object.defineProperty(this, brand, { value: true });
  }

  /** The code in its dotted form, such as `"0.2.23.4"`. */
  get dotted(): string {
    return reasons[this.reason].dotted;
  }

  /** The reason's constant text: safe to show, one line, at most 120 code points. */
  get publicMessage(): string {
    return reasons[this.reason].text;
  }
}

/**
 * Whether a value is a {@linkcode QueueError}, of any reason or of the one given. Recognises errors of another copy of
 * this module too.
 */
export function isQueueError(error: unknown, reason?: QueueReason): error is QueueError {
  if (typeof error !== "object" || error === null) return false;
  if ((error as Record<symbol, unknown>)[brand] !== true) return false;
  return reason === undefined || (error as QueueError).reason === reason;
}

/**
 * Whether a value is an Error: by `Error.isError` where it exists, by `instanceof`, or by its tag (errors of another
 * realm).
 */
export function isError(value: unknown): value is Error {
  if (value instanceof Error) return true;
  const { isError } = Error as { isError?: (value: unknown) => boolean };
  return isError?.(value) === true || Object.prototype.toString.call(value) === "[object Error]";
}

/** Walks an error and everything behind it, `cause` and joined `errors` alike, outermost first, each once. */
export function* errorChain(error: unknown): Generator<unknown, void, undefined> {
  const seen = new Set<unknown>();
  const pending: unknown[] = [error];
  while (pending.length > 0) {
    const current = pending.shift();
    if (current === undefined || current === null || seen.has(current)) continue;
    seen.add(current);
    yield current;
    if (typeof current !== "object") continue;
    const { cause, errors } = current as { cause?: unknown; errors?: unknown };
    if (cause !== undefined) pending.push(cause);
    if (Array.isArray(errors)) pending.push(...errors);
  }
}

/**
 * Whether a reason or numeric code is anywhere in an error's chain, joined branches (`AggregateError`) included.
 *
 * @example
 * ```ts
 * import { hasCode, QueueError } from "jsr:@x/queue";
 *
 * const wrapped = new Error("Import failed", { cause: new QueueError("MESSAGE_TOO_LARGE") });
 * if (!hasCode(wrapped, "MESSAGE_TOO_LARGE") || !hasCode(wrapped, 136962)) throw new Error("It is in the chain");
 * ```
 */
export function hasCode(error: unknown, code: QueueReason | number): boolean {
  for (const link of errorChain(error)) {
    if (isQueueError(link) && (link.reason === code || link.code === code)) return true;
  }
  return false;
}
