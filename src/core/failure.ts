/**
 * What of a failure is recorded: a reason, a public half, a code and a trail, never a foreign error's own text.
 *
 * @module
 */

import { errorChain, isError, isQueueError, type QueueError } from "./error.ts";
import { maxTextLength, maxTrail } from "./limits.ts";
import { reasons } from "./reasons.ts";

const described: unique symbol = Symbol.for("@x/queue.described");

/** What is recorded of a failure. */
export interface RecordedFailure {
  /** At most 120 code points on one line. */
  readonly reason: string;
  /** The public half: at most 120 code points on one line, empty when nothing was reported. */
  readonly cause: string;
  /** An unsigned 32-bit number, 0 when the cause had none. */
  readonly code: number;
  /** Codes gathered while wrapping, oldest first, at most 16. */
  readonly trail: readonly number[];
}

/** What a caller of `consume` lets be recorded of an error of its own; what it leaves out is recorded as by default. */
export interface FailureDescription {
  /** Replaces the reason. */
  readonly reason?: string;
  /** Replaces the public half. It is stored: put no data of the payload into it. */
  readonly cause?: string;
  /** Replaces the code: an unsigned 32-bit number. */
  readonly code?: number;
}

/** Cuts a text to one line of at most 120 code points. */
export function recordableText(text: string): string {
  const line = text.replace(/[\r\n\u2028\u2029]+/g, " ");
  if (line.length <= maxTextLength) return line.toWellFormed();
  const cut = [...line].slice(0, maxTextLength).join("");
  return cut.toWellFormed();
}

/** Wraps an error so that a broker records the given description instead of what it would record by itself. */
export function withDescription(error: unknown, description: FailureDescription): Error {
  const wrapper = new Error("A described failure", { cause: error });
  return Object.assign(wrapper, { [described]: description });
}

function isMark(error: QueueError): boolean {
  return error.reason === "NOT_RETRYABLE" || error.reason === "RETRY_REQUESTED";
}

/** The name of the first foreign error of a chain, for instance "RangeError"; empty when there is none. */
function foreignName(chain: readonly unknown[]): string {
  for (const link of chain) {
    if (isError(link) && !isQueueError(link)) return recordableText(String(link.name));
  }
  return "";
}

function recordUndescribed(chain: readonly unknown[]): RecordedFailure {
  const ours = chain.filter((link): link is QueueError => isQueueError(link));
  const origin = ours.findLast((error) => !isMark(error));
  if (origin !== undefined) {
    const trail = ours.filter((error) => error !== origin).map((error) => error.code).reverse();
    return { reason: origin.reason, cause: origin.publicMessage, code: origin.code, trail: trail.slice(-maxTrail) };
  }
  const mark = ours.find((error) => error.reason === "NOT_RETRYABLE") ?? ours[0];
  if (mark !== undefined) {
    return { reason: mark.reason, cause: foreignName(chain) || mark.publicMessage, code: mark.code, trail: [] };
  }
  return { reason: "UNCLASSIFIED", cause: foreignName(chain), code: 0, trail: [] };
}

/**
 * What a broker records of the cause of a nack or reject.
 *
 * - No cause: `UNREPORTED`, code 0.
 * - One of ours in the chain: reason, public text and code of the deepest one that is no mark; the other codes are the
 *   trail.
 * - Only a mark around a foreign error: the mark's reason and code, the foreign error's `name` as the public half.
 * - A foreign error: `UNCLASSIFIED`, its `name`, code 0. Its message is never recorded, since it may quote data.
 */
export function recordFailure(cause: unknown): RecordedFailure {
  if (cause === undefined || cause === null) {
    return { reason: "UNREPORTED", cause: "", code: 0, trail: [] };
  }
  const description = typeof cause === "object"
    ? (cause as Record<symbol, unknown>)[described] as FailureDescription | undefined
    : undefined;
  const chain = [...errorChain(description === undefined ? cause : (cause as Error).cause)];
  const plain = recordUndescribed(chain);
  if (description === undefined) return plain;
  const code = description.code;
  return {
    reason: description.reason === undefined ? plain.reason : recordableText(String(description.reason)),
    cause: description.cause === undefined ? plain.cause : recordableText(String(description.cause)),
    code: Number.isInteger(code) && code! >= 0 && code! <= 0xffff_ffff ? code! : plain.code,
    trail: plain.trail,
  };
}

/** What is recorded when a lease lapsed on the last attempt: nobody reported anything. */
export const lapsedFailure: RecordedFailure = { reason: "LEASE_EXPIRED", cause: "", code: 0, trail: [] };

/** What is recorded of a message that reached its greatest age; the code of its last failure joins the trail. */
export function expiredFailure(lastCode: number): RecordedFailure {
  const { code, text } = reasons.MESSAGE_EXPIRED;
  return { reason: "MESSAGE_EXPIRED", cause: text, code, trail: lastCode === 0 ? [] : [lastCode] };
}
