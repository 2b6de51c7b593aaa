/**
 * Publishing for later.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import { equal, refuses } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition } from "../case.ts";
import { allLive, drainTexts, payloadText, receiveNothing, receiveOne } from "../steps.ts";

/** Instants that cannot be recorded. */
const badInstants: readonly unknown[] = [new Date(NaN), new Date(maxInstant + 1), 5, "2030-01-01", null];

/** Every way to publish for later, by name. */
const ways: Readonly<Record<string, (broker: AnyBroker, at: Date) => Promise<unknown>>> = {
  publish: (broker, at) => broker.publish(bytes("publish"), { at }),
  publishAt: (broker, at) => broker.publishAt(bytes("publishAt"), at),
  publishPriority: (broker, at) => broker.publishPriority(bytes("publishPriority"), 0, { at }),
  publishOnce: (broker, at) => broker.publishOnce("key", bytes("publishOnce"), 1_000, { at }),
  publishMany: (broker, at) => broker.publishMany([{ payload: bytes("publishMany"), at }]),
};

/** Publishing for later. */
export const delayedCases: readonly CaseDefinition[] = [
  {
    id: "delayed-option",
    title: "a message is not handed out before its instant, and is from there on",
    needs: ["at"],
    async run({ broker, clock, pass }) {
      const at = new Date(clock.now() + 90_000);
      const message = await broker.publish(bytes("work"), { at });
      equal(message.enqueuedAt, new Date(clock.now()), "The instant of the message");
      await receiveNothing(broker, "right away");
      pass(89_999);
      await receiveNothing(broker, "one tick before the instant");
      pass(1);
      const delivery = await receiveOne(broker);
      equal(delivery.message, message, "The message delivered");
      equal(delivery.deliveries, 1, "The delivery count");
      equal(delivery.lease.expiresAt, new Date(clock.now() + 30_000), "The end of the lease");
    },
  },
  {
    id: "delayed-method",
    title: "publishAt does the same",
    needs: ["DelayedPublisher"],
    async run({ broker, clock, pass }) {
      const message = await broker.publishAt(bytes("work"), new Date(clock.now() + 90_000));
      pass(89_999);
      await receiveNothing(broker, "one tick before the instant");
      pass(1);
      equal((await receiveOne(broker)).message, message, "The message delivered");
    },
  },
  {
    id: "delayed-past",
    title: "an instant that has passed means now",
    needs: ["at"],
    async run({ broker, clock }) {
      const instants = [clock.now(), clock.now() - 1, 0, -1, -8_640_000_000_000_000];
      for (const instant of instants) await broker.publish(bytes(`${instant}`), { at: new Date(instant) });
      equal((await drainTexts(broker)).sort(), instants.map(String).sort(), "What is receivable");
    },
  },
  {
    id: "delayed-listed",
    title: "the instant shows as the live message's visibility",
    needs: ["at", "MessageReader"],
    async run({ broker, clock }) {
      const at = new Date(clock.now() + 90_000);
      await broker.publish(bytes("work"), { at });
      const [live] = await allLive(broker);
      equal([live?.visibleAt, live?.leased, live?.deliveries], [at, false, 0], "How it is listed");
    },
  },
  {
    id: "delayed-far",
    title: "the last recordable instant is accepted",
    needs: ["at"],
    async run({ broker, pass }) {
      await broker.publish(bytes("work"), { at: new Date(maxInstant) });
      pass(365 * 24 * 3_600_000);
      await receiveNothing(broker, "a year later");
    },
  },
  {
    id: "delayed-refused",
    title: "an instant that cannot be recorded is refused, and nothing is published",
    needs: ["at"],
    async run({ broker, pass }) {
      for (const at of badInstants) {
        const publish = () => broker.publish(bytes("work"), { at: at as Date });
        await refuses(publish, "QUEUE_MISCONFIGURED", `The instant ${at}`, "at");
      }
      pass(3_600_000);
      await receiveNothing(broker, "an hour after the refusals");
    },
  },
  {
    id: "delayed-method-refused",
    title: "publishAt refuses them too, and payloads that are too large",
    needs: ["DelayedPublisher"],
    policy: { maxMessageBytes: 10 },
    async run({ broker, clock }) {
      for (const at of [...badInstants, undefined]) {
        const publish = () => broker.publishAt(bytes("work"), at as Date);
        await refuses(publish, "QUEUE_MISCONFIGURED", `The instant ${at}`, "at");
      }
      const publish = () => broker.publishAt(new Uint8Array(11), new Date(clock.now()));
      await refuses(publish, "MESSAGE_TOO_LARGE", "11 bytes", "payload");
      await receiveNothing(broker, "after the refusals");
    },
  },
  {
    id: "delayed-everywhere",
    title: "every publishing method takes an instant",
    needs: ["at", "DelayedPublisher", "PriorityPublisher", "OncePublisher", "BatchPublisher"],
    async run({ broker, clock, pass }) {
      for (const publish of Object.values(ways)) await publish(broker, new Date(clock.now() + 5_000));
      pass(4_999);
      await receiveNothing(broker, "one tick before the instant");
      pass(1);
      equal((await drainTexts(broker)).sort(), Object.keys(ways).sort(), "What is receivable at the instant");
    },
  },
  {
    id: "delayed-many",
    title: "many instants, near and far, each come out at their own",
    needs: ["at"],
    async run({ broker, clock, pass }) {
      const start = clock.now();
      const delays = [1, 2, 999, 1_000, 59_999, 60_000, 3_600_000, 86_400_000, 2_592_000_000, 31_536_000_000];
      for (const delay of [...delays].reverse()) {
        await broker.publish(bytes(`${delay}`), { at: new Date(start + delay) });
      }
      for (const delay of delays) {
        pass(start + delay - 1 - clock.now());
        await receiveNothing(broker, `one tick before ${delay} ms`);
        pass(1);
        const delivery = await receiveOne(broker);
        equal(payloadText(delivery), `${delay}`, `What comes at ${delay} ms`);
        await broker.ack(delivery.lease.receipt);
      }
    },
  },
  {
    id: "delayed-beyond-age",
    title: "an instant at which the message would have expired is refused",
    needs: ["at", "expiry"],
    policy: { maxAge: 60_000 },
    async run({ broker, clock, pass }) {
      const publish = (delay: number) => broker.publish(bytes("work"), { at: new Date(clock.now() + delay) });
      await refuses(() => publish(60_000), "QUEUE_MISCONFIGURED", "An instant at the greatest age", "at");
      await publish(59_999);
      pass(59_999);
      await receiveOne(broker);
    },
  },
];
