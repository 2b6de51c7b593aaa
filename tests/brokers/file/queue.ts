/**
 * The queue that the file broker's tests work on.
 *
 * @module
 */

import type { BrokerEvent } from "../../../src/core/capabilities/wake.ts";
import type { TimeSource } from "../../../src/core/clock.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { nextTurn } from "../../../src/core/turn.ts";
import type { Delivery } from "../../../src/core/values.ts";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { openFile } from "../../../src/brokers/file/new_file.ts";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { unflushedOperations } from "../../support/file_faults.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of a text. */
export const bytes = (text: string): Uint8Array => encoder.encode(text);

/** Text of bytes. */
export const textOf = (payload: Uint8Array): string => decoder.decode(payload);

/** The payloads of deliveries, as texts. */
export const textsOf = (deliveries: readonly Delivery[]): string[] =>
  deliveries.map(({ message }) => textOf(message.payload));

/** What a test may change about its queue. */
export interface QueueSetup {
  readonly policy?: Partial<Policy>;
  readonly clock?: TimeSource;
  readonly random?: () => number;
  readonly onEvent?: (event: BrokerEvent) => void;
  readonly operations?: FileOperations;
}

/** Opens a directory, by default as a process of its own that flushes nothing. */
export function openQueue(dir: string, { policy, operations, ...rest }: QueueSetup = {}): Promise<FileBroker> {
  const whole: Policy = { visibilityTimeout: 30_000, maxDeliveries: 3, ...policy };
  return openFile({ dir, policy: whole, ...rest }, operations ?? unflushedOperations());
}

/** Lets what a broker does in the background come to its end: a receive makes a bucket for the leases to come. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}

/** Receives and acknowledges until nothing is left; the payloads in the order in which they came. */
export async function drain(jobs: FileBroker, batch = 64): Promise<string[]> {
  const texts: string[] = [];
  for (let found = await jobs.receive(batch); found.length > 0; found = await jobs.receive(batch)) {
    texts.push(...textsOf(found));
    await jobs.ackMany(found.map(({ lease }) => lease.receipt));
  }
  return texts;
}

/** Runs a body while the monotonic clock can be moved ahead. */
export async function withMonotonicClock(body: (pass: (ms: number) => void) => Promise<void>): Promise<void> {
  const real = performance.now;
  let offset = 0;
  performance.now = () => real.call(performance) + offset;
  try {
    await body((ms) => void (offset += ms));
  } finally {
    performance.now = real;
  }
}
