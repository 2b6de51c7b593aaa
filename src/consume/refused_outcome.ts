/**
 * What becomes of an outcome that the broker did not record: retried while the lease is held, or given up.
 *
 * @module
 */

import { hasCode } from "../core/error.ts";
import type { Attempt } from "./attempt.ts";
import type { ConsumeOperation } from "./events.ts";
import type { Session } from "./session.ts";
import type { StoragePatience } from "./storage_patience.ts";

/**
 * Decides whether an outcome whose call failed is to be tried again, and waits until then. A lost lease is told and
 * passed over; a transient failure is retried while the lease is held; what is final ends the consumer.
 */
export async function retries(
  session: Session,
  attempt: Attempt,
  operation: ConsumeOperation,
  error: unknown,
  patience: StoragePatience,
): Promise<boolean> {
  if (session.ended) return false;
  if (isLostLease(error)) {
    tellLost(session, attempt, operation, error);
    return false;
  }
  const verdict = session.judge(operation, error, patience);
  if (typeof verdict === "object") {
    if (isHeld(session, attempt)) {
      await session.pause(verdict.retryIn);
      if (session.ended) return false;
      if (isHeld(session, attempt)) return true;
      else tellLost(session, attempt, operation, error);
    } else {
      tellLost(session, attempt, operation, error);
    }
    return false;
  }
  session.reporter.tellOf(attempt.delivery, { kind: "unsettled", operation, error });
  if (verdict === "final") session.fail(error);
  return false;
}

/** Whether a refusal says that the lease had ended: the only one that a consumer passes over. */
export function isLostLease(error: unknown): boolean {
  return hasCode(error, "LEASE_EXPIRED");
}

/** Tells, once for each delivery, that its lease was lost. */
export function tellLost(session: Session, attempt: Attempt, operation: ConsumeOperation, error: unknown): void {
  if (attempt.lost) return;
  attempt.lost = true;
  session.reporter.tellOf(attempt.delivery, { kind: "leaseLost", operation, error });
}

/** Whether the lease is held on the consumer's clock. One that had ended at receipt tells nothing, so it counts as held. */
export function isHeld(session: Session, attempt: Attempt): boolean {
  return attempt.leaseLength <= 0 || session.clock.now() < attempt.lease.expiresAt.getTime();
}
