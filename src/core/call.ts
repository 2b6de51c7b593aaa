/**
 * What every call takes.
 *
 * @module
 */

/** What every call takes. */
export interface CallOptions {
  /** Aborts the call; it then rejects with the signal's own reason. */
  readonly signal?: AbortSignal;
}
