/**
 * The broker over a directory: checks, then hands each call to the part that does it.
 *
 * @module
 */

import type { CallOptions } from "../../core/call.ts";
import type { MaxOptions, PageOptions, PurgeDeadLettersOptions } from "../../core/capabilities/dead_letters.ts";
import type { ListOptions } from "../../core/capabilities/inspect.ts";
import type { ReleaseOptions } from "../../core/capabilities/lease.ts";
import type { CompleteBroker } from "../../core/capabilities/mod.ts";
import type { PublishItem, PublishOnceResult, PublishOptions } from "../../core/capabilities/publish.ts";
import type { WatchOptions } from "../../core/capabilities/wake.ts";
import type { TimeSource } from "../../core/clock.ts";
import { QueueError } from "../../core/error.ts";
import { IdMint } from "../../core/ids.ts";
import {
  checkBatchSize,
  instantAfter,
  readClock,
  readDuration,
  readInstant,
  refuseArgument,
} from "../../core/instants.ts";
import type { NormalizedPolicy } from "../../core/policy.ts";
import type { Priority } from "../../core/priority.ts";
import { type Publication, resolveBatch, resolveOnce, resolvePublication } from "../../core/publication.ts";
import { resolveDeadLetter, resolveLiveMessage } from "../../core/records.ts";
import { retryDelay } from "../../core/retry.ts";
import type {
  AckOutcome,
  DeadLetter,
  Delivery,
  Lease,
  LiveMessage,
  Message,
  NackResult,
  PurgeResult,
  Receipt,
  Stats,
  Wake,
} from "../../core/values.ts";
import type { Submission } from "./committer.ts";
import { DeadLetters } from "./dead_letters.ts";
import { FolderRemover } from "./folder_remover.ts";
import { describeFileError } from "./failures.ts";
import { Leasing } from "./leasing.ts";
import { Listing } from "./listing.ts";
import { publishReserved } from "./once_publication.ts";
import type { QueueDirectory } from "./queue_directory.ts";
import { Retention } from "./retention.ts";
import { Settling } from "./settling.ts";

/** A queue in a directory; every capability but AckPublisher, which one rename cannot give. */
export type FileBroker = CompleteBroker;

/** What a file broker is made of. */
export interface FileBrokerParts {
  readonly directory: QueueDirectory;
  readonly policy: NormalizedPolicy;
  readonly clock: TimeSource;
  readonly random: () => number;
  /** Called once, when the broker was closed. */
  readonly onClosed: () => void;
}

/** The broker; `newFile` makes it. */
export class DirectoryBroker implements CompleteBroker {
  readonly policy: NormalizedPolicy;
  readonly #directory: QueueDirectory;
  readonly #clock: TimeSource;
  readonly #random: () => number;
  readonly #onClosed: () => void;
  readonly #mint = new IdMint();
  readonly #leasing: Leasing;
  readonly #settling: Settling;
  readonly #dead: DeadLetters;
  readonly #listing: Listing;
  readonly #retention: Retention;
  readonly #watches = new Set<() => void>();
  /** How many calls are under way. */
  #running = 0;
  #rested: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  constructor({ directory, policy, clock, random, onClosed }: FileBrokerParts) {
    this.policy = policy;
    this.#directory = directory;
    this.#clock = clock;
    this.#random = random;
    this.#onClosed = onClosed;
    this.#leasing = new Leasing(directory, policy);
    this.#settling = new Settling(directory, policy, clock, this.#leasing);
    this.#dead = new DeadLetters(directory, policy);
    this.#listing = new Listing(directory);
    this.#retention = new Retention(directory.operations, directory.dead, policy.deadLetterRetention);
  }

  publish(payload: Uint8Array, options?: PublishOptions): Promise<Message> {
    return this.#call("publish", options, async () => {
      const now = readClock(this.#clock);
      return await this.#commit(resolvePublication(payload, options, this.policy, now), now);
    });
  }

  publishAt(payload: Uint8Array, at: Date, options?: Omit<PublishOptions, "at">): Promise<Message> {
    return this.#call("publish", options, async () => {
      const now = readClock(this.#clock);
      readInstant(at, "at");
      return await this.#commit(resolvePublication(payload, { ...options, at }, this.policy, now), now);
    });
  }

  publishPriority(
    payload: Uint8Array,
    priority: Priority,
    options?: Omit<PublishOptions, "priority">,
  ): Promise<Message> {
    // A level that is absent is a mistake here, not the default.
    const level = priority ?? NaN as Priority;
    return this.publish(payload, { ...options, priority: level });
  }

  publishMany(items: Iterable<Uint8Array | PublishItem>, options?: CallOptions): Promise<Message[]> {
    return this.#call("publish", options, async () => {
      const now = readClock(this.#clock);
      const submissions = resolveBatch(items, this.policy, now).map((publication) =>
        this.#submission(publication, now)
      );
      const messages = submissions.map(toMessage);
      const progress = { done: 0 };
      try {
        await this.#directory.committer.submit(submissions, progress);
      } catch (error) {
        throw describeFileError(error, "publish", messages.slice(0, progress.done));
      }
      return messages;
    });
  }

  publishOnce(
    key: string,
    payload: Uint8Array,
    window: number,
    options?: PublishOptions,
  ): Promise<PublishOnceResult> {
    return this.#call("publish once", options, async () => {
      const now = readClock(this.#clock);
      const end = resolveOnce(key, window, now);
      const submission = this.#submission(resolvePublication(payload, options, this.policy, now), now);
      const published = await publishReserved(this.#directory, { key, end, now, submission });
      return published ? { published, message: toMessage(submission) } : { published };
    });
  }

  receive(max: number, options?: CallOptions): Promise<Delivery[]> {
    return this.#paced("receive", options, async () => {
      const now = readClock(this.#clock);
      const deadline = instantAfter(now, this.policy.visibilityTimeout, "clock");
      await this.#retention.sweep(now);
      return await this.#leasing.receive(max, now, deadline);
    }, () => checkBatchSize(max));
  }

  ack(receipt: Receipt, options?: CallOptions): Promise<void> {
    return this.#paced("acknowledge", options, () => this.#settling.ack(receipt));
  }

  ackMany(receipts: readonly Receipt[], options?: CallOptions): Promise<AckOutcome[]> {
    return this.#paced("acknowledge", options, () => this.#settling.ackMany(receipts));
  }

  nack(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<NackResult> {
    return this.#paced(
      "hand back",
      options,
      () => this.#settling.nack(receipt, cause, (deliveries) => retryDelay(this.policy, deliveries, this.#random)),
    );
  }

  nackAfter(receipt: Receipt, cause: unknown, delay: number, options?: CallOptions): Promise<NackResult> {
    return this.#paced("hand back", options, () => {
      const wait = Math.max(0, readDuration(delay, "delay"));
      instantAfter(readClock(this.#clock), wait, "delay");
      return this.#settling.nack(receipt, cause, () => wait);
    });
  }

  reject(receipt: Receipt, cause?: unknown, options?: CallOptions): Promise<void> {
    return this.#paced("reject", options, () => this.#settling.reject(receipt, cause));
  }

  release(receipt: Receipt, options?: ReleaseOptions): Promise<void> {
    return this.#paced("release", options, () => {
      const delay = Math.max(0, readDuration(options?.delay ?? 0, "delay"));
      return this.#settling.release(receipt, delay);
    });
  }

  extend(receipt: Receipt, by: number, options?: CallOptions): Promise<Lease> {
    return this.#paced("extend", options, () => {
      const length = readDuration(by, "by");
      if (length <= 0) refuseArgument("by", by, "more than 0 ms");
      return this.#settling.extend(receipt, length);
    });
  }

  deadLetters(options: MaxOptions): Promise<DeadLetter[]> {
    return this.deadLettersAfter(options);
  }

  deadLettersAfter(options: PageOptions): Promise<DeadLetter[]> {
    return this.#paced(
      "read dead letters",
      options,
      () => this.#dead.page(options.after ?? "", options.max, options.signal),
      () => checkBatchSize(options?.max),
    );
  }

  replayDeadLetter(id: string, options?: CallOptions): Promise<void> {
    return this.#paced("replay a dead letter", options, () => this.#dead.replay(id, readClock(this.#clock)));
  }

  deleteDeadLetter(id: string, options?: CallOptions): Promise<void> {
    return this.#paced("delete a dead letter", options, () => this.#dead.delete(id));
  }

  replayDeadLetters(options: MaxOptions): Promise<number> {
    return this.#paced(
      "replay dead letters",
      options,
      () => this.#dead.replayMany(options.max, readClock(this.#clock), options.signal),
      () => checkBatchSize(options?.max),
    );
  }

  purgeDeadLetters(options: PurgeDeadLettersOptions): Promise<number> {
    return this.#paced(
      "purge dead letters",
      options,
      () => this.#dead.purge(readInstant(options.before, "before"), options.max, options.signal),
      () => checkBatchSize(options?.max),
    );
  }

  putDeadLetter(dead: DeadLetter, options?: CallOptions): Promise<string> {
    return this.#call("write a dead letter", options, async () => {
      const record = resolveDeadLetter(dead, this.policy);
      const id = this.#mint.at(record.enqueuedAt);
      await this.#directory.dead.bury([{ id, record }]);
      return id;
    });
  }

  messages(options: PageOptions): Promise<LiveMessage[]> {
    return this.#paced(
      "list messages",
      options,
      () => this.#listing.page(options.after ?? "", options.max, options.signal),
      () => checkBatchSize(options?.max),
    );
  }

  async *allMessages(options?: ListOptions): AsyncIterableIterator<LiveMessage> {
    this.#checkOpen();
    options?.signal?.throwIfAborted();
    try {
      for await (const live of this.#listing.all(options?.after ?? "", options?.signal)) {
        yield live;
        this.#checkOpen();
      }
    } catch (error) {
      throw describeFileError(error, "list messages");
    }
  }

  putMessage(live: LiveMessage, options?: CallOptions): Promise<string> {
    return this.#call("write a message", options, async () => {
      const record = resolveLiveMessage(live, this.policy);
      const id = this.#mint.at(record.enqueuedAt);
      const delayed = record.visibleAt > readClock(this.#clock);
      await this.#directory.committer.submit([{ ...record, id, delayed }]);
      return id;
    });
  }

  stats(options?: CallOptions): Promise<Stats> {
    return this.#paced("count", options, () => this.#listing.stats(readClock(this.#clock), options?.signal));
  }

  purge(options?: CallOptions): Promise<PurgeResult> {
    return this.#paced("purge", options, async () => {
      const result = await this.#listing.purge(options?.signal);
      this.#directory.forgetEntries();
      this.#directory.announce();
      return result;
    });
  }

  wake(): Wake {
    this.#checkOpen();
    const signal = this.#directory.wake.signal();
    if (this.#leasing.cutShort) return { signal, scheduled: true, in: 0 };
    const due = this.#directory.nextDue();
    return due === undefined
      ? { signal, scheduled: false, in: 0 }
      : { signal, scheduled: true, in: due - readClock(this.#clock) };
  }

  watch(options: WatchOptions = {}): AsyncDisposable {
    this.#checkOpen();
    const unlisten = this.#directory.listen(options.onEvent);
    const release = this.#directory.hold();
    const end = () => {
      release();
      unlisten();
      this.#watches.delete(end);
      options.signal?.removeEventListener("abort", end);
    };
    this.#watches.add(end);
    options.signal?.addEventListener("abort", end, { once: true });
    if (options.signal?.aborted) end();
    return { [Symbol.asyncDispose]: () => Promise.resolve(end()) };
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    for (const end of [...this.#watches]) end();
    // Whoever waits on the wake looks again, and finds the broker closed.
    this.#directory.wake.fire();
    // Its own calls only: another broker on the directory may never rest.
    if (this.#running > 0) await new Promise<void>((resolve) => this.#rested = resolve);
    await this.#directory.leases.idle();
    const { operations, root } = this.#directory;
    const remover = FolderRemover.of(operations);
    remover.forget(root);
    this.#onClosed();
    await remover.idle(root);
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new QueueError("QUEUE_CLOSED");
  }

  /** What every call has in common: the order of its first checks and how a refusal of the file system is told. */
  async #call<T>(
    operation: string,
    options: CallOptions | undefined,
    run: () => T | Promise<T>,
    check: () => void = () => {},
  ): Promise<T> {
    this.#checkOpen();
    check();
    const { signal } = options ?? {};
    if (signal?.aborted) throw signal.reason;
    this.#running++;
    try {
      return await run();
    } catch (error) {
      throw signal?.aborted && error === signal.reason ? error : describeFileError(error, operation);
    } finally {
      if (--this.#running === 0) this.#rested?.();
    }
  }

  /**
   * A call that waits for its turn when many are made at once. Not a publish: its place in the order is that of its call,
   * and what it writes is gathered.
   */
  #paced<T>(
    operation: string,
    options: CallOptions | undefined,
    run: () => T | Promise<T>,
    check?: () => void,
  ): Promise<T> {
    const { slices } = this.#directory;
    return this.#call(operation, options, async () => {
      if (slices.isOver) {
        await slices.giveWay();
        options?.signal?.throwIfAborted();
      }
      return await run();
    }, check);
  }

  async #commit(publication: Publication, now: number): Promise<Message> {
    const submission = this.#submission(publication, now);
    await this.#directory.committer.submit([submission]);
    return toMessage(submission);
  }

  #submission(publication: Publication, now: number): Submission {
    const delayed = publication.visibleAt > now;
    return { ...publication, id: this.#mint.next(now), enqueuedAt: now, deliveries: 0, delayed };
  }
}

function toMessage({ id, enqueuedAt, payload, headers }: Submission): Message {
  return { id, enqueuedAt: new Date(enqueuedAt), payload, headers };
}
