/**
 * What the engine tells about itself: one event for every outcome and fault.
 *
 * @module
 */

import type { BrokerEvent } from "../core/capabilities/wake.ts";
import type { Delivery } from "../core/values.ts";

/** The broker call that an event is about. */
export type ConsumeOperation = "receive" | "ack" | "nack" | "nackAfter" | "reject" | "release" | "extend";

/** What every event about one message says. */
export interface DeliveryEvent {
  /** The message's id. */
  readonly id: string;
  /** The delivery's count. */
  readonly deliveries: number;
  /** The whole delivery. Not enumerable, so that printing an event prints no payload. */
  readonly delivery: Delivery;
}

/** The message is gone: acknowledged by the engine, by its handler, or because this process had handled it before. */
export interface AcknowledgedEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "acknowledged";
  /** Who: the engine after the handler returned, the handler itself, or the window of acknowledged ids. */
  readonly by: "consumer" | "handler" | "window";
}

/** The handler failed and the message comes back. */
export interface RetriedEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "retried";
  /** What the handler failed with. */
  readonly error: unknown;
  /** When it can be received again, on the broker's clock. */
  readonly visibleAt?: Date;
}

/** The handler failed for good: the message is a dead letter now. */
export interface DeadLetteredEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "deadLettered";
  /** What the handler failed with. */
  readonly error: unknown;
}

/** The message was handed back uncounted; where the broker cannot, its lease is left to lapse. */
export interface ReleasedEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "released";
  /** The consumer stops, the lease was too near its end before the message's turn, or it was leased ahead too long. */
  readonly why: "stop" | "lease" | "ahead";
}

/** The lease ended before the outcome was recorded; the message comes back with a higher count. */
export interface LeaseLostEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "leaseLost";
  /** The call that was refused, or that could not be made while the lease was held. */
  readonly operation: ConsumeOperation;
  /** The refusal, or the storage failure that outlived the lease. */
  readonly error: unknown;
}

/**
 * The outcome could not be recorded: the stop's bound cut it, the broker was closed, or the storage failed for good. A
 * call that was cut may still land later; else the lease lapses.
 */
export interface UnsettledEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "unsettled";
  /** The call that did not succeed. */
  readonly operation: ConsumeOperation;
  /** Why not. */
  readonly error: unknown;
}

/** A handler ignored its signal past the stop's last deadline; its lease is left to lapse. */
export interface AbandonedHandlerEvent extends DeliveryEvent {
  /** Discriminates the union. */
  readonly kind: "abandonedHandler";
}

/** A call to the broker failed. */
export interface StorageFailureEvent {
  /** Discriminates the union. */
  readonly kind: "storageFailure";
  /** The call. */
  readonly operation: ConsumeOperation;
  /** What it failed with. */
  readonly error: unknown;
  /** In how many ms it is tried again; absent when it is not. */
  readonly retryIn?: number;
}

/** The consumer has ended; the last event. */
export interface StoppedEvent {
  /** Discriminates the union. */
  readonly kind: "stopped";
  /** The caller's signal, the broker's `close`, a failure, or (of `deliveries`) the end of the loop. */
  readonly why: "signal" | "closed" | "failure" | "return";
  /** The failure. */
  readonly error?: unknown;
}

/** Everything that `onEvent` is told, by `kind`; the broker's own events among it. */
export type ConsumeEvent =
  | AcknowledgedEvent
  | RetriedEvent
  | DeadLetteredEvent
  | ReleasedEvent
  | LeaseLostEvent
  | UnsettledEvent
  | AbandonedHandlerEvent
  | StorageFailureEvent
  | StoppedEvent
  | BrokerEvent;

type OfDelivery = Extract<ConsumeEvent, DeliveryEvent>;
type Details<E> = E extends DeliveryEvent ? Omit<E, keyof DeliveryEvent> : never;

/** Hands events to the caller's listener, which can do as it likes without disturbing the engine. */
export class Reporter {
  /** Whether anybody listens; where nobody does no event need be made. */
  readonly listening: boolean;
  #listener: ((event: ConsumeEvent) => unknown) | undefined;

  constructor(listener: ((event: ConsumeEvent) => unknown) | undefined) {
    this.#listener = listener;
    this.listening = listener !== undefined;
  }

  /** Tells nothing more. */
  close(): void {
    this.#listener = undefined;
  }

  /** Tells one event. */
  tell(event: ConsumeEvent): void {
    if (this.#listener === undefined) return;
    try {
      const result = this.#listener(event);
      if (result instanceof Promise) result.catch(() => {});
    } catch {
      // The listener's own affair.
    }
  }

  /** Tells an event about one delivery. */
  tellOf(delivery: Delivery, details: Details<OfDelivery>): void {
    if (this.#listener === undefined) return;
    const { kind, ...rest } = details;
    const event = { kind, id: delivery.message.id, deliveries: delivery.deliveries, ...rest };
    Object.defineProperty(event, "delivery", { value: delivery });
    this.tell(event as unknown as ConsumeEvent);
  }
}
