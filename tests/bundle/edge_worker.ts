/**
 * What an edge script does with the queue: makes the broker in global scope, where no random value, timer or controller
 * is to be had, and uses it in a request. The test bundles it with `@x/queue` standing for the entry point under test.
 *
 * @module
 */

import { newMemory } from "@x/queue";

let offset = 0;

const jobs = newMemory({
  policy: { visibilityTimeout: 1_000, maxDeliveries: 5 },
  clock: { now: () => Date.now() + offset },
});

async function answer(request: Request): Promise<unknown> {
  const published = await jobs.publish(new Uint8Array(await request.arrayBuffer()), { headers: { name: "value" } });
  const { signal } = jobs.wake();
  const [first] = await jobs.receive(1);
  const hidden = await jobs.receive(1);
  offset += 1_000;
  const [second] = await jobs.receive(1);
  const late = await jobs.ack(first!.lease.receipt).then(() => "accepted", (error: { reason: string }) => error.reason);
  await jobs.ack(second!.lease.receipt);
  offset += 1_000;
  const left = await jobs.receive(1);
  return {
    payload: new TextDecoder().decode(second!.message.payload),
    sameId: second!.message.id === published.id,
    deliveries: [first!.deliveries, second!.deliveries],
    hidden: hidden.length,
    late,
    left: left.length,
    woken: signal.aborted,
  };
}

export default { fetch: async (request: Request): Promise<Response> => Response.json(await answer(request)) };
