/**
 * Calls whose caller went away.
 *
 * @module
 */

import { equal, rejectsWith } from "../assert.ts";
import { type CaseDefinition } from "../case.ts";
import { abortedSignal, receiveNothing } from "../steps.ts";
import { callsOf, prepareCalls } from "./calls.ts";

/** Aborts. */
export const abortCases: readonly CaseDefinition[] = [
  {
    id: "abort-every-call",
    title: "every call with an aborted signal rejects with the signal's own reason, and nothing happens",
    async run(context) {
      const prepared = await prepareCalls(context);
      const { signal, reason } = abortedSignal();
      for (const { method, call } of callsOf(context, prepared)) {
        await rejectsWith(() => call(signal), reason, `An aborted ${method}`);
      }
      await receiveNothing(context.broker, "after the aborted calls");
      await context.broker.ack(prepared.receipt);
    },
  },
  {
    id: "abort-any-reason",
    title: "the reason may be any value",
    async run({ broker }) {
      for (const reason of ["text", 0, null, new DOMException("Aborted", "AbortError"), { code: 5 }]) {
        const signal = AbortSignal.abort(reason);
        await rejectsWith(() => broker.receive(1, { signal }), signal.reason, `A receive aborted with ${reason}`);
      }
    },
  },
  {
    id: "abort-unused",
    title: "a signal that never aborts changes nothing, however often it is used",
    async run(context) {
      const { signal } = new AbortController();
      for (let round = 0; round < 50; round++) {
        await context.broker.publish(new Uint8Array(1), { signal });
        const [delivery] = await context.broker.receive(1, { signal });
        await context.broker.ack(delivery!.lease.receipt, { signal });
      }
      equal(await context.broker.receive(1, { signal }), [], "What is left");
    },
  },
];
