/**
 * Assertions that work in any runtime and with any test runner.
 *
 * @module
 */

import { isQueueError } from "../core/error.ts";
import type { QueueReason } from "../core/reasons.ts";

/** What a failed assertion throws. */
export class ConformanceFailure extends Error {
  /** Always `"ConformanceFailure"`. */
  override readonly name: string = "ConformanceFailure";
}

/** Fails with a message. */
export function fail(message: string): never {
  throw new ConformanceFailure(message);
}

/** Fails unless the condition holds. */
export function ensure(condition: unknown, message: string): asserts condition {
  if (!condition) fail(message);
}

/** Two values that are the same: structures by their parts, bytes and dates by their content, `undefined` as absent. */
export function isSame(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (left instanceof Uint8Array && right instanceof Uint8Array) return isSameBytes(left, right);
  if (left instanceof Date && right instanceof Date) return Object.is(left.getTime(), right.getTime());
  if (left instanceof Date || right instanceof Date || Array.isArray(left) !== Array.isArray(right)) return false;
  const names = new Set([...presentKeys(left), ...presentKeys(right)]);
  if (Array.isArray(left) && left.length !== (right as unknown[]).length) return false;
  for (const name of names) {
    if (!isSame((left as Record<string, unknown>)[name], (right as Record<string, unknown>)[name])) return false;
  }
  return true;
}

function presentKeys(value: object): string[] {
  return Object.keys(value).filter((name) => (value as Record<string, unknown>)[name] !== undefined);
}

function isSameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

/** Fails unless both values are the same; `what` names the value in the message. */
export function equal<T>(actual: T, expected: T, what: string): void {
  if (!isSame(actual, expected)) fail(`${what} is ${render(actual)}, expected ${render(expected)}`);
}

/** Fails when both values are the same. */
export function notEqual(actual: unknown, other: unknown, what: string): void {
  if (isSame(actual, other)) fail(`${what} is ${render(actual)}, expected anything else`);
}

/** A short rendering; long bytes and texts are cut. */
export function render(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}...` : value);
  if (value instanceof Uint8Array) {
    const shown = [...value.subarray(0, 16)].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    return `${value.length} bytes [${shown}${value.length > 16 ? " ..." : ""}]`;
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "an invalid Date" : value.toISOString();
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (Array.isArray(value)) return `[${value.slice(0, 50).map(render).join(", ")}${value.length > 50 ? ", ..." : ""}]`;
  if (typeof value === "object" && value !== null) {
    return `{ ${
      presentKeys(value).map((key) => `${key}: ${render((value as Record<string, unknown>)[key])}`).join(", ")
    } }`;
  }
  return String(value);
}

/** What a call is refused with: its error. Fails when it succeeds, or throws instead of rejecting. */
export async function refusal(call: () => Promise<unknown>, what: string): Promise<unknown> {
  let promise: Promise<unknown>;
  try {
    promise = call();
  } catch (error) {
    fail(`${what} threw ${render(error)} instead of rejecting`);
  }
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  return fail(`${what} was accepted with ${render(value)}, expected a refusal`);
}

/** Fails unless a call rejects with a QueueError of the reason and, where given, naming the field. */
export async function refuses(
  call: () => Promise<unknown>,
  reason: QueueReason | readonly QueueReason[],
  what: string,
  field?: string,
): Promise<void> {
  const error = await refusal(call, what);
  const reasons = typeof reason === "string" ? [reason] : reason;
  ensure(
    isQueueError(error) && reasons.includes(error.reason),
    `${what} was refused with ${render(error)}, expected ${reasons.join(" or ")}`,
  );
  if (field !== undefined) equal(error.fields.field, field, `The field that ${what} was refused for`);
}

/** Fails unless a call rejects with the very reason of an aborted signal. */
export async function rejectsWith(call: () => Promise<unknown>, expected: unknown, what: string): Promise<void> {
  const error = await refusal(call, what);
  ensure(error === expected, `${what} was refused with ${render(error)}, expected the signal's own reason`);
}

/** How many of several racing calls succeeded; fails when one failed for another reason than the given one. */
export async function countWinners(
  calls: readonly Promise<unknown>[],
  reason: QueueReason,
  what: string,
): Promise<number> {
  const results = await Promise.allSettled(calls);
  for (const result of results) {
    if (result.status === "fulfilled") continue;
    ensure(
      isQueueError(result.reason, reason),
      `${what}: a loser was refused with ${render(result.reason)}, expected ${reason}`,
    );
  }
  return results.filter((result) => result.status === "fulfilled").length;
}
