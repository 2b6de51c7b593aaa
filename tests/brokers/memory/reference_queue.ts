/**
 * The rules of a queue written down as plainly as possible: arrays that are filtered and sorted at every call. What the
 * memory broker does is compared with it.
 *
 * @module
 */

import type { NormalizedPolicy, Priority } from "../../../src/core/mod.ts";

export interface ReferenceMessage {
  id: string;
  enqueuedAt: number;
  payload: Uint8Array;
  priority: Priority;
  visibleAt: number;
  /** Whether it was ever seen to be visible; from then on a clock that steps back does not hide it. */
  visible: boolean;
  deliveries: number;
  lastFailure?: { reason: string; code: number };
  lease?: { receipt: string; deadline: number };
}

export interface ReferenceDead {
  id: string;
  enqueuedAt: number;
  payload: Uint8Array;
  priority: Priority;
  deliveries: number;
  failedAt: number;
  reason: string;
  code: number;
  trail: number[];
}

const expiredCode = 136971;

export class ReferenceQueue {
  readonly policy: NormalizedPolicy;
  live: ReferenceMessage[] = [];
  dead: ReferenceDead[] = [];
  onceKeys: Map<string, number> = new Map<string, number>();
  lastSweep: number = -Infinity;
  sweepBefore: number = -Infinity;

  constructor(policy: NormalizedPolicy) {
    this.policy = policy;
  }

  add(message: ReferenceMessage, now: number): void {
    message.visible = message.visibleAt <= now;
    this.live.push(message);
  }

  see(now: number): void {
    for (const message of this.live) {
      if (message.lease === undefined && message.visibleAt <= now) message.visible = true;
    }
  }

  ready(): ReferenceMessage[] {
    const order = (a: ReferenceMessage, b: ReferenceMessage) =>
      b.priority - a.priority || a.visibleAt - b.visibleAt || Math.min(a.deliveries, 1) - Math.min(b.deliveries, 1) ||
      (a.id < b.id ? -1 : 1);
    return this.live.filter((message) => message.lease === undefined && message.visible).sort(order);
  }

  /** Returns what is leased, in order; the caller fills in the receipts. */
  receive(max: number, now: number): ReferenceMessage[] {
    this.sweep(now);
    for (const message of [...this.live]) {
      if (message.lease === undefined || message.lease.deadline > now) continue;
      message.lease = undefined;
      if (message.deliveries >= this.policy.maxDeliveries) this.bury(message, "LEASE_EXPIRED", 0, [], now);
      else {
        message.lastFailure = { reason: "LEASE_EXPIRED", code: 0 };
        message.visibleAt = now;
        message.visible = true;
      }
    }
    this.see(now);
    const taken: ReferenceMessage[] = [];
    for (const message of this.ready()) {
      if (taken.length === max) break;
      if (this.isExpired(message, now)) {
        const code = message.lastFailure?.code ?? 0;
        this.bury(message, "MESSAGE_EXPIRED", expiredCode, code === 0 ? [] : [code], now);
        continue;
      }
      message.deliveries++;
      message.lease = { receipt: "", deadline: now + this.policy.visibilityTimeout };
      taken.push(message);
    }
    return taken;
  }

  isExpired(message: { enqueuedAt: number }, now: number): boolean {
    return this.policy.maxAge > 0 && now - message.enqueuedAt >= this.policy.maxAge;
  }

  /** One sweep a minute finds what is old; every receive removes at most 100 of it. */
  sweep(now: number): void {
    const { deadLetterRetention } = this.policy;
    if (deadLetterRetention === 0) return;
    if (Math.abs(now - this.lastSweep) >= 60_000) {
      this.lastSweep = now;
      this.sweepBefore = now - deadLetterRetention;
    }
    const old = byId(this.dead.filter((dead) => dead.failedAt < this.sweepBefore));
    for (const dead of old.sort((a, b) => a.failedAt - b.failedAt).slice(0, 100)) {
      this.dead.splice(this.dead.indexOf(dead), 1);
    }
    if (old.length < 100) this.sweepBefore = -Infinity;
  }

  /** A reservation whose end was seen is gone, wherever the clock steps afterwards. */
  reserve(key: string, end: number, now: number): void {
    for (const [reserved, ended] of this.onceKeys) if (ended <= now) this.onceKeys.delete(reserved);
    this.onceKeys.set(key, end);
  }

  holder(receipt: string, now: number): ReferenceMessage | undefined {
    return this.live.find((message) => message.lease?.receipt === receipt && message.lease.deadline > now);
  }

  remove(message: ReferenceMessage): void {
    this.live.splice(this.live.indexOf(message), 1);
  }

  fail(message: ReferenceMessage, reason: string, code: number, delay: number, now: number): boolean {
    message.lease = undefined;
    if (message.deliveries >= this.policy.maxDeliveries) {
      this.bury(message, reason, code, [], now);
      return true;
    }
    message.lastFailure = { reason, code };
    message.visibleAt = now + delay;
    message.visible = delay === 0;
    return false;
  }

  release(message: ReferenceMessage, delay: number, now: number): void {
    message.lease = undefined;
    message.deliveries--;
    message.visibleAt = delay > 0 ? now + delay : Math.min(message.enqueuedAt, now);
    message.visible = delay === 0;
  }

  bury(message: ReferenceMessage, reason: string, code: number, trail: number[], now: number): void {
    this.remove(message);
    const { id, enqueuedAt, payload, priority, deliveries } = message;
    this.dead.push({ id, enqueuedAt, payload, priority, deliveries, failedAt: now, reason, code, trail });
  }

  replay(dead: ReferenceDead, now: number): void {
    this.dead.splice(this.dead.indexOf(dead), 1);
    const { id, enqueuedAt, payload, priority } = dead;
    this.add({ id, enqueuedAt, payload, priority, visibleAt: now, visible: true, deliveries: 0 }, now);
  }

  untilReceivable(now: number): number | undefined {
    const waits = this.live.map((message) => {
      if (message.lease !== undefined) return Math.max(0, message.lease.deadline - now);
      return message.visible ? 0 : Math.max(0, message.visibleAt - now);
    });
    return waits.length === 0 ? undefined : Math.min(...waits);
  }
}

export function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => a.id < b.id ? -1 : 1);
}
