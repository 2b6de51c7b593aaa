/**
 * The consumer: leases messages, runs handlers, settles what they did.
 *
 * @module
 */

export { consume } from "./consume.ts";
export { deliveries } from "./deliveries.ts";
export type {
  AbandonedHandlerEvent,
  AcknowledgedEvent,
  ConsumeEvent,
  ConsumeOperation,
  DeadLetteredEvent,
  DeliveryEvent,
  LeaseLostEvent,
  ReleasedEvent,
  RetriedEvent,
  StoppedEvent,
  StorageFailureEvent,
  UnsettledEvent,
} from "./events.ts";
export type { Handler, HandlerContext } from "./handler.ts";
export { type ConsumeOptions, defaultStoragePatience, type DeliveriesOptions, type IntakeOptions } from "./options.ts";
export { watchedPollInterval } from "./watching.ts";
