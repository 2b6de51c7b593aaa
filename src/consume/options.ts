/**
 * What a consumer can be told, resolved once at the border.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import { hasMethods } from "../core/capabilities/guard.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { QueueError } from "../core/error.ts";
import type { FailureDescription } from "../core/failure.ts";
import { defaultSettleTimeout } from "../core/limits.ts";
import type { ConsumeEvent } from "./events.ts";
import type { Handler } from "./handler.ts";

/** How long a transient storage failure is retried by default, in ms: 300 000. */
export const defaultStoragePatience: number = 300_000;

/** What `consume` and `deliveries` share. Durations are whole ms (fractions are cut). */
export interface IntakeOptions {
  /** Stops: nothing more is leased, what was not started is handed back uncounted. */
  readonly signal?: AbortSignal;
  /**
   * Messages leased at once, for each worker; 0 or less means the default.
   * @default {1}
   */
  readonly batchSize?: number;
  /**
   * How long an idle consumer waits at most between two looks, in ms; `Infinity` leaves it to the broker's wake, 0 or
   * less means the default: 100, or 5 000 while the broker watches for events of other processes.
   * @default {100}
   */
  readonly pollInterval?: number;
  /**
   * How long outcomes may take after the end of the drain, in ms, and one renewal of a lease; also the most that is
   * held back of a lease as its margin. 0 or less means the default.
   * @default {5_000}
   */
  readonly settleTimeout?: number;
  /**
   * How long transient storage failures in a row are retried before they end the consumer, in ms; 0 or less ends it at
   * the first, `Infinity` never.
   * @default {300_000}
   */
  readonly storagePatience?: number;
  /** Told every outcome and fault. Whatever it throws is ignored. */
  readonly onEvent?: (event: ConsumeEvent) => void;
  /** Instants and timers of the consumer; by default the platform's. */
  readonly clock?: Clock;
}

/** What `consume` takes. */
export interface ConsumeOptions extends IntakeOptions {
  /** Handles one delivery. */
  readonly handler: Handler;
  /**
   * States that handling a message twice does no harm. Delivery is at least once, so without this nothing starts.
   */
  readonly handlerIsIdempotent: true;
  /**
   * Handlers that may run at once; 0 or less means the default.
   * @default {1}
   */
  readonly parallelism?: number;
  /**
   * Whether to lease one batch ahead while handlers are quick (a batch takes less than a twentieth of the lease).
   * @default {true}
   */
  readonly prefetch?: boolean;
  /**
   * How long running handlers may go on after a stop before their signal aborts, in ms; 0 or less aborts at once.
   * @default {0}
   */
  readonly drainTimeout?: number;
  /**
   * How many ids of handled messages are remembered, so that a redelivery in this process is acknowledged without
   * running the handler; 0 or less remembers nothing.
   * @default {0}
   */
  readonly ackedWindow?: number;
  /**
   * Renews leases while handlers run.
   * @default {false}
   */
  readonly autoExtend?: boolean;
  /** What to record of a handler's error beyond its kind; what it leaves out, or all if it throws, is as by default. */
  readonly describe?: (error: unknown) => FailureDescription | undefined;
}

/** What `deliveries` takes. */
export type DeliveriesOptions = IntakeOptions;

/** The intake's options in the one form that circulates inside. */
export interface ResolvedIntake {
  readonly signal: AbortSignal | undefined;
  readonly batchSize: number;
  /** `undefined` means the default, which depends on whether a watch is held. */
  readonly pollInterval: number | undefined;
  readonly settleTimeout: number;
  readonly storagePatience: number;
  readonly onEvent: ((event: ConsumeEvent) => unknown) | undefined;
  readonly clock: Clock;
  readonly parallelism: number;
  readonly prefetch: boolean;
  readonly drainTimeout: number;
  readonly autoExtend: boolean;
}

/** The options of `consume` in the one form that circulates inside. */
export interface ResolvedConsume extends ResolvedIntake {
  readonly handler: Handler;
  readonly ackedWindow: number;
  readonly describe: ((error: unknown) => FailureDescription | undefined) | undefined;
}

function refuse(field: string, value: unknown, expected: string): never {
  const shown = typeof value === "object" && value !== null ? "an object" : String(value);
  throw new QueueError("CONSUMER_MISCONFIGURED", `Cannot consume: "${field}" is ${shown}, expected ${expected}`, {
    fields: { field, value },
  });
}

/** A duration in whole ms, at least 0; what is left out counts as `absent`. */
function readDuration(field: string, value: unknown, absent: number, allowInfinity: boolean): number {
  if (value === undefined) return absent;
  if (value === Infinity && allowInfinity) return value;
  if (typeof value !== "number" || !Number.isFinite(value)) {
    refuse(field, value, allowInfinity ? "a number of ms or Infinity" : "a finite number of ms");
  }
  return Math.max(0, Math.floor(value));
}

function readCount(field: string, value: unknown, least: number): number {
  if (value === undefined) return least;
  if (!Number.isSafeInteger(value)) refuse(field, value, "a whole number");
  return Math.max(least, value as number);
}

function readFlag(field: string, value: unknown, absent: boolean): boolean {
  if (value === undefined) return absent;
  if (typeof value !== "boolean") refuse(field, value, "true or false");
  return value;
}

function readFunction<F>(field: string, value: F | undefined): F | undefined {
  if (value !== undefined && typeof value !== "function") refuse(field, value, "a function");
  return value;
}

function readSignal(signal: AbortSignal | undefined): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  if (typeof signal?.aborted !== "boolean" || typeof signal.addEventListener !== "function") {
    refuse("signal", signal, "an AbortSignal");
  }
  return signal;
}

function readClock(clock: Clock | undefined): Clock {
  if (clock === undefined) return systemClock;
  if (!hasMethods(clock, "now", "setTimer")) refuse("clock", clock, "an object with now and setTimer");
  return clock;
}

function checkBroker(broker: Broker): void {
  if (!hasMethods(broker, "publish", "receive", "ack", "nack")) {
    refuse("broker", broker, "a broker (publish, receive, ack, nack)");
  }
}

function checkOptions(options: unknown): void {
  if (typeof options !== "object" || options === null) refuse("options", options, "an object");
}

function resolveIntake(options: IntakeOptions): ResolvedIntake {
  return {
    signal: readSignal(options.signal),
    batchSize: readCount("batchSize", options.batchSize, 1),
    pollInterval: readDuration("pollInterval", options.pollInterval, 0, true) || undefined,
    settleTimeout: readDuration("settleTimeout", options.settleTimeout, 0, false) || defaultSettleTimeout,
    storagePatience: readDuration("storagePatience", options.storagePatience, defaultStoragePatience, true),
    onEvent: readFunction("onEvent", options.onEvent),
    clock: readClock(options.clock),
    parallelism: 1,
    prefetch: false,
    drainTimeout: 0,
    autoExtend: false,
  };
}

/**
 * Checks and fills in what `consume` was given.
 *
 * @throws {QueueError} `CONSUMER_MISCONFIGURED` with `fields.field` naming the option.
 */
export function resolveConsume(broker: Broker, options: ConsumeOptions): ResolvedConsume {
  checkBroker(broker);
  checkOptions(options);
  if (typeof options.handler !== "function") refuse("handler", options.handler, "a function");
  if (options.handlerIsIdempotent !== true) {
    refuse("handlerIsIdempotent", options.handlerIsIdempotent, "true: every message may be delivered more than once");
  }
  return Object.freeze({
    ...resolveIntake(options),
    handler: options.handler,
    parallelism: readCount("parallelism", options.parallelism, 1),
    prefetch: readFlag("prefetch", options.prefetch, true),
    drainTimeout: readDuration("drainTimeout", options.drainTimeout, 0, true),
    ackedWindow: readCount("ackedWindow", options.ackedWindow, 0),
    autoExtend: readFlag("autoExtend", options.autoExtend, false),
    describe: readFunction("describe", options.describe),
  });
}

/**
 * Checks and fills in what `deliveries` was given.
 *
 * @throws {QueueError} `CONSUMER_MISCONFIGURED` with `fields.field` naming the option.
 */
export function resolveDeliveries(broker: Broker, options: DeliveriesOptions): ResolvedIntake {
  checkBroker(broker);
  checkOptions(options);
  return Object.freeze(resolveIntake(options));
}
