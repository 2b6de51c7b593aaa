/**
 * What all processes of the torture program agree on.
 *
 * @module
 */

import type { Policy } from "../../src/core/policy.ts";

/** Leases are short, since a killed consumer's messages come back with their end. */
export const policy: Policy & { readonly visibilityTimeout: number; readonly maxDeliveries: number } = {
  visibilityTimeout: 1_500,
  maxDeliveries: 4,
  retryDelay: 50,
};

/** Longer than any run: within it a once key publishes once. */
export const onceWindow = 86_400_000;

/** What a child is told, as JSON. */
export interface Task {
  readonly role: "producer" | "consumer" | "operator";
  readonly dir: string;
  readonly ledger: string;
  /** Names this process among all of a run. */
  readonly name: string;
  readonly seed: number;
}
