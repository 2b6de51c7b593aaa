/**
 * Holding a watch. What other processes do is beyond these cases.
 *
 * @module
 */

import { equal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { payloadText, receiveOne } from "../steps.ts";

/** Watching. */
export const watchCases: readonly CaseDefinition[] = [
  {
    id: "watch-held",
    title: "a watch is held and let go, twice without harm, and the queue works meanwhile and after",
    needs: ["Watcher"],
    async run({ broker }) {
      const watch = broker.watch();
      await broker.publish(bytes("meanwhile"));
      equal(payloadText(await receiveOne(broker)), "meanwhile", "What is receivable meanwhile");
      await watch[Symbol.asyncDispose]();
      await watch[Symbol.asyncDispose]();
      await broker.publish(bytes("after"));
      equal(payloadText(await receiveOne(broker)), "after", "What is receivable after");
    },
  },
  {
    id: "watch-many",
    title: "several may be held, and letting one go leaves the others",
    needs: ["Watcher", "Waker"],
    async run({ broker }) {
      const [first, second] = [broker.watch(), broker.watch()];
      await second[Symbol.asyncDispose]();
      const { signal } = broker.wake();
      await broker.publish(bytes("work"));
      equal(signal.aborted, true, "Whether the signal has fired");
      await first[Symbol.asyncDispose]();
    },
  },
  {
    id: "watch-signal",
    title: "a signal ends a watch, before it began too",
    needs: ["Watcher"],
    async run({ broker }) {
      const controller = new AbortController();
      const watch = broker.watch({ signal: controller.signal });
      controller.abort();
      const late = broker.watch({ signal: controller.signal });
      await late[Symbol.asyncDispose]();
      await watch[Symbol.asyncDispose]();
    },
  },
  {
    id: "watch-listener",
    title: "a listener that throws disturbs nothing",
    needs: ["Watcher"],
    async run({ broker }) {
      const watch = broker.watch({
        onEvent: () => {
          throw new Error("The listener failed");
        },
      });
      await broker.publish(bytes("work"));
      equal(payloadText(await receiveOne(broker)), "work", "What is receivable");
      await watch[Symbol.asyncDispose]();
    },
  },
];
