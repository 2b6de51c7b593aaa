/**
 * A process that publishes, consumes and operates on one queue until it is killed, and notes what it was told: run with the
 * queue's directory, the ledger's path, a seed, and "unflushed" for one whose broker flushes nothing.
 *
 * @module
 */

import process from "node:process";
import type { FileBroker } from "../../src/brokers/file/mod.ts";
import { openFile } from "../../src/brokers/file/new_file.ts";
import { isQueueError } from "../../src/core/error.ts";
import type { Priority } from "../../src/core/priority.ts";
import type { Delivery } from "../../src/core/values.ts";
import { Random } from "../simulation/random.ts";
import { unflushedOperations } from "../support/file_faults.ts";
import { freshOperations } from "../support/file_processes.ts";
import { Ledger } from "../torture/ledger.ts";
import { type MadePayload, makePayload } from "../torture/payloads.ts";

const policy = { visibilityTimeout: 2_000, maxDeliveries: 3, retryDelay: 50 };
const onceWindow = 3_600_000;
const publishers = 6;
const consumers = 3;
/** Above so many waiting messages the publishers wait for the consumers. */
const backlog = 3_000;

const [dir, ledgerPath, seedText, flushing] = process.argv.slice(2);
const random = new Random(Number(seedText));
const ledger = new Ledger(ledgerPath!);
const operations = flushing === "unflushed" ? unflushedOperations() : freshOperations();
// Two, so that the leases and buckets of one are another's too.
const brokers = [
  await openFile({ dir: dir!, policy }, operations),
  await openFile({ dir: dir!, policy }, flushing === "unflushed" ? unflushedOperations() : freshOperations()),
];

const rest = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms));
const anyBroker = () => random.pick(brokers);
let waiting = 0;
let made = 0;

function make(once?: string): MadePayload & { readonly priority: Priority } {
  const priority = (random.chance(0.3) ? random.below(5) - 2 : 0) as Priority;
  const one = { ...makePayload(random, `message ${made++}`, priority, once), priority };
  ledger.note({ kind: "publishing", ...one.attempted });
  return one;
}

function confirm({ attempted: { key } }: MadePayload, { id }: { readonly id: string }): void {
  ledger.note({ kind: "published", key, id });
  waiting++;
}

const publications: readonly ((jobs: FileBroker) => Promise<void>)[] = [
  async (jobs) => {
    const one = make();
    confirm(one, await jobs.publish(one.payload, one));
  },
  async (jobs) => {
    const one = make();
    confirm(one, await jobs.publish(one.payload, { ...one, at: new Date(Date.now() + random.below(1_500)) }));
  },
  async (jobs) => {
    const all = Array.from({ length: random.chance(0.05) ? 700 : 1 + random.below(40) }, () => make());
    const messages = await jobs.publishMany(all);
    messages.forEach((message, index) => confirm(all[index]!, message));
  },
  async (jobs) => {
    const key = `key ${made}`;
    const one = make(key);
    const result = await jobs.publishOnce(key, one.payload, onceWindow, one);
    if (result.published) confirm(one, result.message);
  },
];

async function publish(): Promise<never> {
  for (;;) {
    if (waiting > backlog) await rest(20);
    else await random.pick(publications)(anyBroker());
  }
}

async function settle({ lease: { receipt }, message: { id } }: Delivery): Promise<void> {
  const jobs = anyBroker();
  const draw = random.next();
  if (draw < 0.6) {
    // It may be gone from now on.
    ledger.note({ kind: "handled", id });
    await jobs.ack(receipt);
  } else if (draw < 0.7) await jobs.nack(receipt, new Error("again"));
  else if (draw < 0.8) await jobs.reject(receipt, new Error("no"));
  else if (draw < 0.9) await jobs.release(receipt);
  else if (draw < 0.95) await jobs.extend(receipt, 3_000);
}

async function consume(): Promise<never> {
  for (;;) {
    const found = await anyBroker().receive(1 + random.below(60));
    waiting = Math.max(0, waiting - found.length);
    for (const delivery of found) {
      await settle(delivery).catch((error) => {
        if (!isQueueError(error, "LEASE_EXPIRED")) throw error;
      });
    }
    await rest(found.length === 0 ? 10 : 0);
  }
}

async function operate(): Promise<never> {
  for (;;) {
    const jobs = anyBroker();
    const [letter] = await jobs.deadLetters({ max: 1 });
    if (letter !== undefined) {
      const { id } = letter.message;
      const deletes = random.chance(0.3);
      if (deletes) ledger.note({ kind: "deleting", id });
      await (deletes ? jobs.deleteDeadLetter(id) : jobs.replayDeadLetter(id));
    }
    if (random.chance(0.1)) await jobs.replayDeadLetters({ max: 20 });
    await rest(30);
  }
}

console.log("ready");
await Promise.all([
  ...Array.from({ length: publishers }, publish),
  ...Array.from({ length: consumers }, consume),
  operate(),
]);
