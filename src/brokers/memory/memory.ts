/**
 * The memory broker.
 *
 * @module
 */

import {
  AckOutcome,
  type AckPublisher,
  type CallOptions,
  checkBatchSize,
  type CompleteBroker,
  type DeadLetter,
  type Delivery,
  instantAfter,
  type Lease,
  type ListOptions,
  type LiveMessage,
  type MaxOptions,
  type Message,
  type NackResult,
  type NormalizedPolicy,
  type PageOptions,
  type Policy,
  type Priority,
  type PublishItem,
  type PublishOnceResult,
  type PublishOptions,
  type PurgeDeadLettersOptions,
  type PurgeResult,
  QueueError,
  readClock,
  readDuration,
  readInstant,
  type Receipt,
  recordFailure,
  refuseArgument,
  type ReleaseOptions,
  resolveBatch,
  resolveDeadLetter,
  resolveLiveMessage,
  resolveOnce,
  resolvePolicy,
  resolvePublication,
  resolveSources,
  type Stats,
  type TimeSource,
  type Wake,
  WakeSource,
  type WatchOptions,
} from "../../core/mod.ts";
import { makeDeliveries } from "./deliveries.ts";
import { deathOf, type Entry } from "./entry.ts";
import type { HeldLease } from "./leases.ts";
import { copyPayload } from "./payload_slabs.ts";
import { type HandBack, MemoryStore } from "./store.ts";

/** What {@linkcode newMemory} takes. */
export interface MemoryConfig {
  /** How the queue treats its messages. */
  readonly policy: Policy;
  /**
   * Where instants come from; the broker only reads it.
   * @default {systemClock}
   */
  readonly clock?: TimeSource;
  /**
   * A number in [0, 1), drawn once for every jittered retry delay and for nothing else.
   * @default {Math.random}
   */
  readonly random?: () => number;
}

/** What {@linkcode newMemory} makes: a broker with every capability. */
export type MemoryBroker = CompleteBroker & AckPublisher;

/**
 * Makes a queue in memory: an honest double of the durable brokers. It refuses what they refuse, and its leases, delays
 * and dead letters follow the same rules. Nothing survives the process, and two of them are two queues.
 *
 * Making one draws nothing at random and sets no timer, so it may stand in the global scope of an edge worker. Every
 * call does its work before it returns its promise, at O(1) or O(log n); listing costs what it lists, `purge` what it
 * removes, and `purgeDeadLetters` one pass over the dead letters that it leaves alone.
 *
 * Payloads are copied in and out. Payloads of up to 1 KiB that one `receive` hands out may be views of one buffer: copy
 * one before you transfer its `buffer`.
 *
 * @param config The policy; a clock and a source of randomness for tests.
 * @returns A broker to use at once.
 * @throws {QueueError} `QUEUE_MISCONFIGURED` with `fields.field` naming what is wrong, such as `"policy.maxDeliveries"`.
 *
 * @example Publish, receive, acknowledge
 * ```ts
 * import { newMemory } from "jsr:@x/queue";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * await jobs.publish(new TextEncoder().encode("hello"));
 * const [delivery] = await jobs.receive(1);
 * await jobs.ack(delivery!.lease.receipt);
 * if ((await jobs.stats()).queued !== 0) throw new Error("It is gone");
 * ```
 */
export function newMemory(config: MemoryConfig): MemoryBroker {
  const policy = resolvePolicy(config?.policy);
  const { clock, random } = resolveSources(config);
  return new Memory(policy, clock, random);
}

class Memory implements MemoryBroker {
  readonly policy: NormalizedPolicy;
  readonly #clock: TimeSource;
  readonly #store: MemoryStore;
  readonly #wakes: WakeSource = new WakeSource();
  #closed = false;

  constructor(policy: NormalizedPolicy, clock: TimeSource, random: () => number) {
    this.policy = policy;
    this.#clock = clock;
    this.#store = new MemoryStore(policy, random);
  }

  publish(payload: Uint8Array, options?: PublishOptions): Promise<Message> {
    try {
      this.#admit(options?.signal);
      return Promise.resolve(this.#publish(payload, options));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  publishAt(payload: Uint8Array, at: Date, options?: Omit<PublishOptions, "at">): Promise<Message> {
    return this.#call(options, () => {
      readInstant(at, "at");
      return this.#publish(payload, { ...options, at });
    });
  }

  publishPriority(
    payload: Uint8Array,
    priority: Priority,
    options?: Omit<PublishOptions, "priority">,
  ): Promise<Message> {
    // A level that is absent is a mistake here, not the default.
    const level = priority ?? NaN as Priority;
    return this.#call(options, () => this.#publish(payload, { ...options, priority: level }));
  }

  publishOnce(
    key: string,
    payload: Uint8Array,
    window: number,
    options?: PublishOptions,
  ): Promise<PublishOnceResult> {
    return this.#call<PublishOnceResult>(options, () => {
      const now = readClock(this.#clock);
      const end = resolveOnce(key, window, now);
      const publication = resolvePublication(payload, options, this.policy, now);
      const keys = this.#store.onceKeys;
      if (keys.isReserved(key, now)) return { published: false };
      keys.reserve(key, end, now);
      const message = showPublished(this.#store.publish(publication, now), payload);
      this.#wakes.fire();
      return { published: true, message };
    });
  }

  publishMany(items: Iterable<Uint8Array | PublishItem>, options?: CallOptions): Promise<Message[]> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const publications = resolveBatch(items, this.policy, now);
      const messages = publications.map((one) => showPublished(this.#store.publish(one, now), one.payload));
      if (messages.length > 0) this.#wakes.fire();
      return messages;
    });
  }

  receive(max: number, options?: CallOptions): Promise<Delivery[]> {
    try {
      this.#requireOpen();
      checkBatchSize(max);
      this.#admit(options?.signal);
      const now = readClock(this.#clock);
      const deadline = instantAfter(now, this.policy.visibilityTimeout, "clock");
      return Promise.resolve(makeDeliveries(this.#store.receive(max, now, deadline)));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  ack(receipt: Receipt, options?: CallOptions): Promise<void> {
    try {
      this.#admit(options?.signal);
      this.#store.remove(this.#store.leases.require(receipt, readClock(this.#clock)));
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  ackMany(receipts: readonly Receipt[], options?: CallOptions): Promise<AckOutcome[]> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const outcomes: AckOutcome[] = [];
      for (const receipt of receipts) outcomes.push(this.#acknowledge(receipt, now));
      return outcomes;
    });
  }

  ackAndPublish(receipt: Receipt, payload: Uint8Array, options?: PublishOptions): Promise<Message> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const publication = resolvePublication(payload, options, this.policy, now);
      this.#store.remove(this.#store.leases.require(receipt, now));
      const message = showPublished(this.#store.publish(publication, now), payload);
      this.#wakes.fire();
      return message;
    });
  }

  nack(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<NackResult> {
    return this.#settle(receipt, options, (lease, now) => {
      return this.#handedBack(this.#store.fail(lease, recordFailure(cause), now));
    });
  }

  nackAfter(receipt: Receipt, cause: unknown, delay: number, options?: CallOptions): Promise<NackResult> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const wait = readDelay(delay, now);
      const lease = this.#store.leases.require(receipt, now);
      return this.#handedBack(this.#store.fail(lease, recordFailure(cause), now, wait));
    });
  }

  reject(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<void> {
    return this.#settle(receipt, options, (lease, now) => this.#store.reject(lease, recordFailure(cause), now));
  }

  release(receipt: Receipt, options?: ReleaseOptions): Promise<void> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const wait = readDelay(options?.delay ?? 0, now);
      this.#store.release(this.#store.leases.require(receipt, now), wait, now);
      this.#wakes.fire();
    });
  }

  extend(receipt: Receipt, by: number, options?: CallOptions): Promise<Lease> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      const length = readDuration(by, "by");
      if (length <= 0) refuseArgument("by", by, "more than 0 ms");
      const deadline = instantAfter(now, length, "by");
      const lease = this.#store.extend(this.#store.leases.require(receipt, now), deadline);
      return { receipt: lease.receipt, expiresAt: new Date(deadline) };
    });
  }

  deadLetters(options: MaxOptions): Promise<DeadLetter[]> {
    return this.#callWithMax(options?.max, options, () => this.#store.dead.page("", options.max).map(showDead));
  }

  deadLettersAfter(options: PageOptions): Promise<DeadLetter[]> {
    return this.#callWithMax(options?.max, options, () => {
      return this.#store.dead.page(options.after ?? "", options.max).map(showDead);
    });
  }

  replayDeadLetter(id: string, options?: CallOptions): Promise<void> {
    return this.#call(options, () => {
      const dead = this.#requireDead(id);
      const now = readClock(this.#clock);
      if (this.#store.isExpired(dead, now)) {
        throw new QueueError("MESSAGE_EXPIRED", "Cannot replay the dead letter: its message would expire at once");
      }
      this.#store.replay(dead, now);
      this.#wakes.fire();
    });
  }

  deleteDeadLetter(id: string, options?: CallOptions): Promise<void> {
    return this.#call(options, () => this.#store.dead.delete(this.#requireDead(id)));
  }

  replayDeadLetters(options: MaxOptions): Promise<number> {
    return this.#callWithMax(options?.max, options, () => {
      const now = readClock(this.#clock);
      const page = this.#store.dead.page("", options.max, (dead) => !this.#store.isExpired(dead, now));
      for (const dead of page) this.#store.replay(dead, now);
      if (page.length > 0) this.#wakes.fire();
      return page.length;
    });
  }

  purgeDeadLetters(options: PurgeDeadLettersOptions): Promise<number> {
    return this.#callWithMax(options?.max, options, () => {
      const before = readInstant(options.before, "before");
      const page = this.#store.dead.page("", options.max, (dead) => deathOf(dead).failedAt < before);
      for (const dead of page) this.#store.dead.delete(dead);
      return page.length;
    });
  }

  putDeadLetter(dead: DeadLetter, options?: CallOptions): Promise<string> {
    return this.#call(options, () => this.#store.putDead(resolveDeadLetter(dead, this.policy)));
  }

  putMessage(live: LiveMessage, options?: CallOptions): Promise<string> {
    return this.#call(options, () => {
      const record = resolveLiveMessage(live, this.policy);
      const id = this.#store.putLive(record, readClock(this.#clock));
      this.#wakes.fire();
      return id;
    });
  }

  messages(options: PageOptions): Promise<LiveMessage[]> {
    return this.#callWithMax(options?.max, options, () => {
      const page: LiveMessage[] = [];
      for (const entry of this.#store.live.from(options.after ?? "")) {
        page.push(showLive(entry, this.#store.leases.of(entry)));
        if (page.length === options.max) break;
      }
      return page;
    });
  }

  async *allMessages(options?: ListOptions): AsyncGenerator<LiveMessage, void, undefined> {
    let after = options?.after ?? "";
    while (true) {
      const live = await this.#call(options, () => {
        const entry = this.#store.live.next(after);
        return entry === undefined ? undefined : showLive(entry, this.#store.leases.of(entry));
      });
      if (live === undefined) return;
      after = live.message.id;
      yield live;
    }
  }

  stats(options?: CallOptions): Promise<Stats> {
    return this.#call(options, () => {
      const store = this.#store;
      const ready = store.countReady(readClock(this.#clock));
      const leased = store.leases.size;
      const queued = store.live.size - leased;
      const oldest = store.live.oldest();
      const next = store.nextVisible();
      return {
        ready,
        delayed: queued - ready,
        queued,
        leased,
        dead: store.dead.size,
        ...(oldest === undefined ? {} : { oldestEnqueuedAt: new Date(oldest) }),
        ...(next === undefined ? {} : { nextDueAt: new Date(next) }),
      };
    });
  }

  purge(options?: CallOptions): Promise<PurgeResult> {
    return this.#call(options, () => {
      const result = this.#store.purge();
      this.#wakes.fire();
      return result;
    });
  }

  wake(): Wake {
    this.#requireOpen();
    const wait = this.#store.untilReceivable(readClock(this.#clock));
    return { signal: this.#wakes.signal(), scheduled: wait !== undefined, in: wait ?? 0 };
  }

  /** No other process can reach this queue: there is nothing to watch. */
  watch(_options?: WatchOptions): AsyncDisposable {
    this.#requireOpen();
    return { [Symbol.asyncDispose]: () => Promise.resolve() };
  }

  close(): Promise<void> {
    if (!this.#closed) {
      this.#closed = true;
      this.#store.clear();
      this.#wakes.fire();
    }
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #requireOpen(): void {
    if (this.#closed) throw new QueueError("QUEUE_CLOSED", "Cannot use the queue: it has been closed");
  }

  #admit(signal: AbortSignal | undefined): void {
    this.#requireOpen();
    if (signal?.aborted) throw signal.reason;
  }

  /** Does the work at once; what it throws becomes a rejection. */
  #call<T>(options: CallOptions | undefined, work: () => T): Promise<T> {
    try {
      this.#admit(options?.signal);
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As `#call`, with a batch size, which is refused before the signal is looked at. */
  #callWithMax<T>(max: number, options: CallOptions | undefined, work: () => T): Promise<T> {
    try {
      this.#requireOpen();
      checkBatchSize(max);
    } catch (error) {
      return Promise.reject(error);
    }
    return this.#call(options, work);
  }

  #settle<T>(
    receipt: Receipt,
    options: CallOptions | undefined,
    work: (lease: HeldLease, now: number) => T,
  ): Promise<T> {
    return this.#call(options, () => {
      const now = readClock(this.#clock);
      return work(this.#store.leases.require(receipt, now), now);
    });
  }

  #publish(payload: Uint8Array, options: PublishOptions | undefined): Message {
    const now = readClock(this.#clock);
    const publication = resolvePublication(payload, options, this.policy, now);
    const entry = this.#store.publish(publication, now);
    this.#wakes.fire();
    return showPublished(entry, payload);
  }

  #acknowledge(receipt: Receipt, now: number): AckOutcome {
    const { leases } = this.#store;
    const lease = leases.find(receipt);
    if (lease !== undefined && now < lease.deadline) {
      this.#store.remove(lease);
      return AckOutcome.acknowledged;
    }
    return lease !== undefined || leases.hasIssued(receipt) ? AckOutcome.leaseExpired : AckOutcome.unknownReceipt;
  }

  #handedBack({ deliveries, visibleAt }: HandBack): NackResult {
    if (visibleAt === undefined) return { deliveries, deadLettered: true };
    this.#wakes.fire();
    return { deliveries, visibleAt: new Date(visibleAt), deadLettered: false };
  }

  #requireDead(id: string): Entry {
    const dead = this.#store.dead.find(id);
    if (dead !== undefined) return dead;
    throw new QueueError("DEAD_LETTER_NOT_FOUND", "Cannot find the dead letter: there is none under that id");
  }
}

/** A delay in whole ms from now; negative is read as 0, and one whose end cannot be recorded is refused. */
function readDelay(delay: number, now: number): number {
  const wait = Math.max(0, readDuration(delay, "delay"));
  instantAfter(now, wait, "delay");
  return wait;
}

/** A published message carries the caller's own buffer: a second copy would cost more than all the rest. */
function showPublished(entry: Entry, payload: Uint8Array): Message {
  return { id: entry.id, enqueuedAt: new Date(entry.enqueuedAt), payload, headers: entry.headers };
}

function showStored(entry: Entry): Message {
  const { id, enqueuedAt, headers } = entry;
  return { id, enqueuedAt: new Date(enqueuedAt), payload: copyPayload(entry), headers };
}

function showLive(entry: Entry, lease: HeldLease | undefined): LiveMessage {
  const { deliveries, priority } = entry;
  return {
    message: showStored(entry),
    visibleAt: new Date(lease === undefined ? entry.visibleAt : lease.deadline),
    deliveries,
    leased: lease !== undefined,
    priority,
  };
}

function showDead(dead: Entry): DeadLetter {
  const { deliveries, priority } = dead;
  const { failedAt, reason, cause, code, trail } = deathOf(dead);
  return {
    message: showStored(dead),
    failedAt: new Date(failedAt),
    reason,
    cause,
    code,
    ...(trail.length === 0 ? {} : { trail: [...trail] }),
    deliveries,
    priority,
  };
}
