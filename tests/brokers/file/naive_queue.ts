/**
 * The rules of a queue directory written down as plainly as possible: one list that is filtered and sorted at every call.
 *
 * What it leaves open, because the broker does: which ids are minted (they are told to it), and the text of receipts.
 */

import type { NormalizedPolicy } from "../../../src/core/policy.ts";
import type { Priority } from "../../../src/core/priority.ts";
import { retryDelay } from "../../../src/core/retry.ts";
import type { LastFailure } from "../../../src/core/values.ts";

export interface NaiveMessage {
  readonly id: string;
  readonly text: string;
  readonly enqueuedAt: number;
  readonly priority: Priority;
  visibleAt: number;
  /** Whether it waits among what is visible whatever the clock says. */
  ready: boolean;
  deliveries: number;
  lastFailure: LastFailure | undefined;
  lease: { receipt: string; deadline: number } | undefined;
}

export interface NaiveLetter {
  readonly id: string;
  readonly text: string;
  readonly enqueuedAt: number;
  readonly priority: Priority;
  readonly deliveries: number;
  readonly failedAt: number;
  readonly reason: string;
  readonly code: number;
}

export type Settled = "ok" | "LEASE_EXPIRED" | "DEAD_LETTER_NOT_FOUND" | "MESSAGE_EXPIRED";

const byId = (a: { id: string }, b: { id: string }) => a.id < b.id ? -1 : 1;

export class NaiveQueue {
  readonly policy: NormalizedPolicy;
  live: NaiveMessage[] = [];
  dead: NaiveLetter[] = [];
  readonly keys: Map<string, number> = new Map();

  constructor(policy: NormalizedPolicy) {
    this.policy = policy;
  }

  add(
    message: Pick<NaiveMessage, "id" | "text" | "enqueuedAt" | "visibleAt" | "priority" | "deliveries">,
    now: number,
  ): void {
    this.live.push({ ...message, ready: message.visibleAt <= now, lastFailure: undefined, lease: undefined });
  }

  /** Reserves a key; whether it was free. */
  reserve(key: string, window: number, now: number): boolean {
    if ((this.keys.get(key) ?? 0) > now) return false;
    this.keys.set(key, now + window);
    return true;
  }

  /** Takes back the leases that lapsed. */
  reclaim(now: number): void {
    for (const message of [...this.live]) {
      if (message.lease === undefined || message.lease.deadline > now) continue;
      message.lease = undefined;
      if (message.deliveries >= this.policy.maxDeliveries) {
        this.#bury(message, "LEASE_EXPIRED", 0, now);
        continue;
      }
      Object.assign(message, { visibleAt: now, ready: true, lastFailure: { reason: "LEASE_EXPIRED", code: 0 } });
    }
  }

  /** What is visible, in the order of delivery. */
  due(now: number): NaiveMessage[] {
    const waiting = this.live.filter((message) => {
      return message.lease === undefined && (message.ready || message.visibleAt <= now);
    });
    return waiting.sort((a, b) =>
      b.priority - a.priority || a.visibleAt - b.visibleAt || Math.sign(a.deliveries) - Math.sign(b.deliveries) ||
      byId(a, b)
    );
  }

  isExpired(message: NaiveMessage, now: number): boolean {
    return this.policy.maxAge > 0 && now - message.enqueuedAt >= this.policy.maxAge;
  }

  expire(message: NaiveMessage, now: number): void {
    this.#bury(message, "MESSAGE_EXPIRED", 136971, now);
  }

  lease(id: string, receipt: string, now: number): NaiveMessage {
    const message = this.live.find((message) => message.id === id)!;
    message.deliveries++;
    message.lease = { receipt, deadline: now + this.policy.visibilityTimeout };
    return message;
  }

  ack(receipt: string, now: number): Settled {
    const message = this.#held(receipt, now);
    if (message === undefined) return "LEASE_EXPIRED";
    this.live.splice(this.live.indexOf(message), 1);
    return "ok";
  }

  nack(receipt: string, failure: LastFailure, now: number, delay?: number): Settled {
    const message = this.#held(receipt, now);
    if (message === undefined) return "LEASE_EXPIRED";
    message.lease = undefined;
    if (message.deliveries >= this.policy.maxDeliveries) {
      this.#bury(message, failure.reason, failure.code, now);
      return "ok";
    }
    const visibleAt = now + (delay ?? retryDelay(this.policy, message.deliveries, () => 0));
    Object.assign(message, { visibleAt, ready: visibleAt <= now, lastFailure: failure });
    return "ok";
  }

  reject(receipt: string, failure: LastFailure, now: number): Settled {
    const message = this.#held(receipt, now);
    if (message === undefined) return "LEASE_EXPIRED";
    this.#bury(message, failure.reason, failure.code, now);
    return "ok";
  }

  release(receipt: string, delay: number, now: number): Settled {
    const message = this.#held(receipt, now);
    if (message === undefined) return "LEASE_EXPIRED";
    message.lease = undefined;
    message.deliveries--;
    message.ready = delay === 0;
    message.visibleAt = delay === 0 ? message.enqueuedAt : now + delay;
    return "ok";
  }

  extend(receipt: string, renewed: () => string, by: number, now: number): Settled {
    const message = this.#held(receipt, now);
    if (message === undefined) return "LEASE_EXPIRED";
    message.lease = { receipt: renewed(), deadline: now + by };
    return "ok";
  }

  replay(id: string, now: number): Settled {
    const letter = this.dead.find((letter) => letter.id === id);
    if (letter === undefined) return "DEAD_LETTER_NOT_FOUND";
    if (this.policy.maxAge > 0 && now - letter.enqueuedAt >= this.policy.maxAge) return "MESSAGE_EXPIRED";
    this.dead.splice(this.dead.indexOf(letter), 1);
    this.add({ ...letter, visibleAt: now, deliveries: 0 }, now);
    return "ok";
  }

  replayMany(max: number, now: number): number {
    let done = 0;
    for (const { id } of this.dead.sort(byId).slice()) {
      if (done < max && this.replay(id, now) === "ok") done++;
    }
    return done;
  }

  delete(id: string): Settled {
    const at = this.dead.findIndex((letter) => letter.id === id);
    if (at < 0) return "DEAD_LETTER_NOT_FOUND";
    this.dead.splice(at, 1);
    return "ok";
  }

  purgeDead(before: number, max: number): number {
    const doomed = this.dead.sort(byId).filter(({ failedAt }) => failedAt < before).slice(0, max);
    this.dead = this.dead.filter((letter) => !doomed.includes(letter));
    return doomed.length;
  }

  sweep(now: number): void {
    this.dead = this.dead.filter(({ failedAt }) => now - failedAt <= this.policy.deadLetterRetention);
  }

  purge(): { queued: number; leased: number } {
    const leased = this.live.filter(({ lease }) => lease !== undefined).length;
    const queued = this.live.length - leased;
    this.live = [];
    return { queued, leased };
  }

  stats(now: number): Record<string, unknown> {
    const waiting = this.live.filter(({ lease }) => lease === undefined);
    const ready = waiting.filter((message) => message.ready || message.visibleAt <= now).length;
    const least = (instants: number[]) => instants.length === 0 ? undefined : new Date(Math.min(...instants));
    return {
      ready,
      delayed: waiting.length - ready,
      queued: waiting.length,
      leased: this.live.length - waiting.length,
      dead: this.dead.length,
      oldestEnqueuedAt: least(this.live.map(({ enqueuedAt }) => enqueuedAt)),
      nextDueAt: least(waiting.map(({ visibleAt }) => visibleAt)),
    };
  }

  #held(receipt: string, now: number): NaiveMessage | undefined {
    return this.live.find(({ lease }) => lease?.receipt === receipt && lease.deadline > now);
  }

  #bury(message: NaiveMessage, reason: string, code: number, now: number): void {
    this.live.splice(this.live.indexOf(message), 1);
    const { id, text, enqueuedAt, priority, deliveries } = message;
    this.dead.push({ id, text, enqueuedAt, priority, deliveries, failedAt: now, reason, code });
  }
}
