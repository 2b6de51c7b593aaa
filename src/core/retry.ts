/**
 * The retry curve.
 *
 * @module
 */

import type { NormalizedPolicy } from "./policy.ts";

/** The delay after failure `n` before jitter: `min(b * 2^(n-1), c)`, or `b` where nothing grows. */
function grownDelay(base: number, ceiling: number, n: number): number {
  if (ceiling === 0) return base;
  // 2^(n-1) is Infinity for a large n, which the ceiling then holds: compared before any conversion to an integer.
  return Math.min(base * 2 ** (n - 1), ceiling);
}

/**
 * How long a message waits after its failure number `deliveries`, in whole ms. One function for all brokers, so that
 * one sequence of draws gives the same instants on each.
 *
 * With `b = retryDelay`, `c = maxRetryDelay`, `n = deliveries` (below 1 is read as 1), `j = retryJitter` and
 * `r = random()` in [0, 1):
 *
 * - `c = 0`: `b`, and nothing is drawn.
 * - `grown(n) = min(b * 2^(n-1), c)`.
 * - additive: `grown(n) + grown(n) * j * r`; laid on after the ceiling, so it may reach `c * (1 + j)`. Nothing is drawn
 *   for `j = 0`.
 * - full: `r * grown(n)` ("full jitter" of Marc Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).
 * - decorrelated: `min(c, b + r * (3 * prev - b))` with `prev = grown(n-1)`, `b` for n = 1 ("decorrelated jitter" of
 *   the same article, with the previous delay taken before its jitter, so that no state is kept).
 *
 * @param random A number in [0, 1), drawn at most once.
 */
export function retryDelay(policy: NormalizedPolicy, deliveries: number, random: () => number): number {
  const { retryDelay: base, maxRetryDelay: ceiling, retryJitter, retryJitterMode } = policy;
  const n = Math.max(1, deliveries);
  const grown = grownDelay(base, ceiling, n);
  if (ceiling === 0) return grown;
  if (retryJitterMode === "full") return Math.floor(random() * grown);
  if (retryJitterMode === "decorrelated") {
    const previous = n === 1 ? base : grownDelay(base, ceiling, n - 1);
    return Math.floor(Math.min(ceiling, base + random() * (3 * previous - base)));
  }
  return retryJitter === 0 ? grown : Math.floor(grown + grown * retryJitter * random());
}
