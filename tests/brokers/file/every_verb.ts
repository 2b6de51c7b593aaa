/**
 * Uses a queue directory in every way there is; started under narrow permissions by the permissions' test.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { type BrokerEvent, consume, deliveries, newFile, newMemory } from "../../../mod.ts";

const dir = process.argv[2];
const policy = { visibilityTimeout: 30_000, maxDeliveries: 3, deadLetterRetention: 60_000, maxAge: 60_000 };
const events: BrokerEvent[] = [];
const onEvent = (event: BrokerEvent) => void events.push(event);
await using jobs = dir === undefined ? newMemory({ policy }) : await newFile({ dir, policy, onEvent });

const byte = Uint8Array.of(1);
await using _watch = jobs.watch({ onEvent });
const wake = jobs.wake();
await jobs.publish(byte, { headers: { "content-type": "text/plain" } });
assert.ok(wake.signal.aborted);
await Promise.all([jobs.publish(byte), jobs.publishPriority(byte, 2), jobs.publishAt(byte, new Date(0))]);
assert.equal((await jobs.publishOnce("key", byte, 1_000)).published, true);
assert.equal((await jobs.publishOnce("key", byte, 1_000)).published, false);
await jobs.publishMany([byte, { payload: new Uint8Array(500_000) }, byte]);

const leased = await jobs.receive(8);
assert.equal(leased.length, 8);
const [a, b, c, d, e, f] = leased.map(({ lease }) => lease.receipt);
const { receipt } = await jobs.extend(a!, 60_000);
assert.deepEqual(await jobs.ackMany([receipt]), [1]);
await jobs.ack(b!);
await jobs.nack(c!, new Error("Once"));
await jobs.nackAfter(d!, new Error("Later"), 10);
await jobs.reject(e!, new Error("Never"));
await jobs.release(f!);

const [dead] = await jobs.deadLetters({ max: 10 });
assert.equal((await jobs.deadLettersAfter({ max: 10 })).length, 1);
await jobs.replayDeadLetter(dead!.message.id);
await jobs.putDeadLetter({ ...dead!, message: { ...dead!.message, id: "" } });
await jobs.putDeadLetter({ ...dead!, message: { ...dead!.message, id: "" } });
assert.equal(await jobs.replayDeadLetters({ max: 1 }), 1);
assert.equal(await jobs.purgeDeadLetters({ before: new Date(Date.now() + 1_000), max: 10 }), 1);
const [live] = await jobs.messages({ max: 1 });
await jobs.putMessage({ ...live!, leased: false, message: { ...live!.message, id: "" } });
const listed = await Array.fromAsync(jobs.allMessages());
const { queued, leased: held } = await jobs.stats();
assert.equal(listed.length, queued + held);

for await (const { lease } of deliveries(jobs)) {
  await jobs.ack(lease.receipt);
  break;
}
const stop = new AbortController();
await consume(jobs, { handler: () => stop.abort(), handlerIsIdempotent: true, signal: stop.signal });
await jobs.purge();
assert.equal((await jobs.stats()).queued, 0);
assert.deepEqual(events, [], "It watches, and passes nothing over");
console.log("every verb");
