/**
 * A program as a user writes it, compiled by TypeScript's own compiler under the module resolutions of Node and bundlers.
 */

import {
  AckOutcome,
  type Broker,
  type CompleteBroker,
  consume,
  deliveries,
  doNotRetry,
  type FileBroker,
  isLeaseExtender,
  isQueueError,
  type MemoryBroker,
  newFile,
  newMemory,
  type Policy,
  Priority,
  type Receipt,
} from "@x/queue";
import { newFile as newFileAlone } from "@x/queue/file";
import { newMemory as newMemoryAlone } from "@x/queue/memory";
import { type ConformanceCase, conformanceCases, ManualClock } from "@x/queue/testing";

const policy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 5 };

/** Uses the verbs and reads their results by type. */
export async function use(jobs: CompleteBroker): Promise<string> {
  const { id } = await jobs.publish(new Uint8Array(), { priority: Priority.high, at: new Date(), headers: { a: "b" } });
  const once = await jobs.publishOnce("key", new Uint8Array(), 1_000);
  if (once.published) once.message.enqueuedAt.getTime();
  const [delivery] = await jobs.receive(1);
  if (delivery === undefined) return id;
  const receipt: Receipt = delivery.lease.receipt;
  const [outcome] = await jobs.ackMany([receipt]);
  if (outcome === AckOutcome.leaseExpired) return "late";
  for await (const { visibleAt } of jobs.allMessages()) visibleAt.toISOString();
  return delivery.lastFailure?.reason ?? id;
}

/** Consumes with every outcome a handler has. */
export async function run(broker: Broker, signal: AbortSignal): Promise<void> {
  if (isLeaseExtender(broker)) await broker.extend("" as Receipt, 1_000).catch(() => {});
  await consume(broker, {
    handlerIsIdempotent: true,
    signal,
    handler: async ({ message }, context) => {
      if (message.payload.byteLength === 0) throw doNotRetry(new Error("Empty"));
      await context.extend(1_000);
    },
    onEvent: (event) => {
      if (event.kind === "storageFailure") console.error(event.operation);
    },
  });
  for await (const { message } of deliveries(broker, { signal })) console.log(message.id);
  // @ts-expect-error: without the statement nothing starts
  await consume(broker, { handler: () => {} });
}

/** Makes every broker. */
export async function make(): Promise<readonly [MemoryBroker, FileBroker]> {
  const clock = new ManualClock();
  newMemoryAlone({ policy, clock });
  await newFileAlone({ dir: "jobs", policy });
  return [newMemory({ policy }), await newFile({ dir: "jobs", policy, clock })];
}

/** Takes the cases as data. */
export const cases: readonly ConformanceCase[] = conformanceCases({
  open: (setup) => ({ broker: newMemory(setup) }),
  lacks: ["reopen"],
});

/** Narrows a refusal. */
export function isLate(error: unknown): boolean {
  return isQueueError(error, "LEASE_EXPIRED") && error.code === 136964;
}
