/**
 * The end of a broker value.
 *
 * @module
 */

import { refuses } from "../assert.ts";
import { type CaseDefinition } from "../case.ts";
import { lease } from "../steps.ts";
import { callsOf, prepareCalls } from "./calls.ts";

/** Closing. */
export const closeCases: readonly CaseDefinition[] = [
  {
    id: "close-refuses",
    title: "after close every call is refused",
    needs: ["close"],
    async run(context) {
      const prepared = await prepareCalls(context);
      await context.broker.close();
      for (const { method, call } of callsOf(context, prepared)) {
        await refuses(() => call(undefined), "QUEUE_CLOSED", `A ${method} after close`);
      }
    },
  },
  {
    id: "close-again",
    title: "closing again does nothing, in either way",
    needs: ["close"],
    async run({ broker }) {
      await lease(broker);
      await broker.close();
      await broker.close();
      await broker[Symbol.asyncDispose]();
    },
  },
  {
    id: "close-dispose",
    title: "disposing of it closes it",
    needs: ["close"],
    async run({ broker }) {
      await broker[Symbol.asyncDispose]();
      await refuses(() => broker.receive(1), "QUEUE_CLOSED", "A receive after it was disposed of");
      await broker.close();
    },
  },
  {
    id: "close-concurrently",
    title: "closing twice at once, and beside calls that are under way, resolves",
    needs: ["close"],
    async run({ broker }) {
      const calls = [broker.publish(new Uint8Array(10)), broker.receive(1)];
      const ends = [broker.close(), broker.close()];
      await Promise.all(ends);
      await Promise.allSettled(calls);
      await refuses(() => broker.receive(1), "QUEUE_CLOSED", "A receive afterwards");
    },
  },
];
