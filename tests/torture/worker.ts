/**
 * A consumer that is told when to go on: `hold`, `consume` or `drain`, then `DIR LEASE SKEW`, the last two in ms. Its clock
 * is so much ahead. It says "ready" on a line of its own, works once it is told to on its standard input, and prints what
 * it did as JSON.
 *
 * @module
 */

import process from "node:process";
import { newFile } from "../../src/brokers/file/mod.ts";
import { consume } from "../../src/consume/consume.ts";
import { AckOutcome } from "../../src/core/values.ts";

const [verb, dir = "", lease = "", skew = "0"] = process.argv.slice(2);
const clock = { now: () => Date.now() + Number(skew) };
const jobs = await newFile({ dir, policy: { visibilityTimeout: Number(lease), maxDeliveries: 1_000 }, clock });

const told = (): Promise<unknown> => new Promise((resolve) => process.stdin.once("data", resolve));
const print = (what: unknown) => console.log(JSON.stringify(what));

const started = told();
console.log("ready");
await started;
if (verb === "hold") {
  const [delivery] = await jobs.receive(1);
  const goesOn = told();
  print(delivery!.message.id);
  await goesOn;
  print(await jobs.ack(delivery!.lease.receipt).then(() => "done", (error) => error.reason));
} else if (verb === "consume") {
  const stop = new AbortController();
  let goesOn = Promise.resolve<unknown>(undefined);
  const kinds: string[] = [];
  await consume(jobs, {
    async handler({ message: { id } }) {
      goesOn = told();
      print(id);
      await goesOn;
    },
    handlerIsIdempotent: true,
    autoExtend: true,
    onEvent({ kind }) {
      kinds.push(kind);
      if (kind === "acknowledged" || kind === "leaseLost") stop.abort();
    },
    signal: stop.signal,
  });
  print(kinds.filter((kind) => kind !== "stopped"));
} else {
  const ids: string[] = [];
  const lost: string[] = [];
  for (let found = await jobs.receive(16); found.length > 0; found = await jobs.receive(16)) {
    const outcomes = await jobs.ackMany(found.map(({ lease }) => lease.receipt));
    for (const [index, { message: { id } }] of found.entries()) {
      (outcomes[index] === AckOutcome.acknowledged ? ids : lost).push(id);
    }
  }
  print({ ids, lost });
}
await jobs.close();
process.exit(0);
