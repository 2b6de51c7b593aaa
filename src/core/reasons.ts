/**
 * The one table of everything that can be refused or fail: reason, code and the text that is safe to show.
 *
 * @module
 */

/** Every reason that a {@linkcode QueueError} can carry. */
export type QueueReason =
  | "QUEUE_MISCONFIGURED"
  | "MESSAGE_TOO_LARGE"
  | "UNKNOWN_RECEIPT"
  | "LEASE_EXPIRED"
  | "INVALID_BATCH_SIZE"
  | "NOT_RETRYABLE"
  | "DEAD_LETTER_NOT_FOUND"
  | "INVALID_DEAD_LETTER"
  | "INVALID_MESSAGE"
  | "RETRY_REQUESTED"
  | "MESSAGE_EXPIRED"
  | "ACKNOWLEDGED"
  | "QUEUE_CLOSED"
  | "QUEUE_BACKEND_FAILED"
  | "QUEUE_DIRECTORY_UNUSABLE"
  | "CONSUMER_MISCONFIGURED"
  | "HANDLER_PANICKED"
  | "SQL_QUEUE_MISCONFIGURED"
  | "UNSUPPORTED_PLATFORM"
  | "REDIS_QUEUE_MISCONFIGURED"
  | "TASK_MISCONFIGURED"
  | "TASK_UNDECODABLE"
  | "TASK_EXHAUSTED"
  | "TASK_TIMEOUT"
  | "SAGA_DEFINITION_CHANGED";

/** One row of the table. */
export interface ReasonRow {
  /** The numeric code: `65536 * layer + 256 * package + serial` of the dotted form's last three parts. */
  readonly code: number;
  /** The dotted form, `0.layer.package.serial`. */
  readonly dotted: string;
  /** The constant public text: one line, at most 120 code points, nothing of the payload. */
  readonly text: string;
}

/** Builds a row from its dotted form, so that code and form cannot disagree. */
function row(dotted: string, text: string): ReasonRow {
  const [, layer, pack, serial] = dotted.split(".").map(Number) as [number, number, number, number];
  return { code: 65536 * layer + 256 * pack + serial, dotted, text };
}

/** The table: every reason with its code and public text. */
export const reasons: Readonly<Record<QueueReason, ReasonRow>> = {
  QUEUE_MISCONFIGURED: row("0.2.23.1", "The queue cannot honour that setting or argument"),
  MESSAGE_TOO_LARGE: row("0.2.23.2", "The message is larger than the queue accepts"),
  UNKNOWN_RECEIPT: row("0.2.23.3", "The receipt names no lease of this queue"),
  LEASE_EXPIRED: row("0.2.23.4", "The lease has ended, so the call changed nothing"),
  INVALID_BATCH_SIZE: row("0.2.23.5", "A batch size is a positive whole number"),
  NOT_RETRYABLE: row("0.2.23.6", "The message cannot be processed and was not retried"),
  DEAD_LETTER_NOT_FOUND: row("0.2.23.7", "There is no dead letter under that id"),
  INVALID_DEAD_LETTER: row("0.2.23.8", "The dead letter cannot be written as given"),
  INVALID_MESSAGE: row("0.2.23.9", "The message cannot be written as given"),
  RETRY_REQUESTED: row("0.2.23.10", "The handler asked for a later retry"),
  MESSAGE_EXPIRED: row("0.2.23.11", "The message grew too old before it was delivered"),
  ACKNOWLEDGED: row("0.2.23.12", "The handler acknowledged the message itself"),
  QUEUE_CLOSED: row("0.2.23.13", "The queue has been closed"),
  QUEUE_BACKEND_FAILED: row("0.3.53.1", "The storage refused an operation"),
  QUEUE_DIRECTORY_UNUSABLE: row("0.3.53.2", "The directory cannot be used safely"),
  CONSUMER_MISCONFIGURED: row("0.3.53.3", "The consumer cannot run with that setting"),
  HANDLER_PANICKED: row("0.3.53.4", "The handler threw something that is not an Error"),
  SQL_QUEUE_MISCONFIGURED: row("0.3.53.5", "The SQL settings cannot be used"),
  UNSUPPORTED_PLATFORM: row("0.4.1.1", "This platform cannot keep the promise of durability"),
  REDIS_QUEUE_MISCONFIGURED: row("0.4.1.2", "The Redis settings cannot be used"),
  TASK_MISCONFIGURED: row("0.4.2.1", "The task layer cannot honour that setting"),
  TASK_UNDECODABLE: row("0.4.2.2", "The payload is not what the task expects"),
  TASK_EXHAUSTED: row("0.4.2.3", "The task has no attempt left"),
  TASK_TIMEOUT: row("0.4.2.4", "The handler took longer than its timeout"),
  SAGA_DEFINITION_CHANGED: row("0.4.3.1", "The saga's steps are not those the run began with"),
};

/** The reason that a numeric code stands for, `undefined` for a code that is not in the table. */
export function reasonOfCode(code: number): QueueReason | undefined {
  for (const reason in reasons) {
    if (reasons[reason as QueueReason].code === code) return reason as QueueReason;
  }
  return undefined;
}
