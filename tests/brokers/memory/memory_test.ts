// Not conformance cases: what only a broker in memory promises, or only it can be asked.

import assert from "node:assert/strict";
import { isQueueError, type Policy, QueueError, type Receipt } from "../../../src/core/mod.ts";
import { newMemory } from "../../../src/brokers/memory/mod.ts";
import { ManualClock } from "../../../src/testing/mod.ts";
import { test } from "../../support/test.ts";

const policy: Policy = { visibilityTimeout: 30_000, maxDeliveries: 3 };
const bytes = (text: string) => new TextEncoder().encode(text);
const text = (payload: Uint8Array) => new TextDecoder().decode(payload);

/** Runs a body while some globals are replaced. */
function withGlobals(replaced: Record<string, unknown>, body: () => void): void {
  const originals = Object.keys(replaced).map((name) =>
    [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const
  );
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  try {
    body();
  } finally {
    for (const [name, descriptor] of originals) {
      if (descriptor === undefined) delete (globalThis as Record<string, unknown>)[name];
      else Object.defineProperty(globalThis, name, descriptor);
    }
  }
}

test("newMemory() does nothing that an edge runtime refuses in global scope", async () => {
  const refuse = () => {
    throw new Error("Disallowed in global scope");
  };
  let jobs: ReturnType<typeof newMemory> | undefined;
  const { random } = Math;
  Math.random = refuse;
  try {
    withGlobals({
      crypto: { getRandomValues: refuse, randomUUID: refuse, subtle: undefined },
      AbortController: refuse,
      setTimeout: refuse,
      setInterval: refuse,
      queueMicrotask: refuse,
      MessageChannel: refuse,
      fetch: refuse,
    }, () => jobs = newMemory({ policy: { ...policy, retryDelay: 10, maxRetryDelay: 100, retryJitter: 1 } }));
  } finally {
    Math.random = random;
  }
  await jobs!.publish(bytes("later"));
  const [delivery] = await jobs!.receive(1);
  await jobs!.nack(delivery!.lease.receipt);
});

test("a receipt of another memory broker is unknown, one of this broker stays known", async () => {
  const [jobs, other] = [newMemory({ policy }), newMemory({ policy })];
  await jobs.publish(bytes("a"));
  await other.publish(bytes("b"));
  const [delivery] = await jobs.receive(1);
  const [foreign] = await other.receive(1);
  await assert.rejects(jobs.ack(foreign!.lease.receipt), (error) => isQueueError(error, "UNKNOWN_RECEIPT"));
  await jobs.ack(delivery!.lease.receipt);
  await assert.rejects(jobs.ack(delivery!.lease.receipt), (error) => isQueueError(error, "LEASE_EXPIRED"));
  const forged = [undefined, null, 7, {}, "", "../x", `${delivery!.lease.receipt}/`];
  assert.deepEqual(await jobs.ackMany(forged as Receipt[]), forged.map(() => 3));
});

test("publish() returns the caller's own buffer and keeps a copy", async () => {
  const jobs = newMemory({ policy });
  for (const size of [3, 64, 1_024, 1_025, 4_096, 4_097]) {
    const payload = new Uint8Array(size).fill(1);
    const message = await jobs.publish(payload);
    assert.equal(message.payload, payload);
    payload.fill(2);
    const [delivery] = await jobs.receive(1);
    assert.deepEqual(delivery!.message.payload, new Uint8Array(size).fill(1));
    await jobs.ack(delivery!.lease.receipt);
  }
});

test("deliveries of one call share no byte, and each can be viewed as 64-bit words", async () => {
  const jobs = newMemory({ policy });
  const sizes = [0, 1, 16, 7, 1_024, 64, 2_000, 24];
  for (let round = 0; round < 20; round++) {
    await jobs.publishMany(sizes.map((size) => new Uint8Array(size).fill(size)));
  }
  const deliveries = await jobs.receive(1_000);
  for (const { message } of deliveries) message.payload.fill(255 - message.payload.length % 256);
  for (const [at, { message: { payload } }] of deliveries.entries()) {
    const size = sizes[at % sizes.length]!;
    assert.deepEqual(payload, new Uint8Array(size).fill(255 - size % 256));
    assert.equal(
      new Float64Array(payload.buffer, payload.byteOffset, Math.floor(size / 8)).length,
      Math.floor(size / 8),
    );
  }
  const [first] = deliveries;
  await jobs.release(first!.lease.receipt);
});

test("a delivery that is alone has a buffer of its own, and a large one always", async () => {
  const jobs = newMemory({ policy });
  await jobs.publish(bytes("alone"));
  const [alone] = await jobs.receive(5);
  assert.equal(alone!.message.payload.buffer.byteLength, 5);
  await jobs.publishMany([new Uint8Array(2_000), new Uint8Array(10), new Uint8Array(20)]);
  const [large] = await jobs.receive(3);
  assert.equal(large!.message.payload.buffer.byteLength, 2_000);
});

test("a transferred payload costs its own call's payloads and nothing that is stored", async () => {
  const jobs = newMemory({ policy });
  await jobs.publishMany(Array.from({ length: 10 }, (_, at) => bytes(`number ${at}`)));
  const [delivery] = await jobs.receive(2);
  structuredClone(delivery!.message.payload, { transfer: [delivery!.message.payload.buffer as ArrayBuffer] });
  const texts = (await jobs.receive(8)).map(({ message }) => text(message.payload));
  assert.deepEqual(texts, Array.from({ length: 8 }, (_, at) => `number ${at + 2}`));
  const [listed] = await jobs.messages({ max: 1 });
  assert.equal(text(listed!.message.payload), "number 0");
});

test("a step of the clock hides nothing that was visible, and holds back what was delayed", async () => {
  const clock = new ManualClock();
  const start = clock.now();
  const jobs = newMemory({ policy, clock });
  await jobs.publish(bytes("now"));
  await jobs.publishAt(bytes("later"), new Date(start + 1_000));
  clock.set(start - 3_600_000);
  const [first, none] = await jobs.receive(2);
  assert.deepEqual([text(first!.message.payload), none], ["now", undefined]);
  await jobs.release(first!.lease.receipt);
  assert.equal(jobs.wake().in, 0);
  clock.set(start + 999);
  assert.equal((await jobs.receive(2)).length, 1);
  clock.set(start + 1_000);
  assert.deepEqual((await jobs.receive(2)).map(({ message }) => text(message.payload)), ["later"]);
});

test("receive() buries a bounded number of expired messages, and wake() says to come back at once", async () => {
  const clock = new ManualClock();
  const jobs = newMemory({ policy: { ...policy, maxAge: 1_000 }, clock });
  await jobs.publishMany(Array.from({ length: 2_500 }, () => new Uint8Array(8)));
  clock.set(clock.now() + 1_000);
  await jobs.publish(bytes("fresh"));
  const counts: unknown[] = [];
  let found = "";
  while (found === "") {
    const [delivery] = await jobs.receive(1);
    if (delivery !== undefined) found = text(delivery.message.payload);
    const { dead } = await jobs.stats();
    counts.push([dead, found === "" ? jobs.wake().in : undefined]);
  }
  assert.equal(found, "fresh");
  assert.deepEqual(counts, [[1_000, 0], [2_000, 0], [2_500, undefined]]);
});

test("receive() buries a bounded number of lapsed messages that have no attempt left", async () => {
  const clock = new ManualClock();
  const jobs = newMemory({ policy: { ...policy, maxDeliveries: 1 }, clock });
  await jobs.publishMany(Array.from({ length: 1_500 }, () => new Uint8Array(8)));
  assert.equal((await jobs.receive(2_000)).length, 1_500);
  clock.set(clock.now() + policy.visibilityTimeout);
  assert.deepEqual(await jobs.receive(1), []);
  const { scheduled, in: wait } = jobs.wake();
  assert.deepEqual([(await jobs.stats()).dead, scheduled, wait], [1_000, true, 0]);
  assert.deepEqual(await jobs.receive(1), []);
  assert.deepEqual([(await jobs.stats()).dead, jobs.wake().scheduled], [1_500, false]);
});

test("a retention sweep deletes 100 dead letters a call and goes on in the next", async () => {
  const clock = new ManualClock();
  const jobs = newMemory({ policy: { ...policy, deadLetterRetention: 60_000 }, clock });
  await jobs.publishMany(Array.from({ length: 250 }, () => new Uint8Array(8)));
  for (const { lease } of await jobs.receive(250)) await jobs.reject(lease.receipt);
  clock.set(clock.now() + 60_001);
  const counts: number[] = [];
  for (let call = 0; call < 4; call++) {
    await jobs.receive(1);
    counts.push((await jobs.stats()).dead);
  }
  assert.deepEqual(counts, [150, 50, 0, 0]);
});

test("the code of the last failure joins the trail of a message that expires", async () => {
  const clock = new ManualClock();
  const jobs = newMemory({ policy: { ...policy, maxAge: 1_000 }, clock });
  await jobs.publishMany([bytes("failed"), bytes("fresh")]);
  const [failed] = await jobs.receive(1);
  await jobs.nack(failed!.lease.receipt, new QueueError("TASK_TIMEOUT"));
  clock.set(clock.now() + 1_000);
  assert.deepEqual(await jobs.receive(2), []);
  const dead = await jobs.deadLetters({ max: 2 });
  assert.deepEqual(dead.map(({ trail, deliveries }) => [trail, deliveries]), [[[262_660], 1], [undefined, 0]]);
});

test("a retention sweep is not put off by a clock that steps back", async () => {
  const clock = new ManualClock();
  const jobs = newMemory({ policy: { ...policy, deadLetterRetention: 1_000 }, clock });
  await jobs.receive(1);
  clock.set(clock.now() - 3_600_000);
  await jobs.publish(bytes("a"));
  const [delivery] = await jobs.receive(1);
  await jobs.reject(delivery!.lease.receipt);
  clock.set(clock.now() + 60_000);
  await jobs.receive(1);
  assert.equal((await jobs.stats()).dead, 0);
});

test("a delivery count stops at the greatest that is kept, and a release counts back from there", async () => {
  const jobs = newMemory({ policy });
  const message = { id: "", enqueuedAt: new Date(0), payload: bytes("old"), headers: {} };
  const deliveries = 2_147_483_647;
  await jobs.putMessage({ message, visibleAt: new Date(0), deliveries, leased: false, priority: 0 });
  for (let round = 0; round < 2; round++) {
    const [delivery] = await jobs.receive(1);
    assert.equal(delivery!.deliveries, deliveries);
    await jobs.release(delivery!.lease.receipt);
  }
});

test("a wake signal exists only for who took it, fires once, and fires on close()", async () => {
  const jobs = newMemory({ policy });
  const { signal } = jobs.wake();
  assert.equal(jobs.wake().signal, signal);
  await jobs.publish(bytes("a"));
  assert.ok(signal.aborted);
  const next = jobs.wake().signal;
  assert.ok(!next.aborted);
  await jobs.close();
  await jobs.close();
  assert.ok(next.aborted);
});

test("a listener of the wake may use the broker at once", async () => {
  const jobs = newMemory({ policy });
  const received: Promise<unknown[]>[] = [];
  jobs.wake().signal.addEventListener("abort", () => received.push(jobs.receive(10)));
  await jobs.publishMany([bytes("a"), bytes("b"), bytes("c")]);
  assert.equal((await received[0])!.length, 3);
});

test("messages() keeps its order after messages of a later instant came from elsewhere and went", async () => {
  const jobs = newMemory({ policy });
  const message = { id: "", enqueuedAt: new Date(Date.UTC(2100, 0, 1)), payload: bytes("copied"), headers: {} };
  for (let copy = 0; copy < 10; copy++) {
    await jobs.putMessage({ message, visibleAt: new Date(0), deliveries: 0, leased: false, priority: 0 });
  }
  await jobs.ackMany((await jobs.receive(10)).map(({ lease }) => lease.receipt));
  const ids = (await jobs.publishMany(Array.from({ length: 5 }, () => bytes("new")))).map(({ id }) => id);
  assert.deepEqual((await jobs.messages({ after: ids[2], max: 10 })).map(({ message }) => message.id), ids.slice(3));
});

test("allMessages() goes on where it is while the queue changes, and each message is whole", async () => {
  const jobs = newMemory({ policy });
  await jobs.publishMany(Array.from({ length: 6 }, (_, at) => bytes(`number ${at}`)));
  const seen: string[] = [];
  for await (const { message } of jobs.allMessages()) {
    seen.push(text(message.payload));
    if (seen.length === 2) await jobs.ackMany((await jobs.receive(4)).map(({ lease }) => lease.receipt));
    if (seen.length === 3) await jobs.publish(bytes("new"));
  }
  assert.deepEqual(seen, ["number 0", "number 1", "number 4", "number 5", "new"]);
});

test("close() ends an iteration with QUEUE_CLOSED, once", async () => {
  const jobs = newMemory({ policy });
  await jobs.publishMany([bytes("a"), bytes("b")]);
  const messages = jobs.allMessages()[Symbol.asyncIterator]();
  await messages.next();
  await jobs.close();
  await assert.rejects(messages.next(), (error) => isQueueError(error, "QUEUE_CLOSED"));
  assert.deepEqual(await messages.next(), { done: true, value: undefined });
});

test("every call after close() is refused, before anything else about it is looked at", async () => {
  const jobs = newMemory({ policy });
  await jobs.close();
  const none = undefined as never;
  const calls: Record<string, () => unknown> = {
    publish: () => jobs.publish(none, { signal: AbortSignal.abort() }),
    publishAt: () => jobs.publishAt(none, none),
    publishPriority: () => jobs.publishPriority(none, none),
    publishOnce: () => jobs.publishOnce(none, none, none),
    publishMany: () => jobs.publishMany(none),
    receive: () => jobs.receive(0),
    ack: () => jobs.ack(none),
    ackMany: () => jobs.ackMany(none),
    ackAndPublish: () => jobs.ackAndPublish(none, none),
    nack: () => jobs.nack(none),
    nackAfter: () => jobs.nackAfter(none, none, NaN),
    reject: () => jobs.reject(none),
    release: () => jobs.release(none),
    extend: () => jobs.extend(none, NaN),
    deadLetters: () => jobs.deadLetters(none),
    deadLettersAfter: () => jobs.deadLettersAfter(none),
    replayDeadLetter: () => jobs.replayDeadLetter(none),
    deleteDeadLetter: () => jobs.deleteDeadLetter(none),
    replayDeadLetters: () => jobs.replayDeadLetters(none),
    purgeDeadLetters: () => jobs.purgeDeadLetters(none),
    putDeadLetter: () => jobs.putDeadLetter(none),
    putMessage: () => jobs.putMessage(none),
    messages: () => jobs.messages(none),
    allMessages: () => jobs.allMessages()[Symbol.asyncIterator]().next(),
    stats: () => jobs.stats(),
    purge: () => jobs.purge(),
    wake: () => jobs.wake(),
    watch: () => jobs.watch(),
  };
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(jobs));
  assert.deepEqual(
    Object.keys(calls).sort(),
    methods.filter((name) => !["constructor", "close"].includes(name)).sort(),
  );
  for (const [name, call] of Object.entries(calls)) {
    await assert.rejects(async () => await call(), (error) => isQueueError(error, "QUEUE_CLOSED"), name);
  }
});

test("a call that throws rejects instead", () => {
  const clock = { now: () => NaN };
  const jobs = newMemory({ policy, clock });
  for (const call of [() => jobs.publish(bytes("a")), () => jobs.receive(1), () => jobs.publishMany(7 as never)]) {
    const promise = call();
    assert.ok(promise instanceof Promise);
    promise.catch(() => {});
  }
  assert.throws(
    () => jobs.wake(),
    (error) => isQueueError(error, "QUEUE_MISCONFIGURED") && error.fields.field === "clock",
  );
});

test("newMemory() refuses a clock or a source of randomness that cannot be one", () => {
  for (const config of [{ clock: {} }, { random: 0.5 }]) {
    const [field] = Object.keys(config);
    const refusal = (error: unknown) => isQueueError(error, "QUEUE_MISCONFIGURED") && error.fields.field === field;
    assert.throws(() => newMemory({ policy, ...config } as never), refusal);
  }
  const refusal = (error: unknown) => isQueueError(error, "QUEUE_MISCONFIGURED") && error.fields.field === "policy";
  assert.throws(() => newMemory(undefined as never), refusal);
});
