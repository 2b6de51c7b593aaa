/**
 * Where a broker's instants and random numbers come from.
 *
 * @module
 */

import { systemClock, type TimeSource } from "./clock.ts";
import { refuseArgument } from "./instants.ts";

/** The two sources that every broker's configuration may give. */
export interface Sources {
  /** Where instants come from. */
  readonly clock: TimeSource;
  /** A number in [0, 1). */
  readonly random: () => number;
}

/**
 * Checks and fills in the sources of a configuration: by default the platform's, looked up at every call.
 *
 * @throws {QueueError} `QUEUE_MISCONFIGURED` (field `clock` or `random`).
 */
export function resolveSources(config: Partial<Sources>): Sources {
  const { clock = systemClock, random = () => Math.random() } = config;
  if (typeof clock?.now !== "function") refuseArgument("clock", typeof clock, "an object with now()");
  if (typeof random !== "function") refuseArgument("random", typeof random, "a function");
  return { clock, random };
}
