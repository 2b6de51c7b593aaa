/**
 * Consumes with handlers that do whatever handlers do.
 *
 * @module
 */

import { consume } from "../../src/consume/consume.ts";
import type { Delivery } from "../../src/core/values.ts";
import { doNotRetry, retryAfter } from "../../src/core/marks.ts";
import { type Part, rest } from "./part.ts";
import { recordConsumer } from "./recording.ts";
import { policy } from "./settings.ts";

/** Consumes until it is told to end. */
export async function runConsumer({ jobs, ledger, random, signal }: Part): Promise<void> {
  const handler = async ({ message: { id } }: Delivery) => {
    const choice = random.next();
    if (choice < 0.1) await rest(random.below(200));
    else if (choice < 0.12) await rest(policy.visibilityTimeout * 1.2);
    else if (choice < 0.17) throw new Error("Not this time");
    else if (choice < 0.2) throw doNotRetry(new Error("Never"));
    else if (choice < 0.24) throw retryAfter(new Error("Later"), random.below(500));
    else if (choice < 0.26) throw "no error at all";
    ledger.note({ kind: "handled", id });
  };
  await consume(recordConsumer(jobs, ledger, policy.visibilityTimeout), {
    handler,
    handlerIsIdempotent: true,
    parallelism: 1 + random.below(8),
    batchSize: 1 + random.below(4),
    prefetch: random.chance(0.7),
    autoExtend: random.chance(0.5),
    ackedWindow: random.chance(0.3) ? 50 : 0,
    drainTimeout: random.chance(0.5) ? 100 : 0,
    onEvent(event) {
      const { kind } = event;
      if (kind === "storageFailure" || kind === "unsettled" || kind === "entrySkipped") {
        const error = "error" in event ? String(event.error) : "";
        ledger.note({ kind: "surprise", what: `${kind} ${error} ${JSON.stringify(event)}` });
      }
    },
    signal,
  });
}
