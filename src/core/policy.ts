/**
 * A queue's policy: its fields, what is refused, and its normal form.
 *
 * @module
 */

import { QueueError } from "./error.ts";
import {
  defaultMaxHeaderBytes,
  defaultMaxHeaders,
  defaultMaxMessageBytes,
  maxDeadlineOffset,
  maxDeliveryCount,
} from "./limits.ts";

/** How the retry delay is spread; see {@linkcode retryDelay} for the formulas. */
export type RetryJitterMode = "additive" | "full" | "decorrelated";

/**
 * How a queue treats its messages. Durations are whole milliseconds (fractions are cut) of at most 100 years. Bad
 * values are refused when the broker is made, never at first use.
 */
export interface Policy {
  /** How long a delivered message is one consumer's, in ms; above 0. */
  readonly visibilityTimeout: number;
  /** How often a message is handed out before it becomes a dead letter; a whole number from 1. */
  readonly maxDeliveries: number;
  /**
   * How long a failed message waits, in ms; below 0 is read as 0.
   * @default {0}
   */
  readonly retryDelay?: number;
  /**
   * Up to where the delay doubles with every failure, in ms; at least `retryDelay`. 0 keeps the delay constant.
   * @default {0}
   */
  readonly maxRetryDelay?: number;
  /**
   * Additive jitter as a share of the delay, 0 to 1; above 0 it needs a `maxRetryDelay`.
   * @default {0}
   */
  readonly retryJitter?: number;
  /**
   * How the delay is spread; any but `"additive"` needs a `maxRetryDelay` and excludes `retryJitter`.
   * @default {"additive"}
   */
  readonly retryJitterMode?: RetryJitterMode;
  /**
   * The largest payload in bytes; 0 means the default.
   * @default {1_048_576}
   */
  readonly maxMessageBytes?: number;
  /**
   * The age in ms, from `enqueuedAt`, at which a message is dead-lettered instead of delivered; 0 means never.
   * @default {0}
   */
  readonly maxAge?: number;
  /**
   * How long dead letters are kept, in ms from `failedAt`; 0 keeps them until somebody replays or deletes them.
   * @default {0}
   */
  readonly deadLetterRetention?: number;
  /**
   * The most headers a message may carry; 0 means the default.
   * @default {64}
   */
  readonly maxHeaders?: number;
  /**
   * The most bytes of headers in UTF-8, names and values together; 0 means the default.
   * @default {8_192}
   */
  readonly maxHeaderBytes?: number;
}

/** A policy with every field filled in, whole and in range. */
export type NormalizedPolicy = Readonly<Required<Policy>>;

const jitterModes: readonly unknown[] = ["additive", "full", "decorrelated"] satisfies RetryJitterMode[];

function refuse(field: string, value: unknown, problem: string): never {
  throw new QueueError(
    "QUEUE_MISCONFIGURED",
    `Cannot use this policy: "policy.${field}" is ${String(value)}, ${problem}`,
    { fields: { field: `policy.${field}`, value, problem } },
  );
}

function checkFinite(field: string, value: unknown): asserts value is number {
  if (typeof value !== "number" || !Number.isFinite(value)) refuse(field, value, "expected a finite number");
}

function checkDuration(field: string, value: unknown, least: number): void {
  checkFinite(field, value);
  const whole = Math.floor(value);
  if (whole > maxDeadlineOffset) {
    refuse(field, value, `expected at most ${maxDeadlineOffset} ms (100 years)`);
  }
  if (whole < least) refuse(field, value, least > 0 ? "expected at least 1 ms" : "expected 0 or more ms, not negative");
}

function checkCount(field: string, value: unknown, least: number): void {
  checkFinite(field, value);
  if (!Number.isInteger(value) || value < least || value > maxDeliveryCount) {
    refuse(field, value, `expected a whole number from ${least} to ${maxDeliveryCount}`);
  }
}

function checkGrowth(policy: Policy): void {
  const { retryDelay = 0, maxRetryDelay = 0 } = policy;
  checkDuration("maxRetryDelay", maxRetryDelay, 0);
  if (Math.floor(maxRetryDelay) === 0) return;
  if (Math.floor(retryDelay) <= 0) {
    refuse("maxRetryDelay", maxRetryDelay, `but "policy.retryDelay" gives nothing to grow from`);
  }
  if (Math.floor(maxRetryDelay) < Math.floor(retryDelay)) {
    refuse("maxRetryDelay", maxRetryDelay, `expected at least "policy.retryDelay", which is ${retryDelay}`);
  }
}

function checkJitter(policy: Policy): void {
  const { retryJitter = 0, retryJitterMode = "additive", maxRetryDelay = 0 } = policy;
  const constant = Math.floor(maxRetryDelay) === 0;
  checkFinite("retryJitter", retryJitter);
  if (retryJitter < 0 || retryJitter > 1) refuse("retryJitter", retryJitter, "expected 0 to 1");
  if (retryJitter > 0 && constant) refuse("retryJitter", retryJitter, `but needs a "policy.maxRetryDelay" above 0`);
  if (!jitterModes.includes(retryJitterMode)) {
    refuse("retryJitterMode", retryJitterMode, `expected "additive", "full" or "decorrelated"`);
  }
  if (retryJitterMode === "additive") return;
  if (constant) refuse("retryJitterMode", retryJitterMode, `but needs a "policy.maxRetryDelay" above 0`);
  if (retryJitter > 0) refuse("retryJitter", retryJitter, `but "policy.retryJitterMode" ${retryJitterMode} ignores it`);
}

/**
 * Refuses a policy that a broker cannot honour. Every broker calls it when it is made.
 *
 * @throws {QueueError} `QUEUE_MISCONFIGURED` with `fields.field` naming the first bad field, such as
 * `"policy.maxRetryDelay"`.
 *
 * @example
 * ```ts
 * import { isQueueError, validatePolicy } from "jsr:@x/queue";
 *
 * try {
 *   validatePolicy({ visibilityTimeout: 0, maxDeliveries: 5 });
 *   throw new Error("Not reached");
 * } catch (error) {
 *   if (!isQueueError(error, "QUEUE_MISCONFIGURED")) throw error;
 *   if (error.fields.field !== "policy.visibilityTimeout") throw error;
 * }
 * ```
 */
export function validatePolicy(policy: Policy): void {
  if (typeof policy !== "object" || policy === null) {
    throw new QueueError("QUEUE_MISCONFIGURED", `Cannot make the broker: "policy" is missing, expected an object`, {
      fields: { field: "policy", value: policy },
    });
  }
  checkDuration("visibilityTimeout", policy.visibilityTimeout, 1);
  checkCount("maxDeliveries", policy.maxDeliveries, 1);
  checkCount("maxMessageBytes", policy.maxMessageBytes ?? 0, 0);
  const { retryDelay = 0 } = policy;
  checkFinite("retryDelay", retryDelay);
  checkDuration("retryDelay", Math.max(0, retryDelay), 0);
  checkGrowth(policy);
  checkDuration("maxAge", policy.maxAge ?? 0, 0);
  checkDuration("deadLetterRetention", policy.deadLetterRetention ?? 0, 0);
  checkJitter(policy);
  checkCount("maxHeaders", policy.maxHeaders ?? 0, 0);
  checkCount("maxHeaderBytes", policy.maxHeaderBytes ?? 0, 0);
}

/**
 * Fills in what a policy leaves out and cuts fractions of a millisecond; checks nothing.
 *
 * @returns A frozen policy with every field present.
 */
export function normalizePolicy(policy: Policy): NormalizedPolicy {
  return Object.freeze({
    visibilityTimeout: Math.floor(policy.visibilityTimeout),
    maxDeliveries: policy.maxDeliveries,
    retryDelay: Math.max(0, Math.floor(policy.retryDelay ?? 0)),
    maxRetryDelay: Math.floor(policy.maxRetryDelay ?? 0),
    retryJitter: policy.retryJitter ?? 0,
    retryJitterMode: policy.retryJitterMode ?? "additive",
    maxMessageBytes: policy.maxMessageBytes || defaultMaxMessageBytes,
    maxAge: Math.floor(policy.maxAge ?? 0),
    deadLetterRetention: Math.floor(policy.deadLetterRetention ?? 0),
    maxHeaders: policy.maxHeaders || defaultMaxHeaders,
    maxHeaderBytes: policy.maxHeaderBytes || defaultMaxHeaderBytes,
  });
}

/** Validates and normalises in one step: what every broker does with the policy it is given. */
export function resolvePolicy(policy: Policy): NormalizedPolicy {
  validatePolicy(policy);
  return normalizePolicy(policy);
}
