/**
 * The queue part of the demo, whole. Producer, workers and collector are processes of their own that meet in two file
 * queues: "jobs" (a name each) and "results" (a name and its sum). Any of them may be killed at any line.
 *
 * @module
 */

import { consume, type DeadLetter, doNotRetry, type FileBroker, newFile } from "@x/queue";
import { describeUnreadable, mayPass, type Sum, UnreadableFile } from "./sum.ts";

/** A worker that dies gives its files back after three seconds; one that lives renews its leases before they end. */
const policy = { visibilityTimeout: 3_000, maxDeliveries: 5, retryDelay: 200 };

/** Opens one of the two queues; whoever opens the same directory has the same queue. */
export function openQueue(root: string, name: "jobs" | "results"): Promise<FileBroker> {
  return newFile({ dir: `${root}/${name}`, policy });
}

/** The producer: one job a file. The payload is the name, byte for byte. */
export async function produce(root: string, names: readonly Uint8Array[]): Promise<void> {
  await using jobs = await openQueue(root, "jobs");
  // Resolves once every job is on the device: a power cut from here on loses none.
  await jobs.publishMany(names);
}

/** A worker: takes jobs until the signal. */
export async function work(
  root: string,
  sumFile: (name: Uint8Array, signal: AbortSignal) => Promise<Sum>,
  signal: AbortSignal,
): Promise<void> {
  await using jobs = await openQueue(root, "jobs");
  await using results = await openQueue(root, "results");
  await consume(jobs, {
    // True here: doing a file twice gives a second result of the same name, and the collector keeps one a name.
    handlerIsIdempotent: true,
    // Results that are published at the same time share their flush.
    parallelism: 32,
    autoExtend: true,
    handler: async ({ message, deliveries }, context) => {
      const { sha256, bytes } = await sumFile(message.payload, context.signal).catch((error) => {
        // A file that is not there will not come back by trying: at once a dead letter, which somebody can look at.
        throw mayPass(error) ? error : doNotRetry(error);
      });
      await results.publish(message.payload, { headers: { sha256, bytes: `${bytes}`, deliveries: `${deliveries}` } });
      // Only after this return does the job go away. Killed before: somebody else does it again.
    },
    describe: describeFailure,
    signal,
  });
}

/** By default a dead letter names an error's class alone, since a message may quote data. This one is known not to. */
function describeFailure(error: unknown): { cause: string } | undefined {
  const failure = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return failure instanceof UnreadableFile ? { cause: describeUnreadable(failure) } : undefined;
}

/** What a worker made of a job. */
export interface Result extends Sum {
  /** The name, byte for byte. */
  readonly name: Uint8Array;
  /** How often the job had been handed out by then: above 1 after a worker died with it. */
  readonly deliveries: number;
}

/** The collector: shows every result until the signal, some of them twice. */
export async function collect(root: string, keep: (result: Result) => void, signal: AbortSignal): Promise<void> {
  await using results = await openQueue(root, "results");
  await consume(results, {
    handlerIsIdempotent: true,
    batchSize: 64,
    handler: ({ message: { payload, headers } }) => {
      const { sha256 = "", bytes, deliveries } = headers;
      keep({ name: payload, sha256, bytes: Number(bytes), deliveries: Number(deliveries) });
    },
    signal,
  });
}

/** What is left to do, in jobs and results alike, and how many jobs were given up. */
export async function look(
  jobs: FileBroker,
  results: FileBroker,
): Promise<{ waiting: number; leased: number; dead: number; idle: boolean }> {
  // In this order: a job leaves its queue after its result has come, so a result on its way is seen in one of the two.
  const { queued, leased, dead } = await jobs.stats();
  const gathering = await results.stats();
  return { waiting: queued, leased, dead, idle: queued + leased + gathering.queued + gathering.leased === 0 };
}

/** Every job that could not be done, with its cause. */
export async function readDeadLetters(jobs: FileBroker): Promise<DeadLetter[]> {
  const all: DeadLetter[] = [];
  for (let after = "";; after = all.at(-1)!.message.id) {
    const page = await jobs.deadLettersAfter({ after, max: 500 });
    if (page.length === 0) return all;
    all.push(...page);
  }
}
