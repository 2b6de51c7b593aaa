/**
 * The hint for somebody about to wait.
 *
 * @module
 */

import { ensure, equal, refusal } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition, defaultPolicy, type Feature } from "../case.ts";
import { asReceipt, bury, lease, onlyDeadLetter, receiveNothing, receiveOne } from "../steps.ts";

/** A call that fires the signal or does not, after some preparation. */
interface Event {
  readonly id: string;
  readonly what: string;
  readonly fires: boolean;
  readonly needs?: readonly Feature[];
  readonly maxDeliveries?: number;
  /** Prepares and gives the call. */
  prepare(broker: AnyBroker, now: number): Promise<() => Promise<unknown>>;
}

const held = async (broker: AnyBroker) => (await lease(broker)).lease.receipt;

const deadLetter = async (broker: AnyBroker) => {
  await bury(broker, "work");
  return (await onlyDeadLetter(broker)).message.id;
};

const record = (now: number) => ({ id: "", enqueuedAt: new Date(now), payload: bytes("work"), headers: {} });

function prepared(call: (broker: AnyBroker, now: number) => Promise<unknown>): Event["prepare"] {
  return (broker, now) => Promise.resolve(() => call(broker, now));
}

function withLease(
  call: (broker: AnyBroker, receipt: ReturnType<typeof asReceipt>) => Promise<unknown>,
): Event["prepare"] {
  return async (broker) => {
    const receipt = await held(broker);
    return () => call(broker, receipt);
  };
}

const events: readonly Event[] = [
  { id: "publish", what: "a publish", fires: true, prepare: prepared((broker) => broker.publish(bytes("x"))) },
  {
    id: "publish-at",
    what: "a publishAt",
    fires: true,
    needs: ["DelayedPublisher"],
    prepare: prepared((broker, now) => broker.publishAt(bytes("x"), new Date(now + 60_000))),
  },
  {
    id: "publish-once",
    what: "a publishOnce",
    fires: true,
    needs: ["OncePublisher"],
    prepare: prepared((broker) => broker.publishOnce("key", bytes("x"), 1_000)),
  },
  {
    id: "publish-priority",
    what: "a publishPriority",
    fires: true,
    needs: ["PriorityPublisher"],
    prepare: prepared((broker) => broker.publishPriority(bytes("x"), 0)),
  },
  {
    id: "publish-many",
    what: "a publishMany",
    fires: true,
    needs: ["BatchPublisher"],
    prepare: prepared((broker) => broker.publishMany([bytes("x")])),
  },
  {
    id: "ack-and-publish",
    what: "an ackAndPublish",
    fires: true,
    needs: ["AckPublisher"],
    prepare: withLease((broker, receipt) => broker.ackAndPublish(receipt, bytes("x"))),
  },
  { id: "nack", what: "a nack that hands back", fires: true, prepare: withLease((broker, lost) => broker.nack(lost)) },
  {
    id: "nack-after",
    what: "a nackAfter that hands back",
    fires: true,
    needs: ["DelayedNacker"],
    prepare: withLease((broker, receipt) => broker.nackAfter(receipt, undefined, 5_000)),
  },
  {
    id: "release",
    what: "a release",
    fires: true,
    needs: ["Releaser"],
    prepare: withLease((broker, receipt) => broker.release(receipt)),
  },
  {
    id: "replay",
    what: "a replay",
    fires: true,
    needs: ["DeadLetterReader", "DeadLetterManager"],
    maxDeliveries: 1,
    async prepare(broker) {
      const id = await deadLetter(broker);
      return () => broker.replayDeadLetter(id);
    },
  },
  {
    id: "replay-bulk",
    what: "a replay in bulk",
    fires: true,
    needs: ["DeadLetterReader", "DeadLetterBulkManager"],
    maxDeliveries: 1,
    async prepare(broker) {
      await deadLetter(broker);
      return () => broker.replayDeadLetters({ max: 5 });
    },
  },
  {
    id: "put-message",
    what: "a putMessage",
    fires: true,
    needs: ["MessageWriter"],
    prepare: prepared((broker, now) =>
      broker.putMessage({
        message: record(now),
        visibleAt: new Date(now),
        deliveries: 0,
        leased: false,
        priority: 0,
      })
    ),
  },
  {
    id: "purge",
    what: "a purge",
    fires: true,
    needs: ["Purger"],
    prepare: withLease((broker) => broker.purge()),
  },
  { id: "ack", what: "an ack", fires: false, prepare: withLease((broker, receipt) => broker.ack(receipt)) },
  {
    id: "ack-many",
    what: "an ackMany",
    fires: false,
    needs: ["Acker"],
    prepare: withLease((broker, receipt) => broker.ackMany([receipt])),
  },
  {
    id: "extend",
    what: "a renewal",
    fires: false,
    needs: ["LeaseExtender"],
    prepare: withLease((broker, receipt) => broker.extend(receipt, 60_000)),
  },
  {
    id: "reject",
    what: "a rejection",
    fires: false,
    needs: ["Rejecter"],
    prepare: withLease((broker, receipt) => broker.reject(receipt)),
  },
  {
    id: "nack-last",
    what: "a nack that ends the message",
    fires: false,
    maxDeliveries: 1,
    prepare: withLease((broker, receipt) => broker.nack(receipt)),
  },
  {
    id: "delete",
    what: "a deletion",
    fires: false,
    needs: ["DeadLetterReader", "DeadLetterManager"],
    maxDeliveries: 1,
    async prepare(broker) {
      const id = await deadLetter(broker);
      return () => broker.deleteDeadLetter(id);
    },
  },
  {
    id: "put-dead",
    what: "a putDeadLetter",
    fires: false,
    needs: ["DeadLetterWriter"],
    prepare: prepared((broker, now) =>
      broker.putDeadLetter({
        message: record(now),
        failedAt: new Date(now),
        reason: "X",
        cause: "",
        code: 0,
        deliveries: 1,
        priority: 0,
      })
    ),
  },
  {
    id: "receive",
    what: "a receive",
    fires: false,
    async prepare(broker) {
      await broker.publish(bytes("x"));
      return () => broker.receive(1);
    },
  },
  {
    id: "refused",
    what: "a call that is refused",
    fires: false,
    prepare: prepared(async (broker) => {
      await refusal(() => broker.publish(new Uint8Array(2_000_000)), "2 MB");
      await refusal(() => broker.nack(asReceipt("nonsense")), "A nack of nonsense");
    }),
  },
];

function eventCase({ id, what, fires, needs = [], maxDeliveries = 3, prepare }: Event): CaseDefinition {
  return {
    id: `wake-event-${id}`,
    title: `${what} ${fires ? "fires" : "does not fire"} the signal`,
    needs: ["Waker", ...needs],
    policy: { ...defaultPolicy, maxDeliveries },
    async run({ broker, clock }) {
      const call = await prepare(broker, clock.now());
      const { signal } = broker.wake();
      equal(signal.aborted, false, "Whether the signal has fired before");
      await call();
      equal(signal.aborted, fires, "Whether the signal has fired");
    },
  };
}

/** Waking. */
export const wakeCases: readonly CaseDefinition[] = [
  ...events.map(eventCase),
  {
    id: "wake-event-reclaim",
    title: "a lapsed lease that a receive reclaims does not fire the signal",
    needs: ["Waker"],
    async run({ broker, pass }) {
      await lease(broker);
      pass(30_000);
      const { signal } = broker.wake();
      await receiveOne(broker);
      equal(signal.aborted, false, "Whether the signal has fired");
    },
  },
  {
    id: "wake-broadcast",
    title: "all who took a signal before an event wake, and the next one is fresh",
    needs: ["Waker"],
    async run({ broker }) {
      const before = [broker.wake().signal, broker.wake().signal];
      await broker.publish(bytes("work"));
      ensure(before.every((signal) => signal.aborted), "Not every signal has fired");
      const { signal } = broker.wake();
      equal(signal.aborted, false, "Whether the next signal has fired");
      await broker.publish(bytes("work"));
      equal(signal.aborted, true, "Whether the next signal has fired at the next event");
    },
  },
  {
    id: "wake-missed",
    title: "a publication between an empty receive and the wait is not missed",
    needs: ["Waker"],
    async run({ broker }) {
      const { signal } = broker.wake();
      await receiveNothing(broker, "before the publication");
      await broker.publish(bytes("work"));
      equal(signal.aborted, true, "Whether the signal taken before the receive has fired");
      await receiveOne(broker);
    },
  },
  {
    id: "wake-visible",
    title: "when the signal fires the message is there",
    needs: ["Waker"],
    async run({ broker }) {
      const { signal } = broker.wake();
      const received = new Promise<number>((resolve, reject) => {
        signal.addEventListener("abort", () => {
          broker.receive(10).then((batch) => resolve(batch.length), reject);
        });
      });
      await broker.publish(bytes("work"));
      equal(await received, 1, "The number of messages that a receive in the signal's listener gets");
    },
  },
  {
    id: "wake-empty",
    title: "an empty queue has nothing scheduled",
    needs: ["Waker"],
    async run({ broker }) {
      await receiveNothing(broker, "in an empty queue");
      equal(broker.wake().scheduled, false, "Whether something is scheduled");
    },
  },
  {
    id: "wake-retry",
    title: "after an empty receive the wait for a retry is known exactly, and shrinks with the clock",
    needs: ["Waker"],
    policy: { retryDelay: 7_000 },
    async run({ broker, pass }) {
      await broker.nack((await lease(broker)).lease.receipt);
      await receiveNothing(broker, "before the retry");
      const { scheduled, in: delay } = broker.wake();
      equal([scheduled, delay], [true, 7_000], "What is scheduled");
      pass(3_000);
      equal(broker.wake().in, 4_000, "What is left of the wait");
      pass(4_000);
      ensure(broker.wake().in <= 0, "A wait is left at the retry's instant");
      await receiveOne(broker);
    },
  },
  {
    id: "wake-deferred",
    title: "so is the wait for a deferred message",
    needs: ["Waker", "at"],
    async run({ broker, clock }) {
      await broker.publish(bytes("late"), { at: new Date(clock.now() + 90_000) });
      await broker.publish(bytes("soon"), { at: new Date(clock.now() + 60_000) });
      await receiveNothing(broker, "before the instant");
      const { scheduled, in: delay } = broker.wake();
      equal([scheduled, delay], [true, 60_000], "What is scheduled");
    },
  },
  {
    id: "wake-lease",
    title: "a lease deadline is scheduled, at the latest when it is due",
    needs: ["Waker"],
    async run({ broker, pass }) {
      await lease(broker);
      pass(10_000);
      await receiveNothing(broker, "while the message is leased");
      const { scheduled, in: delay } = broker.wake();
      ensure(scheduled && delay <= 20_000, `The wake says ${scheduled} and ${delay} ms, the lease has 20000 ms`);
    },
  },
  {
    id: "wake-earliest",
    title: "of a retry and a lease deadline the earlier one counts",
    needs: ["Waker"],
    policy: { retryDelay: 7_000 },
    async run({ broker }) {
      const first = await lease(broker, "first");
      await lease(broker, "second");
      await broker.nack(first.lease.receipt);
      await receiveNothing(broker, "before the retry");
      const { scheduled, in: delay } = broker.wake();
      ensure(scheduled && delay <= 7_000, `The wake says ${scheduled} and ${delay} ms, the retry is due in 7000 ms`);
    },
  },
  {
    id: "wake-drained",
    title: "when everything is acknowledged nothing is scheduled, at the latest after the leases would have lapsed",
    needs: ["Waker"],
    async run({ broker, pass }) {
      await broker.ack((await lease(broker)).lease.receipt);
      pass(60_000);
      await receiveNothing(broker, "after the ack");
      await receiveNothing(broker, "after the ack");
      equal(broker.wake().scheduled, false, "Whether something is scheduled");
    },
  },
  {
    id: "wake-shared",
    title: "brokers over one store in one process share their wake",
    needs: ["Waker", "reopen"],
    async run({ broker, reopen }) {
      const other = await reopen();
      const { signal } = other.wake();
      await broker.publish(bytes("work"));
      equal(signal.aborted, true, "Whether the other broker's signal has fired");
    },
  },
];
