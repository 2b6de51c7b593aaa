/**
 * Every case, by area.
 *
 * @module
 */

import type { CaseDefinition } from "../case.ts";
import { abortCases } from "./abort.ts";
import { ackCases } from "./ack.ts";
import { ackAndPublishCases } from "./ack_and_publish.ts";
import { ackManyCases } from "./ack_many.ts";
import { batchCases } from "./batch.ts";
import { bulkCases } from "./dead_letter_bulk.ts";
import { clockCases } from "./clock.ts";
import { closeCases } from "./close.ts";
import { concurrencyCases } from "./concurrency.ts";
import { copyCases } from "./copy.ts";
import { declarationCases } from "./declaration.ts";
import { deadLetterCases } from "./dead_letters.ts";
import { deadLetterWriteCases } from "./dead_letter_write.ts";
import { delayedCases } from "./delayed.ts";
import { expiryCases } from "./expiry.ts";
import { extendCases } from "./extend.ts";
import { headerCases } from "./headers.ts";
import { manageCases } from "./dead_letter_manage.ts";
import { messageCases } from "./messages.ts";
import { messageWriteCases } from "./message_write.ts";
import { nackCases } from "./nack.ts";
import { nackAfterCases } from "./nack_after.ts";
import { onceCases } from "./once.ts";
import { orderCases } from "./order.ts";
import { payloadCases } from "./payloads.ts";
import { policyCases } from "./policy.ts";
import { priorityCases } from "./priority.ts";
import { publishCases } from "./publish.ts";
import { purgeCases } from "./purge.ts";
import { receiveCases } from "./receive.ts";
import { rejectCases } from "./reject.ts";
import { releaseCases } from "./release.ts";
import { reopenCases } from "./reopen.ts";
import { retentionCases } from "./retention.ts";
import { retryCurveCases } from "./retry_curve.ts";
import { secretCases } from "./secrets.ts";
import { statsCases } from "./stats.ts";
import { wakeCases } from "./wake.ts";
import { watchCases } from "./watch.ts";

/** The areas in the order in which their cases are listed. */
export const allCases: readonly { readonly area: string; readonly cases: readonly CaseDefinition[] }[] = [
  { area: "declaration", cases: declarationCases },
  { area: "policy", cases: policyCases },
  { area: "publish", cases: publishCases },
  { area: "payloads", cases: payloadCases },
  { area: "headers", cases: headerCases },
  { area: "receive", cases: receiveCases },
  { area: "ack", cases: ackCases },
  { area: "nack", cases: nackCases },
  { area: "retry curve", cases: retryCurveCases },
  { area: "order", cases: orderCases },
  { area: "priority", cases: priorityCases },
  { area: "extend", cases: extendCases },
  { area: "release", cases: releaseCases },
  { area: "reject", cases: rejectCases },
  { area: "nackAfter", cases: nackAfterCases },
  { area: "delayed", cases: delayedCases },
  { area: "once", cases: onceCases },
  { area: "publishMany", cases: batchCases },
  { area: "ackMany", cases: ackManyCases },
  { area: "ackAndPublish", cases: ackAndPublishCases },
  { area: "dead letters", cases: deadLetterCases },
  { area: "dead letter management", cases: manageCases },
  { area: "dead letters in bulk", cases: bulkCases },
  { area: "putDeadLetter", cases: deadLetterWriteCases },
  { area: "messages", cases: messageCases },
  { area: "putMessage", cases: messageWriteCases },
  { area: "copy", cases: copyCases },
  { area: "stats", cases: statsCases },
  { area: "purge", cases: purgeCases },
  { area: "wake", cases: wakeCases },
  { area: "watch", cases: watchCases },
  { area: "expiry", cases: expiryCases },
  { area: "retention", cases: retentionCases },
  { area: "clock", cases: clockCases },
  { area: "concurrency", cases: concurrencyCases },
  { area: "reopen", cases: reopenCases },
  { area: "close", cases: closeCases },
  { area: "abort", cases: abortCases },
  { area: "secrets", cases: secretCases },
];
