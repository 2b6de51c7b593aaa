/**
 * Turns what a handler did into a call to the broker, and sees that call through.
 *
 * @module
 */

import type { CallOptions } from "../core/call.ts";
import {
  type DelayedNacker,
  isDelayedNacker,
  isRejecter,
  isReleaser,
  type Rejecter,
} from "../core/capabilities/lease.ts";
import { isWaker } from "../core/capabilities/wake.ts";
import { errorChain, hasCode, isError, isQueueError, QueueError } from "../core/error.ts";
import { type FailureDescription, withDescription } from "../core/failure.ts";
import { maxInstant } from "../core/limits.ts";
import { isMarkedFinal, markedDelay } from "../core/marks.ts";
import type { NackResult, Receipt } from "../core/values.ts";
import type { AckedWindow } from "./acked_window.ts";
import type { Acks } from "./acks.ts";
import type { Attempt } from "./attempt.ts";
import type { ConsumeOperation, ReleasedEvent } from "./events.ts";
import { retries } from "./refused_outcome.ts";
import type { Session } from "./session.ts";
import { StoragePatience } from "./storage_patience.ts";

/** How far short of the last recordable instant a delay is kept, in ms: the broker's clock may be ahead of ours. */
const clockAllowance = 24 * 60 * 60 * 1000;

/** Who counts what is on its way to the broker. */
export interface SettlementLedger {
  /** An outcome is known and not yet recorded. */
  unsettled(): void;
  /** That many outcomes were recorded, or given up. */
  settled(count: number): void;
  /** A message came back, and the broker cannot say so by itself. */
  handedBack(): void;
}

/** What a handler that threw no Error has failed with: the value is reachable in process and never recorded. */
export function handlerPanic(value: unknown): QueueError {
  return new QueueError("HANDLER_PANICKED", undefined, { fields: { value } });
}

/** Settles attempts, each exactly one way. */
export class Settlement {
  readonly #session: Session;
  readonly #acks: Acks;
  readonly #window: AckedWindow;
  readonly #ledger: SettlementLedger;
  readonly #describe: ((error: unknown) => FailureDescription | undefined) | undefined;
  readonly #rejecter: Rejecter | undefined;
  readonly #delayedNacker: DelayedNacker | undefined;
  readonly #tellsItself: boolean;
  readonly #outstanding = new Map<Attempt, ConsumeOperation>();

  constructor(
    session: Session,
    acks: Acks,
    window: AckedWindow,
    ledger: SettlementLedger,
    describe: ((error: unknown) => FailureDescription | undefined) | undefined,
  ) {
    const { broker } = session;
    this.#session = session;
    this.#acks = acks;
    this.#window = window;
    this.#ledger = ledger;
    this.#describe = describe;
    this.#rejecter = isRejecter(broker) ? broker : undefined;
    this.#delayedNacker = isDelayedNacker(broker) ? broker : undefined;
    this.#tellsItself = isWaker(broker);
  }

  /** The handler returned. */
  returned(attempt: Attempt, value: unknown): void {
    attempt.over = true;
    this.#window.remember(attempt.delivery.message.id);
    if (value !== undefined && isQueueError(value, "ACKNOWLEDGED")) {
      this.#session.reporter.tellOf(attempt.delivery, { kind: "acknowledged", by: "handler" });
      return;
    }
    this.#ledger.unsettled();
    this.#acks.push(attempt);
  }

  /** This process handled the message before; only its acknowledgement is missing. */
  handledBefore(attempt: Attempt): void {
    attempt.over = true;
    attempt.handledBefore = true;
    this.#ledger.unsettled();
    this.#acks.push(attempt);
  }

  /** The handler threw. */
  threw(attempt: Attempt, thrown: unknown): void {
    attempt.over = true;
    if (!isError(thrown)) {
      const panic = handlerPanic(thrown);
      if (attempt.cut === "stop") this.release(attempt, "stop");
      else this.#handBack(attempt, panic, undefined);
      return;
    }
    if (hasCode(thrown, "ACKNOWLEDGED")) {
      this.#window.remember(attempt.delivery.message.id);
      this.#session.reporter.tellOf(attempt.delivery, { kind: "acknowledged", by: "handler" });
    } else if (isMarkedFinal(thrown)) {
      this.#giveUp(attempt, thrown);
    } else {
      const delay = markedDelay(thrown);
      if (delay === undefined && attempt.cut === "stop") this.release(attempt, "stop");
      else this.#handBack(attempt, failureOf(attempt, thrown), delay);
    }
  }

  /** Hands a delivery back uncounted. Without a Releaser its lease is left to lapse. */
  release(attempt: Attempt, why: ReleasedEvent["why"]): void {
    attempt.over = true;
    const { broker } = this.#session;
    if (attempt.lost) return;
    if (!isReleaser(broker)) {
      this.#session.reporter.tellOf(attempt.delivery, { kind: "released", why });
      return;
    }
    void this.#see(attempt, "release", async (receipt, calls) => {
      await broker.release(receipt, calls);
      this.#session.reporter.tellOf(attempt.delivery, { kind: "released", why });
    });
  }

  /** Tells of every outcome that is not recorded: the stop's last deadline has come. */
  tellUnsettled(error: unknown): void {
    const tell = (attempt: Attempt, operation: ConsumeOperation) => {
      if (!attempt.lost) this.#session.reporter.tellOf(attempt.delivery, { kind: "unsettled", operation, error });
    };
    this.#acks.forEachOutstanding((attempt) => tell(attempt, "ack"));
    this.#outstanding.forEach((operation, attempt) => tell(attempt, operation));
  }

  #giveUp(attempt: Attempt, error: Error): void {
    const rejecter = this.#rejecter;
    if (rejecter === undefined) return this.#handBack(attempt, error, undefined);
    void this.#see(attempt, "reject", async (receipt, calls) => {
      await rejecter.reject(receipt, this.#described(error), calls);
      this.#session.reporter.tellOf(attempt.delivery, { kind: "deadLettered", error });
    });
  }

  #handBack(attempt: Attempt, error: Error, delay: number | undefined): void {
    const { broker, reporter } = this.#session;
    const nacker = this.#delayedNacker;
    const cause = this.#described(error);
    const report = (result: NackResult | undefined) => {
      if (result?.deadLettered) return reporter.tellOf(attempt.delivery, { kind: "deadLettered", error });
      const visibleAt = result?.visibleAt === undefined ? {} : { visibleAt: result.visibleAt };
      reporter.tellOf(attempt.delivery, { kind: "retried", error, ...visibleAt });
    };
    if (delay === undefined || nacker === undefined) {
      void this.#see(attempt, "nack", async (receipt, calls) => report(await broker.nack(receipt, cause, calls)));
      return;
    }
    const recordable = Math.max(0, Math.min(delay, maxInstant - clockAllowance - this.#session.clock.now()));
    void this.#see(attempt, "nackAfter", async (receipt, calls) => {
      try {
        report(await nacker.nackAfter(receipt, cause, recordable, calls));
      } catch (refusal) {
        // A broker whose clock is far ahead cannot record the delay. Its lease stays valid then.
        if (!isQueueError(refusal, "QUEUE_MISCONFIGURED")) throw refusal;
        report(await broker.nack(receipt, cause, calls));
      }
    });
  }

  #described(error: Error): Error {
    if (this.#describe === undefined) return error;
    try {
      const description = this.#describe(error);
      return description === undefined ? error : withDescription(error, description);
    } catch {
      return error;
    }
  }

  /** Makes a call until it succeeds or nothing more can be done, and keeps the ledger. Never rejects. */
  async #see(
    attempt: Attempt,
    operation: ConsumeOperation,
    call: (receipt: Receipt, calls: CallOptions) => Promise<void>,
  ): Promise<void> {
    const session = this.#session;
    const patience = new StoragePatience(session.options.storagePatience);
    this.#ledger.unsettled();
    this.#outstanding.set(attempt, operation);
    try {
      while (attempt.renewal !== undefined) await attempt.renewal;
      for (let done = false; !done && !session.ended;) {
        try {
          await call(attempt.lease.receipt, session.calls);
          done = true;
        } catch (error) {
          done = !(await retries(session, attempt, operation, error, patience));
        }
      }
      if (!this.#tellsItself && operation !== "reject") this.#ledger.handedBack();
    } finally {
      this.#outstanding.delete(attempt);
      this.#ledger.settled(1);
    }
  }
}

/** What a failed handler is recorded with: one that only passed on the end of its lease, with that. */
function failureOf(attempt: Attempt, thrown: Error): Error {
  if (attempt.cut !== "lease" && attempt.cut !== "renewal") return thrown;
  for (const link of errorChain(thrown)) {
    if (link === attempt.cutReason) return isError(link) ? link : thrown;
  }
  return thrown;
}
