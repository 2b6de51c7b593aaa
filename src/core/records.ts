/**
 * What `putMessage` and `putDeadLetter` check before they write a record made elsewhere.
 *
 * @module
 */

import { QueueError } from "./error.ts";
import { normalizeHeaders } from "./headers.ts";
import { maxDeliveryCount, maxInstant, maxTextLength, maxTrail } from "./limits.ts";
import type { NormalizedPolicy } from "./policy.ts";
import { isPriority, type Priority } from "./priority.ts";
import { checkPayload } from "./publication.ts";
import type { DeadLetter, LiveMessage, MessageHeaders } from "./values.ts";

type Refusal = "INVALID_MESSAGE" | "INVALID_DEAD_LETTER";

/** A live message in the form in which brokers keep it: instants in ms. */
export interface LiveRecord {
  /** The caller's bytes, as given. */
  readonly payload: Uint8Array;
  /** Normal form. */
  readonly headers: MessageHeaders;
  /** In ms. */
  readonly enqueuedAt: number;
  /** In ms. */
  readonly visibleAt: number;
  /** 0 if it was never delivered. */
  readonly deliveries: number;
  /** The level. */
  readonly priority: Priority;
}

/** A dead letter in the form in which brokers keep it: instants in ms, an absent trail as an empty one. */
export interface DeadRecord {
  /** The caller's bytes, as given. */
  readonly payload: Uint8Array;
  /** Normal form. */
  readonly headers: MessageHeaders;
  /** In ms. */
  readonly enqueuedAt: number;
  /** In ms. */
  readonly failedAt: number;
  /** At most 120 code points on one line. */
  readonly reason: string;
  /** At most 120 code points on one line. */
  readonly cause: string;
  /** An unsigned 32-bit number. */
  readonly code: number;
  /** At most 16 codes, oldest first. */
  readonly trail: readonly number[];
  /** 0 if it was never delivered. */
  readonly deliveries: number;
  /** The level. */
  readonly priority: Priority;
}

function refuse(refusal: Refusal, field: string, expected: string): never {
  const what = refusal === "INVALID_MESSAGE" ? "message" : "dead letter";
  throw new QueueError(refusal, `Cannot write the ${what}: "${field}" is not acceptable, expected ${expected}`, {
    fields: { field, problem: `expected ${expected}` },
  });
}

function readRecordInstant(refusal: Refusal, field: string, value: unknown): number {
  const instant = value instanceof Date ? Math.floor(value.getTime()) : NaN;
  if (!(instant >= 0 && instant <= maxInstant)) refuse(refusal, field, "a Date from 1970 to 2262");
  return instant;
}

function checkRecord(refusal: Refusal, record: LiveMessage | DeadLetter, policy: NormalizedPolicy): void {
  const { message, deliveries, priority } = record;
  if (typeof message !== "object" || message === null) refuse(refusal, "message", "an object");
  if (message.id !== "") refuse(refusal, "message.id", "an empty string, since the broker mints the id");
  if (!Number.isInteger(deliveries) || deliveries < 0 || deliveries > maxDeliveryCount) {
    refuse(refusal, "deliveries", `a whole number from 0 to ${maxDeliveryCount}`);
  }
  if (!isPriority(priority)) refuse(refusal, "priority", "a whole number from -2 to 2");
  checkPayload(message.payload, policy);
}

/**
 * Checks a live message recorded elsewhere.
 *
 * @throws {QueueError} `INVALID_MESSAGE` with `fields.field`, or `MESSAGE_TOO_LARGE`.
 */
export function resolveLiveMessage(live: LiveMessage, policy: NormalizedPolicy): LiveRecord {
  checkRecord("INVALID_MESSAGE", live, policy);
  if (live.leased !== false) refuse("INVALID_MESSAGE", "leased", "false, since a lease cannot be copied");
  return {
    payload: live.message.payload,
    headers: normalizeHeaders(live.message.headers, policy),
    enqueuedAt: readRecordInstant("INVALID_MESSAGE", "message.enqueuedAt", live.message.enqueuedAt),
    visibleAt: readRecordInstant("INVALID_MESSAGE", "visibleAt", live.visibleAt),
    deliveries: live.deliveries,
    priority: live.priority,
  };
}

function checkText(field: string, value: unknown): void {
  if (
    typeof value === "string" && value.isWellFormed() && !/[\r\n\u2028\u2029]/.test(value) &&
    [...value].length <= maxTextLength
  ) return;
  refuse("INVALID_DEAD_LETTER", field, `one line of at most ${maxTextLength} code points`);
}

function isCode(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 0xffff_ffff;
}

/**
 * Checks a dead letter recorded elsewhere.
 *
 * @throws {QueueError} `INVALID_DEAD_LETTER` with `fields.field`, or `MESSAGE_TOO_LARGE`.
 */
export function resolveDeadLetter(dead: DeadLetter, policy: NormalizedPolicy): DeadRecord {
  checkRecord("INVALID_DEAD_LETTER", dead, policy);
  checkText("reason", dead.reason);
  checkText("cause", dead.cause);
  if (!isCode(dead.code)) refuse("INVALID_DEAD_LETTER", "code", "an unsigned 32-bit number");
  const trail = dead.trail ?? [];
  if (!Array.isArray(trail) || trail.length > maxTrail || !trail.every(isCode)) {
    refuse("INVALID_DEAD_LETTER", "trail", `at most ${maxTrail} unsigned 32-bit numbers`);
  }
  return {
    payload: dead.message.payload,
    headers: normalizeHeaders(dead.message.headers, policy),
    enqueuedAt: readRecordInstant("INVALID_DEAD_LETTER", "message.enqueuedAt", dead.message.enqueuedAt),
    failedAt: readRecordInstant("INVALID_DEAD_LETTER", "failedAt", dead.failedAt),
    reason: dead.reason,
    cause: dead.cause,
    code: dead.code,
    trail: [...trail],
    deliveries: dead.deliveries,
    priority: dead.priority,
  };
}
