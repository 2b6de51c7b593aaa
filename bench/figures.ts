/**
 * What a benchmark reports.
 *
 * @module
 */

/** One row of the table. */
export interface Figure {
  /** What was measured, its broker first. */
  readonly name: string;
  /** What ours measured, with its unit. */
  readonly ours: string;
  /** The raw limit or the peer of the same run. */
  readonly raw: string;
  /** How the two compare. */
  readonly ratio: string;
  /** What is asked for. */
  readonly target: string;
  /** Whether it was reached in this run. */
  readonly met: boolean;
}

/** The median of some numbers. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median of the quotients of two sides that took turns, pair by pair: steadier than the quotient of medians. */
export function ratio(numerators: readonly number[], denominators: readonly number[]): number {
  return median(numerators.map((numerator, round) => numerator / denominators[round]!));
}

/** The value that a share of the numbers does not exceed: 0.5 the median, 1 the greatest. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]!;
}
