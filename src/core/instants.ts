/**
 * Checks of instants, durations and batch sizes that all brokers share.
 *
 * @module
 */

import type { TimeSource } from "./clock.ts";
import { QueueError } from "./error.ts";
import { maxInstant } from "./limits.ts";

/** Refuses an argument: `QUEUE_MISCONFIGURED` naming the field, what it was and what would be accepted. */
export function refuseArgument(field: string, value: unknown, expected: string): never {
  const shown = value instanceof Date ? renderDate(value) : String(value);
  throw new QueueError("QUEUE_MISCONFIGURED", `Cannot accept the call: "${field}" is ${shown}, expected ${expected}`, {
    fields: { field, value },
  });
}

function renderDate(date: Date): string {
  return Number.isNaN(date.getTime()) ? "an invalid Date" : date.toISOString();
}

/**
 * The broker's clock in whole ms.
 *
 * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `clock`) outside 1970 to 2262.
 */
export function readClock(clock: TimeSource): number {
  const now = Math.floor(clock.now());
  if (!(now >= 0 && now <= maxInstant)) refuseArgument("clock", now, "an instant from 1970 to 2262");
  return now;
}

/** An instant `offset` ms after now, refused under the given field where it cannot be recorded. */
export function instantAfter(now: number, offset: number, field: string): number {
  const instant = now + offset;
  if (!(instant <= maxInstant)) refuseArgument(field, offset, "a duration that ends before 2262-04-12");
  return instant;
}

/** A duration in whole ms; NaN, infinities and non-numbers are refused. */
export function readDuration(value: unknown, field: string): number {
  if (typeof value !== "number" || !Number.isFinite(value)) refuseArgument(field, value, "a finite number of ms");
  return Math.floor(value);
}

/** The instant of a Date in ms; an invalid or unrecordable one is refused. An instant before 1970 reads as 1970. */
export function readInstant(value: unknown, field: string): number {
  const instant = value instanceof Date ? value.getTime() : NaN;
  if (Number.isNaN(instant)) refuseArgument(field, value, "a valid Date");
  if (instant > maxInstant) refuseArgument(field, value, "an instant before 2262-04-12");
  return Math.max(0, Math.floor(instant));
}

/**
 * Refuses a batch size that is no positive whole number.
 *
 * @throws {QueueError} `INVALID_BATCH_SIZE`.
 */
export function checkBatchSize(max: unknown): asserts max is number {
  if (Number.isInteger(max) && (max as number) > 0) return;
  throw new QueueError(
    "INVALID_BATCH_SIZE",
    `Cannot accept the call: "max" is ${String(max)}, expected a positive whole number`,
    { fields: { field: "max", value: max } },
  );
}
