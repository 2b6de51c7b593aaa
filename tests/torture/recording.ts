/**
 * A broker that notes what is received from it and how each lease is settled.
 *
 * @module
 */

import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { isQueueError } from "../../src/core/error.ts";
import { AckOutcome, type Delivery, type Lease, type NackResult, type Receipt } from "../../src/core/values.ts";
import { wrapBroker } from "../../src/core/wrap.ts";
import type { Ledger } from "./ledger.ts";
import { readPayload } from "./payloads.ts";

const settlingVerbs = ["ack", "nack", "nackAfter", "reject", "release", "extend"];

/** The end of a receipt, which no other receipt has. */
export function leaseOf(receipt: string): string {
  return receipt.slice(-10);
}

/** Wraps a broker so that its ledger says what a consumer does. */
export function recordConsumer(jobs: FileBroker, ledger: Ledger, visibilityTimeout: number): FileBroker {
  return wrapBroker(jobs, ({ method, args }, proceed) => {
    if (method === "receive") return receive(proceed as () => Promise<Delivery[]>);
    if (method === "ackMany") return ackMany(args[0] as Receipt[], proceed as () => Promise<AckOutcome[]>);
    if (settlingVerbs.includes(method)) return settle(method, args[0] as Receipt, proceed as () => Promise<unknown>);
    return proceed();
  });

  async function receive(proceed: () => Promise<Delivery[]>): Promise<Delivery[]> {
    const deliveries = await proceed();
    ledger.note(...deliveries.map(({ lease, message, deliveries: count, priority }) => {
      const until = lease.expiresAt.getTime();
      return {
        kind: "received" as const,
        id: message.id,
        lease: leaseOf(lease.receipt),
        count,
        at: until - visibilityTimeout,
        until,
        ...readPayload(message, priority),
      };
    }));
    return deliveries;
  }

  async function ackMany(receipts: readonly Receipt[], proceed: () => Promise<AckOutcome[]>): Promise<AckOutcome[]> {
    const leases = receipts.map(leaseOf);
    ledger.note(...leases.map((lease) => ({ kind: "settling" as const, verb: "ack", lease })));
    const outcomes = await proceed();
    ledger.note(...outcomes.map((outcome, index) => ({
      kind: "settled" as const,
      verb: "ack",
      lease: leases[index]!,
      outcome: outcome === AckOutcome.acknowledged
        ? "done"
        : outcome === AckOutcome.leaseExpired
        ? "expired"
        : `outcome ${outcome}`,
    })));
    return outcomes;
  }

  async function settle(verb: string, receipt: Receipt, proceed: () => Promise<unknown>): Promise<unknown> {
    const lease = leaseOf(receipt);
    ledger.note({ kind: "settling", verb, lease });
    let result: unknown;
    try {
      result = await proceed();
    } catch (error) {
      const outcome = isQueueError(error, "LEASE_EXPIRED") ? "expired" : String(error);
      ledger.note({ kind: "settled", verb, lease, outcome });
      throw error;
    }
    const dead = verb === "reject" || (result as NackResult | undefined)?.deadLettered === true;
    const extended = verb === "extend" ? result as Lease : undefined;
    ledger.note({
      kind: "settled",
      verb,
      lease,
      outcome: dead ? "dead" : "done",
      ...(extended === undefined ? {} : { next: leaseOf(extended.receipt), until: extended.expiresAt.getTime() }),
    });
    return result;
  }
}
