/**
 * Counting.
 *
 * @module
 */

import type { Stats } from "../../core/values.ts";
import { equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { bury, lease, receiveNothing, receiveOne } from "../steps.ts";

const nothing: Stats = { ready: 0, delayed: 0, queued: 0, leased: 0, dead: 0 };

/** Counting. */
export const statsCases: readonly CaseDefinition[] = [
  {
    id: "stats-empty",
    title: "an empty queue counts nothing and names no instant",
    needs: ["Counter"],
    async run({ broker }) {
      equal(await broker.stats(), nothing, "The counts");
    },
  },
  {
    id: "stats-life",
    title: "a message is counted where it is",
    needs: ["Counter"],
    policy: { retryDelay: 5_000, maxDeliveries: 2 },
    async run({ broker, clock, pass }) {
      const start = new Date(clock.now());
      await broker.publish(bytes("work"));
      const waiting = { ...nothing, ready: 1, queued: 1, oldestEnqueuedAt: start, nextDueAt: start };
      equal(await broker.stats(), waiting, "The counts while it waits");
      const first = await receiveOne(broker);
      equal(await broker.stats(), { ...nothing, leased: 1, oldestEnqueuedAt: start }, "The counts while it is leased");
      pass(1_000);
      await broker.nack(first.lease.receipt);
      const nextDueAt = new Date(clock.now() + 5_000);
      const retried = { ...nothing, delayed: 1, queued: 1, oldestEnqueuedAt: start, nextDueAt };
      equal(await broker.stats(), retried, "The counts before its retry");
      pass(5_000);
      equal(await broker.stats(), { ...retried, ready: 1, delayed: 0 }, "The counts at its retry");
      await broker.nack((await receiveOne(broker)).lease.receipt);
      equal(await broker.stats(), { ...nothing, dead: 1 }, "The counts when it is dead");
    },
  },
  {
    id: "stats-acked",
    title: "what was acknowledged is not counted",
    needs: ["Counter"],
    async run({ broker }) {
      await broker.ack((await lease(broker)).lease.receipt);
      equal(await broker.stats(), nothing, "The counts");
    },
  },
  {
    id: "stats-lapsed",
    title: "a lapsed lease counts as leased until somebody reclaims it, and counting reclaims nothing",
    needs: ["Counter"],
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      await lease(broker);
      pass(60_000);
      for (let round = 0; round < 3; round++) {
        equal((await broker.stats()).leased, 1, "The leased ones after the lapse");
      }
      await receiveNothing(broker, "after the last attempt lapsed");
      const { leased, dead } = await broker.stats();
      equal([leased, dead], [0, 1], "The leased and dead ones after a receive");
    },
  },
  {
    id: "stats-deferred",
    title: "deferred ones count as delayed, and the earliest of all that wait is due next",
    needs: ["Counter", "at"],
    async run({ broker, clock, pass }) {
      const start = clock.now();
      await broker.publish(bytes("late"), { at: new Date(start + 9_000) });
      pass(1);
      await broker.publish(bytes("soon"), { at: new Date(start + 4_000) });
      equal(await broker.stats(), {
        ...nothing,
        delayed: 2,
        queued: 2,
        oldestEnqueuedAt: new Date(start),
        nextDueAt: new Date(start + 4_000),
      }, "The counts");
      pass(3_999);
      const { ready, delayed } = await broker.stats();
      equal([ready, delayed], [1, 1], "The ready and delayed ones at the first instant");
    },
  },
  {
    id: "stats-many",
    title: "hundreds in every state are counted",
    needs: ["Counter", "DeadLetterReader"],
    policy: { maxDeliveries: 1, retryDelay: 5_000 },
    async run({ broker }) {
      for (let index = 0; index < 5; index++) await bury(broker, "dead");
      await Promise.all(Array.from({ length: 600 }, () => broker.publish(bytes("work"))));
      equal((await broker.receive(250)).length, 250, "The number of messages leased");
      const { ready, delayed, queued, leased, dead } = await broker.stats();
      equal([ready, delayed, queued, leased, dead], [350, 0, 350, 250, 5], "The counts");
    },
  },
];
