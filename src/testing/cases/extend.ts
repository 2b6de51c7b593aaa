/**
 * Renewing leases.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import { equal, notEqual, refuses, rejectsWith } from "../assert.ts";
import type { CaseDefinition } from "../case.ts";
import { abortedSignal, asReceipt, lease, receiveNothing, receiveOne } from "../steps.ts";

/** Renewing leases. */
export const extendCases: readonly CaseDefinition[] = [
  {
    id: "extend-renews",
    title: "a renewed lease ends so long from now, to the tick, and its receipt acks",
    needs: ["LeaseExtender"],
    async run({ broker, clock, pass }) {
      const first = await lease(broker);
      pass(20_000);
      const renewed = await broker.extend(first.lease.receipt, 50_000);
      equal(renewed.expiresAt, new Date(clock.now() + 50_000), "The end of the renewed lease");
      notEqual(renewed.receipt, first.lease.receipt, "The renewed receipt");
      pass(49_999);
      await receiveNothing(broker, "past the first lease, one tick before the renewed one's end");
      await broker.ack(renewed.receipt);
      pass(60_000);
      await receiveNothing(broker, "after the ack");
    },
  },
  {
    id: "extend-lapses",
    title: "a renewed lease lapses at its end, and the count goes up by one",
    needs: ["LeaseExtender"],
    async run({ broker, pass }) {
      const first = await lease(broker);
      const renewed = await broker.extend(first.lease.receipt, 50_000);
      pass(50_000);
      await refuses(() => broker.ack(renewed.receipt), "LEASE_EXPIRED", "An ack at the renewed lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "extend-voids",
    title: "the old receipt is void at once, as an expired one",
    needs: ["LeaseExtender"],
    async run({ broker }) {
      const { lease: old } = await lease(broker);
      const renewed = await broker.extend(old.receipt, 30_000);
      await refuses(() => broker.ack(old.receipt), "LEASE_EXPIRED", "An ack with the old receipt");
      await refuses(() => broker.nack(old.receipt), "LEASE_EXPIRED", "A nack with the old receipt");
      await refuses(() => broker.extend(old.receipt, 30_000), "LEASE_EXPIRED", "Another renewal of the old receipt");
      await broker.ack(renewed.receipt);
    },
  },
  {
    id: "extend-heartbeat",
    title: "a lease that is renewed again and again is kept as long as one likes, as one delivery",
    needs: ["LeaseExtender"],
    async run({ broker, pass }) {
      let { lease: held } = await lease(broker);
      for (let beat = 0; beat < 30; beat++) {
        pass(29_000);
        held = await broker.extend(held.receipt, 30_000);
        await receiveNothing(broker, "while the lease is renewed");
      }
      equal((await broker.nack(held.receipt)).deliveries, 1, "The delivery count at the nack");
    },
  },
  {
    id: "extend-lapsed",
    title: "a lapsed lease is not renewed, though nobody took the message",
    needs: ["LeaseExtender"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      pass(30_000);
      await refuses(() => broker.extend(held.receipt, 30_000), "LEASE_EXPIRED", "A renewal at the lease's end");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "extend-settled",
    title: "a settled lease is not renewed, and nonsense is unknown",
    needs: ["LeaseExtender"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      await broker.ack(held.receipt);
      await refuses(() => broker.extend(held.receipt, 30_000), "LEASE_EXPIRED", "A renewal after the ack");
      await refuses(() => broker.extend(asReceipt("nonsense"), 30_000), "UNKNOWN_RECEIPT", "A renewal of nonsense");
    },
  },
  {
    id: "extend-argument",
    title: "a bad duration is refused before the receipt is looked at, and the lease stays",
    needs: ["LeaseExtender"],
    async run({ broker, clock }) {
      const { lease: held } = await lease(broker);
      const durations = [0, -1, 0.9, NaN, Infinity, -Infinity, "1000", maxInstant - clock.now() + 1];
      for (const by of durations) {
        for (const receipt of [held.receipt, asReceipt("nonsense")]) {
          const extend = () => broker.extend(receipt, by as number);
          await refuses(extend, "QUEUE_MISCONFIGURED", `A renewal by ${by}`, "by");
        }
      }
      await broker.ack(held.receipt);
    },
  },
  {
    id: "extend-largest",
    title: "the longest duration that can be recorded is accepted, and its receipt acks",
    needs: ["LeaseExtender"],
    async run({ broker, clock, pass }) {
      const { lease: held } = await lease(broker);
      const renewed = await broker.extend(held.receipt, maxInstant - clock.now());
      equal(renewed.expiresAt.getTime(), maxInstant, "The end of the renewed lease");
      pass(365 * 24 * 3_600_000);
      await receiveNothing(broker, "a year later");
      await broker.ack(renewed.receipt);
    },
  },
  {
    id: "extend-shortens",
    title: "a duration shorter than what is left shortens the lease",
    needs: ["LeaseExtender"],
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker);
      await broker.extend(held.receipt, 1_000);
      pass(999);
      await receiveNothing(broker, "one tick before the shortened lease's end");
      pass(1);
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "extend-clock-once",
    title: "the lease ends at the instant that was answered, though the clock steps at every look",
    needs: ["LeaseExtender"],
    async run({ open, clock, pass }) {
      let step = 0;
      const broker = await open({ clock: { now: () => clock.now() + (step > 0 ? step++ : 0) } });
      const { lease: held } = await lease(broker);
      step = 1;
      const { expiresAt } = await broker.extend(held.receipt, 60_000);
      step = 0;
      pass(expiresAt.getTime() - clock.now() - 1);
      await receiveNothing(broker, "one tick before the end that was answered");
      pass(1);
      await receiveOne(broker);
    },
  },
  {
    id: "extend-aborted",
    title: "an aborted renewal rejects with the signal's reason and the lease stays",
    needs: ["LeaseExtender"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const { signal, reason } = abortedSignal();
      await rejectsWith(() => broker.extend(held.receipt, 1, { signal }), reason, "An aborted renewal");
      await broker.ack(held.receipt);
    },
  },
];
