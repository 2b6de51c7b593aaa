/**
 * The least that is a broker: four methods over an array, written as somebody would who has never seen this package's own.
 * It keeps no headers, levels, instants, ages or dead letters, and says so by refusing them.
 *
 * @module
 */

import {
  type Broker,
  type CallOptions,
  type Delivery,
  maxInstant,
  type Message,
  type NackResult,
  type NormalizedPolicy,
  normalizePolicy,
  type Policy,
  type PublishOptions,
  QueueError,
  type Receipt,
  retryDelay,
  type TimeSource,
  validatePolicy,
} from "../../mod.ts";

interface Entry {
  readonly message: Message;
  visibleAt: number;
  deliveries: number;
  /** The receipt of the lease that is held, absent while it waits. */
  receipt?: Receipt;
}

interface Setup {
  readonly policy: Policy;
  readonly clock: TimeSource;
  readonly random: () => number;
}

function refuse(field: string): never {
  throw new QueueError("QUEUE_MISCONFIGURED", `Cannot accept the call: this broker cannot honour that "${field}"`, {
    fields: { field },
  });
}

/** The broker. */
export class ReferenceBroker implements Broker {
  readonly #policy: NormalizedPolicy;
  readonly #clock: TimeSource;
  readonly #random: () => number;
  readonly #issued = new Set<string>();
  #entries: Entry[] = [];
  #count = 0;

  constructor({ policy, clock, random }: Setup) {
    validatePolicy(policy);
    this.#policy = normalizePolicy(policy);
    if (this.#policy.maxAge > 0) refuse("policy.maxAge");
    if (this.#policy.deadLetterRetention > 0) refuse("policy.deadLetterRetention");
    this.#clock = clock;
    this.#random = random;
  }

  // deno-lint-ignore require-await
  async publish(payload: Uint8Array, options: PublishOptions = {}): Promise<Message> {
    options.signal?.throwIfAborted();
    for (const field of ["headers", "at", "priority"] as const) if (options[field] !== undefined) refuse(field);
    if (!(payload instanceof Uint8Array)) throw new TypeError("Cannot publish: expected a Uint8Array");
    const [size, max] = [payload.length, this.#policy.maxMessageBytes];
    if (size > max) throw new QueueError("MESSAGE_TOO_LARGE", undefined, { fields: { field: "payload", size, max } });
    const now = this.#now();
    const headers = Object.freeze(Object.create(null));
    const message = { id: `message ${++this.#count}`, enqueuedAt: new Date(now), payload, headers };
    this.#entries.push({ message: { ...message, payload: Uint8Array.from(payload) }, visibleAt: now, deliveries: 0 });
    return message;
  }

  // deno-lint-ignore require-await
  async receive(max: number, options: CallOptions = {}): Promise<Delivery[]> {
    if (!Number.isInteger(max) || max <= 0) {
      throw new QueueError("INVALID_BATCH_SIZE", undefined, { fields: { field: "max" } });
    }
    options.signal?.throwIfAborted();
    const now = this.#now();
    const expiresAt = now + this.#policy.visibilityTimeout;
    if (expiresAt > maxInstant) refuse("clock");
    this.#reclaim(now);
    // The array is in order of publication and the sort is stable, which breaks ties of visibility.
    const visible = this.#entries.filter((entry) => entry.receipt === undefined && entry.visibleAt <= now)
      .sort((a, b) => a.visibleAt - b.visibleAt || Number(a.deliveries > 0) - Number(b.deliveries > 0));
    return visible.slice(0, max).map((entry) => this.#lease(entry, expiresAt));
  }

  // deno-lint-ignore require-await
  async ack(receipt: Receipt, options: CallOptions = {}): Promise<void> {
    options.signal?.throwIfAborted();
    const held = this.#held(receipt);
    this.#entries = this.#entries.filter((entry) => entry !== held);
  }

  // deno-lint-ignore require-await
  async nack(receipt: Receipt, _cause?: unknown, options: CallOptions = {}): Promise<NackResult> {
    options.signal?.throwIfAborted();
    const entry = this.#held(receipt);
    const { deliveries } = entry;
    if (deliveries >= this.#policy.maxDeliveries) {
      this.#entries = this.#entries.filter((other) => other !== entry);
      return { deliveries, deadLettered: true };
    }
    entry.receipt = undefined;
    entry.visibleAt = this.#now() + retryDelay(this.#policy, deliveries, this.#random);
    return { deliveries, visibleAt: new Date(entry.visibleAt), deadLettered: false };
  }

  #now(): number {
    const now = Math.floor(this.#clock.now());
    return now >= 0 && now <= maxInstant ? now : refuse("clock");
  }

  #lease(entry: Entry, expiresAt: number): Delivery {
    const receipt = crypto.randomUUID() as string as Receipt;
    this.#issued.add(receipt);
    entry.receipt = receipt;
    entry.visibleAt = expiresAt;
    entry.deliveries++;
    const message = { ...entry.message, payload: entry.message.payload.slice() };
    return { lease: { receipt, expiresAt: new Date(expiresAt) }, message, deliveries: entry.deliveries, priority: 0 };
  }

  #reclaim(now: number): void {
    const { maxDeliveries } = this.#policy;
    for (const entry of this.#entries) {
      if (entry.receipt === undefined || entry.visibleAt > now) continue;
      entry.receipt = undefined;
      entry.visibleAt = now;
      if (entry.deliveries >= maxDeliveries) entry.deliveries = Infinity;
    }
    this.#entries = this.#entries.filter((entry) => entry.deliveries !== Infinity);
  }

  #held(receipt: Receipt): Entry {
    const entry = this.#entries.find((candidate) => candidate.receipt === receipt);
    if (entry !== undefined && entry.visibleAt > this.#now()) return entry;
    throw new QueueError(this.#issued.has(receipt) ? "LEASE_EXPIRED" : "UNKNOWN_RECEIPT");
  }
}
