/**
 * What tests of a queue need: the conformance cases for a broker of your own, and a clock that a test moves.
 *
 * @module
 */

export type { BrokerSetup, Feature, OpenBroker, OpenedBroker, Trait } from "./case.ts";
export { type ConformanceCase, conformanceCases, type ConformanceOptions } from "./conformance.ts";
export { ManualClock } from "./manual_clock.ts";
export type {
  Broker,
  CallOptions,
  CapabilityName,
  Clock,
  Delivery,
  LastFailure,
  Lease,
  Message,
  MessageHeaders,
  NackResult,
  Policy,
  Priority,
  PublishOptions,
  QueueReason,
  Receipt,
  RecordedReason,
  RetryJitterMode,
  TimeSource,
} from "../core/mod.ts";
