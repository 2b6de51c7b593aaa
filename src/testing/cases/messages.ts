/**
 * Listing live messages.
 *
 * @module
 */

import type { LiveMessage } from "../../core/values.ts";
import { ensure, equal, refusal, refuses } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition, type Feature } from "../case.ts";
import { allLive, lease, payloadText, receiveOne } from "../steps.ts";
import { badBatchSizes } from "./receive.ts";

const needs: readonly Feature[] = ["MessageReader"];

async function collect(list: AsyncIterable<LiveMessage>): Promise<LiveMessage[]> {
  const collected: LiveMessage[] = [];
  for await (const live of list) collected.push(live);
  return collected;
}

/** Publishes so many messages, leases some of them and gives up one. */
async function fill(broker: AnyBroker, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await broker.publish(bytes(`${index}`));
  const leased = await broker.receive(Math.floor(count / 2));
  await broker.nack(leased[0]!.lease.receipt);
}

/** Listing live messages. */
export const messageCases: readonly CaseDefinition[] = [
  {
    id: "messages-waiting",
    title: "a waiting message is listed with its visibility and no delivery",
    needs,
    async run({ broker, clock, pass }) {
      const message = await broker.publish(bytes("work"));
      const visibleAt = new Date(clock.now());
      pass(5_000);
      equal(await allLive(broker), [{ message, visibleAt, deliveries: 0, leased: false, priority: 0 }], "The listing");
    },
  },
  {
    id: "messages-leased",
    title: "a leased message is listed with its deadline, and stays leased until somebody reclaims it",
    needs,
    async run({ broker, pass }) {
      const { message, lease: held } = await lease(broker);
      const listed = [{ message, visibleAt: held.expiresAt, deliveries: 1, leased: true, priority: 0 as const }];
      equal(await allLive(broker), listed, "The listing");
      pass(60_000);
      equal(await allLive(broker), listed, "The listing after the lease lapsed");
      equal(await allLive(broker), listed, "The listing when it is read again");
      equal((await receiveOne(broker)).deliveries, 2, "The delivery count");
    },
  },
  {
    id: "messages-retried",
    title: "a message that waits for its retry is listed with its instant and its count",
    needs,
    policy: { retryDelay: 7_000 },
    async run({ broker, clock }) {
      const { message, lease: held } = await lease(broker);
      await broker.nack(held.receipt);
      const visibleAt = new Date(clock.now() + 7_000);
      equal(await allLive(broker), [{ message, visibleAt, deliveries: 1, leased: false, priority: 0 }], "The listing");
    },
  },
  {
    id: "messages-released",
    title: "a released delivery is listed as one that did not take place",
    needs: ["MessageReader", "Releaser"],
    async run({ broker, clock }) {
      const { lease: held } = await lease(broker);
      await broker.release(held.receipt, { delay: 7_000 });
      const [live] = await allLive(broker);
      equal(
        [live?.deliveries, live?.leased, live?.visibleAt],
        [0, false, new Date(clock.now() + 7_000)],
        "How it is listed",
      );
    },
  },
  {
    id: "messages-gone",
    title: "what was acknowledged or is dead is not listed",
    needs,
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      await broker.ack((await lease(broker)).lease.receipt);
      await broker.nack((await lease(broker)).lease.receipt);
      equal(await allLive(broker), [], "The listing");
    },
  },
  {
    id: "messages-pages",
    title: "paging with the last id visits each once, waiting and leased, in id order",
    needs,
    async run({ broker }) {
      await fill(broker, 9);
      const all = await allLive(broker);
      equal(all.length, 9, "The number of messages listed");
      const ids = all.map(({ message }) => message.id);
      equal(ids, [...ids].sort(), "The order of the listing");
      for (const max of [1, 2, 4, 9, 50]) {
        const paged: LiveMessage[] = [];
        for (;;) {
          const page = await broker.messages({ after: paged.at(-1)?.message.id, max });
          ensure(page.length <= max, `A page of ${max} holds ${page.length}`);
          if (page.length === 0) break;
          paged.push(...page);
          ensure(paged.length <= all.length, `Pages of ${max} hold more than there is`);
        }
        equal(paged, all, `All pages of ${max}`);
      }
      equal(await broker.messages({ after: "\u007f", max: 5 }), [], "The page after everything");
    },
  },
  {
    id: "messages-batch-size",
    title: "a batch size that is no positive whole number is refused",
    needs,
    async run({ broker }) {
      for (const max of badBatchSizes as number[]) {
        await refuses(() => broker.messages({ max }), "INVALID_BATCH_SIZE", `A page of ${max}`, "max");
      }
    },
  },
  {
    id: "messages-untouched",
    title: "listing leases nothing, counts nothing and shares nothing",
    needs,
    async run({ broker }) {
      await broker.publish(bytes("work"));
      for (let round = 0; round < 3; round++) (await allLive(broker))[0]!.message.payload.fill(0);
      const delivery = await receiveOne(broker);
      equal([delivery.deliveries, payloadText(delivery)], [1, "work"], "The delivery");
    },
  },
  {
    id: "all-messages",
    title: "allMessages yields what the pages hold, and can be resumed after any id",
    needs: ["MessageReader", "MessageLister"],
    async run({ broker }) {
      equal(await collect(broker.allMessages()), [], "All of an empty queue");
      await fill(broker, 9);
      const all = await allLive(broker);
      equal(await collect(broker.allMessages()), all, "All of them");
      equal(await collect(broker.allMessages({ after: all[3]!.message.id })), all.slice(4), "Those after the fourth");
      equal(await collect(broker.allMessages({ after: all[8]!.message.id })), [], "Those after the last");
    },
  },
  {
    id: "all-messages-many",
    title: "it yields hundreds, each once",
    needs: ["MessageReader", "MessageLister"],
    async run({ broker }) {
      await Promise.all(Array.from({ length: 650 }, (_, index) => broker.publish(bytes(`${index}`))));
      const ids = (await collect(broker.allMessages())).map(({ message }) => message.id);
      equal(new Set(ids).size, 650, "The number of different ids");
      equal(ids, [...ids].sort(), "The order of the ids");
    },
  },
  {
    id: "all-messages-left",
    title: "leaving it early leaves nothing open, and another starts anew",
    needs: ["MessageReader", "MessageLister"],
    async run({ broker }) {
      await fill(broker, 5);
      const [first] = await allLive(broker);
      for (let round = 0; round < 3; round++) {
        for await (const live of broker.allMessages()) {
          equal(live, first!, "The first one");
          break;
        }
      }
    },
  },
  {
    id: "all-messages-aborted",
    title: "an abort is thrown once by the iterator, which is over then",
    needs: ["MessageLister"],
    async run({ broker }) {
      await Promise.all(Array.from({ length: 5 }, (_, index) => broker.publish(bytes(`${index}`))));
      const controller = new AbortController();
      const reason = new Error("The caller went away");
      const iterator = broker.allMessages({ signal: controller.signal })[Symbol.asyncIterator]();
      equal((await iterator.next()).done, false, "Whether it is over before the abort");
      controller.abort(reason);
      // What was read ahead may still come.
      const rest = async () => {
        for (let step = await iterator.next(); !step.done; step = await iterator.next());
      };
      ensure(await refusal(rest, "Going on after the abort") === reason, "The reason is another one");
      equal((await iterator.next()).done, true, "Whether it is over after the abort");
    },
  },
];
