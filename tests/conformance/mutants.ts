/**
 * Brokers that are broken on purpose, each in one way, over the memory broker: what the conformance cases have to catch.
 *
 * @module
 */

import { newMemory } from "../../src/brokers/memory/mod.ts";
import {
  type AckPublisher,
  type AroundCall,
  type BrokerCall,
  type CompleteBroker,
  type Delivery,
  isQueueError,
  type LiveMessage,
  type NackResult,
  QueueError,
  type Wake,
  withDescription,
  wrapBroker,
} from "../../src/core/mod.ts";
import type { BrokerSetup } from "../../src/testing/mod.ts";

type Memory = CompleteBroker & AckPublisher;

/** A broken broker and the case that has to notice. */
export interface Mutant {
  readonly name: string;
  readonly caughtBy: string;
  /** The name of the error that the case ends with, where it is not a failed assertion. */
  readonly failsWith?: string;
  readonly open: (setup: BrokerSetup) => Memory;
}

/** A broker whose calls go through something that breaks them. */
function around(make: (inner: Memory) => AroundCall): (setup: BrokerSetup) => Memory {
  return (setup) => {
    const inner: Memory = newMemory(setup);
    return wrapBroker(inner, make(inner));
  };
}

type Proceed = (args?: readonly unknown[]) => unknown;

/** Breaks one method and leaves the others alone. */
function on(method: string, change: (call: BrokerCall, proceed: Proceed, inner: Memory) => unknown): Mutant["open"] {
  return around((inner) => (call, proceed) => call.method === method ? change(call, proceed, inner) : proceed());
}

/** Changes what one method resolves with. */
function result<T>(method: string, change: (value: T, call: BrokerCall) => unknown): Mutant["open"] {
  return on(method, async (call, proceed) => change(await (proceed() as Promise<T>), call));
}

/** Changes every delivery. */
function delivered(change: (delivery: Delivery) => unknown): Mutant["open"] {
  return result<Delivery[]>("receive", (batch) => batch.map(change));
}

/** Changes the message of every delivery. */
function message(change: (delivery: Delivery) => Partial<Delivery["message"]>): Mutant["open"] {
  return delivered((delivery) => ({ ...delivery, message: { ...delivery.message, ...change(delivery) } }));
}

/** Takes options away from every publish. */
function without(...options: readonly string[]): Mutant["open"] {
  return on("publish", ({ args: [payload, given] }, proceed) => {
    const kept = Object.fromEntries(Object.entries(given ?? {}).filter(([name]) => !options.includes(name)));
    return proceed([payload, kept]);
  });
}

/** Makes the broker with another setup than it was asked for. */
function misconfigured(change: (setup: BrokerSetup) => BrokerSetup): Mutant["open"] {
  return (setup) => newMemory(change(setup));
}

/** Takes a refusal for a success. */
async function swallow(reason: "LEASE_EXPIRED" | "UNKNOWN_RECEIPT", proceed: Proceed): Promise<void> {
  try {
    await proceed();
  } catch (error) {
    if (!isQueueError(error, reason)) throw error;
  }
}

function normalize(key: unknown): unknown {
  return typeof key === "string" && key.isWellFormed() ? key.normalize() : key;
}

const newestFirst = (list: unknown[]) => [...list].reverse();
const signalOf = (args: readonly unknown[]) => (args.at(-1) as { signal?: AbortSignal } | undefined)?.signal;

/** The mutants. */
export const mutants: readonly Mutant[] = [
  { name: "drops headers at publish", caughtBy: "headers-kept", open: without("headers") },
  { name: "drops headers at delivery", caughtBy: "headers-kept", open: message(() => ({ headers: {} })) },
  {
    name: "gives headers a prototype",
    caughtBy: "headers-form",
    open: message(({ message: { headers } }) => ({ headers: Object.freeze({ ...headers }) })),
  },
  { name: "drops the level", caughtBy: "priority-strict", open: without("priority") },
  { name: "drops the instant", caughtBy: "delayed-option", open: without("at") },
  {
    name: "hands out one tick early",
    caughtBy: "delayed-option",
    open: on("publish", ({ args: [payload, options] }, proceed) => {
      const { at } = (options ?? {}) as { at?: Date };
      return proceed([payload, at && at.getTime() > 0 ? { at: new Date(at.getTime() - 1) } : options]);
    }),
  },
  {
    name: "keeps the producer's buffer",
    caughtBy: "publish-copies",
    open: around(() => {
      const buffers = new Map<string, Uint8Array>();
      return async ({ method, args }, proceed) => {
        if (method === "wake" || method === "watch" || method === "allMessages") return proceed();
        const value = await proceed();
        if (method === "publish") buffers.set((value as Delivery["message"]).id, args[0] as Uint8Array);
        if (method !== "receive") return value;
        return (value as Delivery[]).map((delivery) => {
          const payload = buffers.get(delivery.message.id) ?? delivery.message.payload;
          return { ...delivery, message: { ...delivery.message, payload } };
        });
      };
    }),
  },
  {
    name: "cuts payloads at 64 KiB",
    caughtBy: "payload-sizes",
    open: message(({ message: { payload } }) => ({ payload: payload.subarray(0, 65_536) })),
  },
  {
    name: "takes payloads for text",
    caughtBy: "payload-contents",
    open: message(({ message: { payload } }) => ({
      payload: new TextEncoder().encode(new TextDecoder().decode(payload)),
    })),
  },
  {
    name: "mints an id at every delivery",
    caughtBy: "receive-redelivered",
    open: message(() => ({ id: crypto.randomUUID() })),
  },
  {
    name: "changes the instant of the message",
    caughtBy: "publish-delivered",
    open: message(({ message: { enqueuedAt } }) => ({ enqueuedAt: new Date(enqueuedAt.getTime() + 1) })),
  },
  {
    name: "counts deliveries from 0",
    caughtBy: "receive-delivery",
    open: delivered((delivery) => ({ ...delivery, deliveries: delivery.deliveries - 1 })),
  },
  {
    name: "does not count redeliveries",
    caughtBy: "receive-redelivered",
    open: delivered((delivery) => ({ ...delivery, deliveries: 1 })),
  },
  {
    name: "forgets what went wrong",
    caughtBy: "nack-last-failure",
    open: delivered(({ lastFailure: _, ...rest }) => rest),
  },
  {
    name: "delivers one more than was asked for",
    caughtBy: "receive-max",
    open: on("receive", ({ args: [max] }, proceed) => proceed([Number.isInteger(max) ? (max as number) + 1 : max])),
  },
  {
    name: "answers a batch size of 0 with nothing",
    caughtBy: "receive-batch-size",
    open: on("receive", ({ args: [max] }, proceed) => max === 0 ? Promise.resolve([]) : proceed()),
  },
  {
    name: "delivers the newest of a batch first",
    caughtBy: "order-batches",
    open: result<Delivery[]>("receive", newestFirst),
  },
  {
    name: "gives one message to two who ask at once",
    caughtBy: "concurrent-receives",
    open: around(() => {
      let pending: unknown;
      return ({ method }, proceed) => {
        if (method !== "receive") return proceed();
        pending ??= (proceed() as Promise<unknown>).finally(() => pending = undefined);
        return pending;
      };
    }),
  },
  {
    name: "acknowledges after the lease's end",
    caughtBy: "ack-lapsed",
    open: on("ack", (_call, proceed) => swallow("LEASE_EXPIRED", proceed)),
  },
  {
    name: "acknowledges nonsense",
    caughtBy: "ack-nonsense",
    open: on("ack", (_call, proceed) => swallow("UNKNOWN_RECEIPT", proceed)),
  },
  {
    name: "takes an expired receipt for an unknown one",
    caughtBy: "ack-twice",
    open: on("ack", async (_call, proceed) => {
      try {
        await proceed();
      } catch (error) {
        throw isQueueError(error, "LEASE_EXPIRED") ? new QueueError("UNKNOWN_RECEIPT") : error;
      }
    }),
  },
  { name: "forgets to remove", caughtBy: "ack-removes", open: on("ack", () => Promise.resolve()) },
  {
    name: "retries at once",
    caughtBy: "nack-delay",
    open: on("nack", ({ args: [receipt, cause] }, _proceed, inner) => inner.nackAfter(receipt as never, cause, 0)),
  },
  {
    name: "does not say when it is visible again",
    caughtBy: "nack-delay",
    open: result<NackResult>("nack", ({ visibleAt: _, ...rest }) => rest),
  },
  {
    name: "records the text of a foreign error",
    caughtBy: "secret-cause",
    open: on("nack", ({ args: [receipt, cause] }, proceed) => {
      const text = cause instanceof Error ? cause.message : String(cause);
      return proceed([receipt, cause === undefined ? cause : withDescription(cause, { cause: text })]);
    }),
  },
  {
    name: "counts a release",
    caughtBy: "release-uncounted",
    open: on("release", async ({ args: [receipt] }, _proceed, inner) => {
      await inner.nackAfter(receipt as never, undefined, 0);
    }),
  },
  {
    name: "retries what was rejected",
    caughtBy: "reject-ends",
    open: on("reject", async ({ args: [receipt, cause] }, _proceed, inner) => {
      await inner.nack(receipt as never, cause);
    }),
  },
  {
    name: "uses the policy's delay for a named one",
    caughtBy: "nack-after-exact",
    open: on("nackAfter", ({ args: [receipt, cause] }, _proceed, inner) => inner.nack(receipt as never, cause)),
  },
  {
    name: "answers another end of the lease than it recorded",
    caughtBy: "extend-clock-once",
    open: result<{ expiresAt: Date }>("extend", (lease) => ({
      ...lease,
      expiresAt: new Date(lease.expiresAt.getTime() + 1),
    })),
  },
  {
    name: "renews nothing",
    caughtBy: "extend-renews",
    open: on("extend", ({ args: [receipt] }) => Promise.resolve({ receipt, expiresAt: new Date(0) })),
  },
  {
    name: "publishes duplicates",
    caughtBy: "once-duplicate",
    open: on("publishOnce", async ({ args: [, payload] }, _proceed, inner) => ({
      published: true,
      message: await inner.publish(payload as Uint8Array),
    })),
  },
  {
    name: "folds keys",
    caughtBy: "once-keys",
    open: on("publishOnce", ({ args: [key, ...rest] }, proceed) => proceed([normalize(key), ...rest])),
  },
  {
    name: "touches the key before it looks at the size",
    caughtBy: "once-size-first",
    open: on("publishOnce", async ({ args: [key, payload, window] }, proceed, inner) => {
      if ((payload as Uint8Array).length > 10) {
        await inner.publishOnce(key as string, new Uint8Array(), window as number);
      }
      return await proceed();
    }),
  },
  {
    name: "publishes half a batch",
    caughtBy: "batch-oversized",
    open: on("publishMany", async ({ args: [items] }, _proceed, inner) => {
      const messages = [];
      for (const item of items as Iterable<Uint8Array>) messages.push(await inner.publish(item));
      return messages;
    }),
  },
  {
    name: "answers a batch in another order",
    caughtBy: "batch-order",
    open: result<unknown[]>("publishMany", newestFirst),
  },
  {
    name: "answers outcomes in another order",
    caughtBy: "ack-many-outcomes",
    open: result<number[]>("ackMany", (outcomes) => [...outcomes].sort()),
  },
  {
    name: "stops at the first receipt that is refused",
    caughtBy: "ack-many-outcomes",
    failsWith: "QueueError",
    open: on("ackMany", async ({ args: [receipts] }, _proceed, inner) => {
      for (const receipt of receipts as never[]) await inner.ack(receipt);
      return (receipts as never[]).map(() => 1);
    }),
  },
  {
    name: "publishes the next message before it acknowledges",
    caughtBy: "ack-and-publish-refused-receipt",
    open: on("ackAndPublish", async ({ args: [receipt, payload] }, _proceed, inner) => {
      const next = await inner.publish(payload as Uint8Array);
      await inner.ack(receipt as never);
      return next;
    }),
  },
  {
    name: "shows the newest dead letter first",
    caughtBy: "dead-order",
    open: result<unknown[]>("deadLetters", newestFirst),
  },
  {
    name: "starts a page with the last one of the page before",
    caughtBy: "dead-pages",
    open: on("deadLettersAfter", ({ args: [options] }, proceed) => {
      const { after = "", max } = options as { after?: string; max: number };
      return proceed([{ after: after.slice(0, -1), max }]);
    }),
  },
  {
    name: "keeps the dead letter that it replayed",
    caughtBy: "replay-message",
    open: on("replayDeadLetter", async (_call, proceed, inner) => {
      const [dead] = await inner.deadLetters({ max: 1 });
      await proceed();
      await inner.putDeadLetter({ ...dead!, message: { ...dead!.message, id: "" } });
    }),
  },
  {
    name: "purges what failed at the very instant",
    caughtBy: "bulk-purge",
    open: on("purgeDeadLetters", ({ args: [options] }, proceed) => {
      const { before, max } = options as { before: Date; max: number };
      return proceed([{ before: new Date(before.getTime() + 1), max }]);
    }),
  },
  {
    name: "says that it replayed as many as were asked for",
    caughtBy: "bulk-replay",
    open: result<number>("replayDeadLetters", (_done, { args: [options] }) => (options as { max: number }).max),
  },
  {
    name: "drops the trail",
    caughtBy: "put-dead-kept",
    open: on("putDeadLetter", ({ args: [dead] }, proceed) => proceed([{ ...dead as object, trail: [] }])),
  },
  {
    name: "starts the count of a copied message anew",
    caughtBy: "put-message-delivered",
    open: on("putMessage", ({ args: [live] }, proceed) => proceed([{ ...live as object, deliveries: 0 }])),
  },
  {
    name: "hides leased messages",
    caughtBy: "messages-leased",
    open: result<LiveMessage[]>("messages", (list) => list.filter(({ leased }) => !leased)),
  },
  {
    name: "ends a listing quietly when it is aborted",
    caughtBy: "all-messages-aborted",
    open: on("allMessages", async function* (_call, proceed) {
      try {
        yield* proceed() as AsyncIterable<LiveMessage>;
      } catch {
        // The abort is lost.
      }
    }),
  },
  {
    name: "counts one too many",
    caughtBy: "stats-life",
    open: result<{ leased: number }>("stats", (stats) => ({ ...stats, leased: stats.leased + 1 })),
  },
  {
    name: "mixes up what it purged",
    caughtBy: "purge-all",
    open: result<{ queued: number; leased: number }>("purge", ({ queued, leased }) => ({
      queued: leased,
      leased: queued,
    })),
  },
  {
    name: "never wakes anybody",
    caughtBy: "wake-event-publish",
    open: on("wake", (_call, proceed) => ({ ...proceed() as Wake, signal: new AbortController().signal })),
  },
  {
    name: "wakes before anything happened",
    caughtBy: "wake-event-ack",
    open: on("wake", (_call, proceed) => ({ ...proceed() as Wake, signal: AbortSignal.abort() })),
  },
  {
    name: "waits one tick too long",
    caughtBy: "wake-retry",
    open: on("wake", (_call, proceed) => {
      const wake = proceed() as Wake;
      return { ...wake, in: wake.in + 1 };
    }),
  },
  {
    name: "lets a watch go only once",
    caughtBy: "watch-held",
    failsWith: "WatchGone",
    open: on("watch", () => {
      let held = true;
      return {
        [Symbol.asyncDispose]() {
          if (!held) return Promise.reject(Object.assign(new Error("It was let go before"), { name: "WatchGone" }));
          held = false;
          return Promise.resolve();
        },
      };
    }),
  },
  { name: "cannot be closed", caughtBy: "close-refuses", open: on("close", () => Promise.resolve()) },
  {
    name: "does not hear of an abort",
    caughtBy: "abort-every-call",
    open: around(() => ({ args }, proceed) => {
      if (signalOf(args) === undefined) return proceed();
      return proceed([...args.slice(0, -1), { ...args.at(-1) as object, signal: undefined }]);
    }),
  },
  {
    name: "wraps the reason of an abort",
    caughtBy: "receive-aborted",
    open: on("receive", async ({ args }, proceed) => {
      try {
        return await proceed();
      } catch (error) {
        throw signalOf(args)?.aborted ? new QueueError("QUEUE_BACKEND_FAILED", "Aborted", { cause: error }) : error;
      }
    }),
  },
  {
    name: "shows a payload in an error",
    caughtBy: "secret-oversized",
    open: on("publish", async ({ args: [payload] }, proceed) => {
      try {
        return await proceed();
      } catch (error) {
        if (!isQueueError(error)) throw error;
        throw new QueueError(error.reason, `Cannot publish ${new TextDecoder().decode(payload as Uint8Array)}`);
      }
    }),
  },
  {
    name: "throws instead of rejecting",
    caughtBy: "publish-bound",
    open: on("publish", ({ args: [payload] }, proceed) => {
      if ((payload as Uint8Array).length > 100) throw new QueueError("MESSAGE_TOO_LARGE");
      return proceed();
    }),
  },
  {
    name: "lacks a capability and does not say so",
    caughtBy: "declared-capabilities",
    open: (setup) => Object.assign(wrapBroker(newMemory(setup), (_call, proceed) => proceed()), { extend: undefined }),
  },
  {
    name: "makes the best of a bad policy",
    caughtBy: "policy-refused",
    open: misconfigured((setup) => {
      const { visibilityTimeout } = setup.policy;
      return { ...setup, policy: { ...setup.policy, visibilityTimeout: visibilityTimeout || 30_000 } };
    }),
  },
  {
    name: "leases one tick too long",
    caughtBy: "receive-exclusive",
    open: misconfigured((setup) => {
      const { visibilityTimeout } = setup.policy;
      return { ...setup, policy: { ...setup.policy, visibilityTimeout: visibilityTimeout + 1 } };
    }),
  },
  {
    name: "allows one attempt more",
    caughtBy: "nack-last",
    open: misconfigured((setup) => {
      const { maxDeliveries } = setup.policy;
      return { ...setup, policy: { ...setup.policy, maxDeliveries: maxDeliveries + 1 } };
    }),
  },
  {
    name: "expires one tick late",
    caughtBy: "expiry-boundary",
    open: misconfigured((setup) => {
      const { maxAge } = setup.policy;
      return { ...setup, policy: { ...setup.policy, maxAge: maxAge && maxAge + 1 } };
    }),
  },
  {
    name: "keeps dead letters for good",
    caughtBy: "retention-removes",
    open: misconfigured((setup) => ({ ...setup, policy: { ...setup.policy, deadLetterRetention: 0 } })),
  },
  {
    name: "draws its own numbers",
    caughtBy: "curve-additive",
    open: misconfigured((setup) => ({ ...setup, random: () => 0.123 })),
  },
  {
    name: "draws for every nack",
    caughtBy: "curve-undrawn",
    open: (setup) =>
      wrapBroker(newMemory(setup), ({ method }, proceed) => {
        if (method === "nack") setup.random();
        return proceed();
      }),
  },
  {
    name: "reads a clock of its own",
    caughtBy: "publish-mints",
    open: misconfigured((setup) => ({ ...setup, clock: { now: () => setup.clock.now() + 1 } })),
  },
];
