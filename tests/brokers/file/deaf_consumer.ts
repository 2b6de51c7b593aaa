/**
 * Consumes what another opener of the directory publishes, until it has had so much: `DIR COUNT`. Prints as JSON what was
 * told of the watch, how long the consumer waits at most between two looks, and the texts in the order of their coming.
 */

import process from "node:process";
import { consume, type ConsumeEvent } from "../../../src/consume/mod.ts";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { openAsProcess } from "../../support/file_processes.ts";

const [dir = "", count] = process.argv.slice(2);
const policy = { visibilityTimeout: 60_000, maxDeliveries: 5 };
const publisher = await openAsProcess({ dir, policy });
const jobs = await newFile({ dir, policy });
const failures: ConsumeEvent[] = [];
const texts: string[] = [];
let longest = 0;
const stop = new AbortController();
await consume(jobs, {
  handler: ({ message }) => {
    texts.push(new TextDecoder().decode(message.payload));
    if (texts.length === Number(count)) stop.abort();
  },
  handlerIsIdempotent: true,
  signal: stop.signal,
  clock: {
    now: () => systemClock.now(),
    setTimer(delay, callback) {
      // Until the stop an idle consumer sets no other timer than its poll.
      if (!stop.signal.aborted) longest = Math.max(longest, delay);
      return systemClock.setTimer(delay, callback);
    },
  },
  onEvent: (event) => {
    if (event.kind === "watchFailed") {
      failures.push(event);
      // Some systems refuse a watch only after a while; what was waited for till then was meant to be heard of.
      longest = 0;
      void publishAll();
    }
  },
});
await jobs.close();
await publisher.close();
const whys = failures.map((failure) => "why" in failure && failure.why);
console.log(JSON.stringify({ whys, longest, texts }));
process.exit(0);

/** One after another, each once the one before has come. */
async function publishAll(): Promise<void> {
  for (let index = 0; index < Number(count); index++) {
    await publisher.publish(new TextEncoder().encode(`message ${index}`));
    while (texts.length <= index) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
