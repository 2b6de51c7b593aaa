/**
 * Consumers that run beside each other.
 *
 * @module
 */

import type { Broker } from "../../core/broker.ts";
import { countWinners, ensure, equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { lease, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Takes batches until there is nothing; acknowledges all and notes what it saw. */
async function consumeAll(broker: Broker, size: number, seen: string[]): Promise<void> {
  for (let batch = await broker.receive(size); batch.length > 0; batch = await broker.receive(size)) {
    for (const delivery of batch) {
      seen.push(payloadText(delivery));
      await broker.ack(delivery.lease.receipt);
    }
  }
}

const forty = Array.from({ length: 40 }, (_, index) => `${index}`);

/** Concurrency. */
export const concurrencyCases: readonly CaseDefinition[] = [
  {
    id: "concurrent-consumers",
    title: "consumers that drain one queue in batches get every message exactly once",
    async run({ broker, pass }) {
      for (const text of forty) await broker.publish(bytes(text));
      const seen: string[] = [];
      await Promise.all([7, 7, 3, 1].map((size) => consumeAll(broker, size, seen)));
      equal(seen.sort(), [...forty].sort(), "What was seen");
      pass(60_000);
      await receiveNothing(broker, "afterwards");
    },
  },
  {
    id: "concurrent-receives",
    title: "of receives that race for one message exactly one gets it",
    async run({ broker }) {
      await broker.publish(bytes("work"));
      const batches = await Promise.all(Array.from({ length: 20 }, () => broker.receive(1)));
      equal(batches.flat().length, 1, "The number of deliveries");
    },
  },
  {
    id: "concurrent-publishers",
    title: "what is published while others consume is neither lost nor doubled",
    async run({ broker }) {
      const seen: string[] = [];
      const publish = async (worker: number) => {
        for (let index = 0; index < 25; index++) await broker.publish(bytes(`${worker}-${index}`));
      };
      await Promise.all([
        publish(1),
        consumeAll(broker, 2, seen),
        publish(2),
        consumeAll(broker, 5, seen),
        publish(3),
        publish(4),
      ]);
      await consumeAll(broker, 10, seen);
      equal(seen.length, 100, "The number of deliveries");
      equal(new Set(seen).size, 100, "The number of different messages");
    },
  },
  {
    id: "concurrent-acks",
    title: "of acks that race with one receipt exactly one lands",
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const acks = Array.from({ length: 10 }, () => broker.ack(held.receipt));
      equal(await countWinners(acks, "LEASE_EXPIRED", "Racing acks"), 1, "The number that landed");
    },
  },
  {
    id: "concurrent-nacks",
    title: "of nacks that race with one receipt exactly one counts",
    policy: { maxDeliveries: 10 },
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const nacks = Array.from({ length: 10 }, () => broker.nack(held.receipt));
      equal(await countWinners(nacks, "LEASE_EXPIRED", "Racing nacks"), 1, "The number that landed");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
      await receiveNothing(broker, "beside it");
    },
  },
  {
    id: "concurrent-last-nacks",
    title: "of last nacks that race exactly one ends the message, into one dead letter",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const nacks = Array.from({ length: 10 }, () => broker.nack(held.receipt));
      equal(await countWinners(nacks, "LEASE_EXPIRED", "Racing nacks"), 1, "The number that landed");
      equal((await broker.deadLetters({ max: 10 })).length, 1, "The number of dead letters");
    },
  },
  {
    id: "concurrent-outcomes",
    title: "of an ack and a nack that race exactly one lands, and the message is where it says",
    async run({ broker }) {
      for (let round = 0; round < 10; round++) {
        const { lease: held } = await lease(broker);
        const ack = broker.ack(held.receipt);
        const nack = broker.nack(held.receipt);
        const racing: Promise<unknown>[] = round % 2 === 0 ? [ack, nack] : [nack, ack];
        equal(await countWinners(racing, "LEASE_EXPIRED", "An ack and a nack"), 1, "The number that landed");
        const acked = await ack.then(() => true, () => false);
        const left = await broker.receive(10);
        equal(left.length, acked ? 0 : 1, "The number of messages that are left");
        for (const { lease: rest } of left) await broker.ack(rest.receipt);
      }
    },
  },
  {
    id: "concurrent-renewals",
    title: "of renewals that race with one receipt exactly one lands, and its receipt holds",
    needs: ["LeaseExtender"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const renewals = Array.from({ length: 10 }, () => broker.extend(held.receipt, 60_000));
      equal(await countWinners(renewals, "LEASE_EXPIRED", "Racing renewals"), 1, "The number that landed");
      const settled = await Promise.allSettled(renewals);
      const winner = settled.find((result) => result.status === "fulfilled");
      ensure(winner?.status === "fulfilled", "No renewal landed");
      await broker.ack(winner.value.receipt);
    },
  },
  {
    id: "concurrent-releases",
    title: "of releases that race with one receipt exactly one lands",
    needs: ["Releaser"],
    async run({ broker }) {
      const { lease: held } = await lease(broker);
      const releases = Array.from({ length: 10 }, () => broker.release(held.receipt));
      equal(await countWinners(releases, "LEASE_EXPIRED", "Racing releases"), 1, "The number that landed");
      equal((await broker.receive(10)).length, 1, "The number of messages");
    },
  },
  {
    id: "concurrent-settlements",
    title: "hundreds of acks and nacks at once each do what they say",
    async run({ broker }) {
      await Promise.all(Array.from({ length: 300 }, (_, index) => broker.publish(bytes(`${index}`))));
      const batch = await broker.receive(300);
      equal(batch.length, 300, "The number of messages received");
      await Promise.all(
        batch.map((delivery) =>
          Number(payloadText(delivery)) % 3 === 0
            ? broker.nack(delivery.lease.receipt)
            : broker.ack(delivery.lease.receipt)
        ),
      );
      const left = (await broker.receive(300)).map((delivery) => Number(payloadText(delivery)));
      equal(left.length, 100, "The number of messages that came back");
      ensure(left.every((index) => index % 3 === 0), "A message that was acknowledged came back");
    },
  },
];
