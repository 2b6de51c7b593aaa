/**
 * What every publishing method checks before anything is written, in one order for all brokers.
 *
 * @module
 */

import type { PublishItem, PublishOptions } from "./capabilities/publish.ts";
import { QueueError } from "./error.ts";
import { normalizeHeaders } from "./headers.ts";
import { instantAfter, readDuration, readInstant, refuseArgument } from "./instants.ts";
import type { NormalizedPolicy } from "./policy.ts";
import { isPriority, Priority } from "./priority.ts";
import type { MessageHeaders } from "./values.ts";

/** A publication that was checked and may be written. */
export interface Publication {
  /** The caller's own bytes. */
  readonly payload: Uint8Array;
  /** In ms; `now` for a message that is visible at once. */
  readonly visibleAt: number;
  /** The level. */
  readonly priority: Priority;
  /** Normal form. */
  readonly headers: MessageHeaders;
}

/**
 * Refuses a payload that is no bytes or too large.
 *
 * @throws {TypeError} For anything but a Uint8Array.
 * @throws {QueueError} `MESSAGE_TOO_LARGE` with `size` and `max`, never the bytes.
 */
export function checkPayload(payload: unknown, policy: NormalizedPolicy): asserts payload is Uint8Array {
  if (!(payload instanceof Uint8Array)) {
    throw new TypeError(
      `Cannot publish: "payload" is ${payload === null ? "null" : typeof payload}, expected a Uint8Array`,
    );
  }
  const size = payload.byteLength;
  const max = policy.maxMessageBytes;
  if (size <= max) return;
  throw new QueueError("MESSAGE_TOO_LARGE", `Cannot accept the message: ${size} bytes, expected at most ${max}`, {
    fields: { field: "payload", size, max },
  });
}

/** Checks one publication; nothing was written when it throws. */
export function resolvePublication(
  payload: Uint8Array,
  options: PublishOptions | undefined,
  policy: NormalizedPolicy,
  now: number,
): Publication {
  checkPayload(payload, policy);
  const priority = options?.priority ?? Priority.normal;
  if (!isPriority(priority)) refuseArgument("priority", priority, "a whole number from -2 to 2");
  return {
    payload,
    visibleAt: options?.at === undefined ? now : readVisibility(options.at, policy, now),
    priority,
    headers: normalizeHeaders(options?.headers, policy),
  };
}

function readVisibility(at: Date, policy: NormalizedPolicy, now: number): number {
  const visibleAt = Math.max(now, readInstant(at, "at"));
  if (policy.maxAge > 0 && visibleAt - now >= policy.maxAge) {
    refuseArgument("at", at, `an instant less than "policy.maxAge" (${policy.maxAge} ms) ahead`);
  }
  return visibleAt;
}

/** Checks every item of a batch before anything is written. */
export function resolveBatch(
  items: Iterable<Uint8Array | PublishItem>,
  policy: NormalizedPolicy,
  now: number,
): Publication[] {
  const publications: Publication[] = [];
  for (const item of items) {
    publications.push(
      item instanceof Uint8Array || typeof item !== "object" || item === null
        ? resolvePublication(item, undefined, policy, now)
        : resolvePublication(item.payload, item, policy, now),
    );
  }
  return publications;
}

/** Checks a once key and its window; returns the window's end in ms. */
export function resolveOnce(key: unknown, window: unknown, now: number): number {
  if (typeof key !== "string" || key === "" || !key.isWellFormed()) {
    refuseArgument(
      "key",
      typeof key === "string" ? JSON.stringify(key) : typeof key,
      "a non-empty, well-formed string",
    );
  }
  const length = readDuration(window, "window");
  if (length <= 0) refuseArgument("window", window, "more than 0 ms");
  return instantAfter(now, length, "window");
}
