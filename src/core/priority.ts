/**
 * The five priority levels.
 *
 * @module
 */

/**
 * A message's level. Strict: among messages that are visible, the highest level is always received first, and a lower
 * level may starve.
 */
export type Priority = -2 | -1 | 0 | 1 | 2;

/**
 * The five levels by name. `normal` is what a publish without a priority uses.
 *
 * @example Publish ahead of everything that waits
 * ```ts
 * import { newMemory, Priority } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new TextEncoder().encode("later"));
 * await jobs.publish(new TextEncoder().encode("first"), { priority: Priority.highest });
 * const [delivery] = await jobs.receive(1);
 * if (delivery?.priority !== Priority.highest) throw new Error("The highest level comes first");
 * ```
 */
export const Priority: {
  readonly lowest: -2;
  readonly low: -1;
  readonly normal: 0;
  readonly high: 1;
  readonly highest: 2;
} = { lowest: -2, low: -1, normal: 0, high: 1, highest: 2 };

/** Whether a value is one of the five levels. */
export function isPriority(value: unknown): value is Priority {
  return Number.isInteger(value) && (value as number) >= Priority.lowest && (value as number) <= Priority.highest;
}
