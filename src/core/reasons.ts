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

/** The table: every reason with its code and public text. */
export const reasons: Readonly<Record<QueueReason, ReasonRow>> = {
  QUEUE_MISCONFIGURED: { code: 136961, dotted: "0.2.23.1", text: "The queue cannot honour that setting or argument" },
  MESSAGE_TOO_LARGE: { code: 136962, dotted: "0.2.23.2", text: "The message is larger than the queue accepts" },
  UNKNOWN_RECEIPT: { code: 136963, dotted: "0.2.23.3", text: "The receipt names no lease of this queue" },
  LEASE_EXPIRED: { code: 136964, dotted: "0.2.23.4", text: "The lease has ended, so the call changed nothing" },
  INVALID_BATCH_SIZE: { code: 136965, dotted: "0.2.23.5", text: "A batch size is a positive whole number" },
  NOT_RETRYABLE: { code: 136966, dotted: "0.2.23.6", text: "The message cannot be processed and was not retried" },
  DEAD_LETTER_NOT_FOUND: { code: 136967, dotted: "0.2.23.7", text: "There is no dead letter under that id" },
  INVALID_DEAD_LETTER: { code: 136968, dotted: "0.2.23.8", text: "The dead letter cannot be written as given" },
  INVALID_MESSAGE: { code: 136969, dotted: "0.2.23.9", text: "The message cannot be written as given" },
  RETRY_REQUESTED: { code: 136970, dotted: "0.2.23.10", text: "The handler asked for a later retry" },
  MESSAGE_EXPIRED: { code: 136971, dotted: "0.2.23.11", text: "The message grew too old before it was delivered" },
  ACKNOWLEDGED: { code: 136972, dotted: "0.2.23.12", text: "The handler acknowledged the message itself" },
  QUEUE_CLOSED: { code: 136973, dotted: "0.2.23.13", text: "The queue has been closed" },
  QUEUE_BACKEND_FAILED: { code: 210177, dotted: "0.3.53.1", text: "The storage refused an operation" },
  QUEUE_DIRECTORY_UNUSABLE: { code: 210178, dotted: "0.3.53.2", text: "The directory cannot be used safely" },
  CONSUMER_MISCONFIGURED: { code: 210179, dotted: "0.3.53.3", text: "The consumer cannot run with that setting" },
  HANDLER_PANICKED: { code: 210180, dotted: "0.3.53.4", text: "The handler threw something that is not an Error" },
  SQL_QUEUE_MISCONFIGURED: { code: 210181, dotted: "0.3.53.5", text: "The SQL settings cannot be used" },
  UNSUPPORTED_PLATFORM: {
    code: 262401,
    dotted: "0.4.1.1",
    text: "This platform cannot keep the promise of durability",
  },
  REDIS_QUEUE_MISCONFIGURED: { code: 262402, dotted: "0.4.1.2", text: "The Redis settings cannot be used" },
  TASK_MISCONFIGURED: { code: 262657, dotted: "0.4.2.1", text: "The task layer cannot honour that setting" },
  TASK_UNDECODABLE: { code: 262658, dotted: "0.4.2.2", text: "The payload is not what the task expects" },
  TASK_EXHAUSTED: { code: 262659, dotted: "0.4.2.3", text: "The task has no attempt left" },
  TASK_TIMEOUT: { code: 262660, dotted: "0.4.2.4", text: "The handler took longer than its timeout" },
  SAGA_DEFINITION_CHANGED: {
    code: 262913,
    dotted: "0.4.3.1",
    text: "The saga's steps are not those the run began with",
  },
};

/** The reason that a numeric code stands for, `undefined` for a code that is not in the table. */
export function reasonOfCode(code: number): QueueReason | undefined {
  for (const reason in reasons) {
    if (reasons[reason as QueueReason].code === code) return reason as QueueReason;
  }
  return undefined;
}
