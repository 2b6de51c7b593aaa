import assert from "node:assert/strict";
import { newMemory } from "../../src/brokers/memory/mod.ts";
import type { Broker } from "../../src/core/broker.ts";
import * as core from "../../src/core/capabilities/mod.ts";
import { wrapBroker } from "../../src/core/wrap.ts";
import { test } from "../support/test.ts";

const policy = { visibilityTimeout: 30_000, maxDeliveries: 5 };

const guards: Readonly<Record<core.CapabilityName, (broker: unknown) => boolean>> = {
  Acker: core.isAcker,
  AckPublisher: core.isAckPublisher,
  BatchPublisher: core.isBatchPublisher,
  Counter: core.isCounter,
  DeadLetterBulkManager: core.isDeadLetterBulkManager,
  DeadLetterManager: core.isDeadLetterManager,
  DeadLetterPager: core.isDeadLetterPager,
  DeadLetterReader: core.isDeadLetterReader,
  DeadLetterWriter: core.isDeadLetterWriter,
  DelayedNacker: core.isDelayedNacker,
  DelayedPublisher: core.isDelayedPublisher,
  LeaseExtender: core.isLeaseExtender,
  MessageLister: core.isMessageLister,
  MessageReader: core.isMessageReader,
  MessageWriter: core.isMessageWriter,
  OncePublisher: core.isOncePublisher,
  PriorityPublisher: core.isPriorityPublisher,
  Purger: core.isPurger,
  Rejecter: core.isRejecter,
  Releaser: core.isReleaser,
  Waker: core.isWaker,
  Watcher: core.isWatcher,
};

test("every capability has a guard that asks for exactly its methods", () => {
  for (const [name, methods] of Object.entries(core.capabilities)) {
    const guard = guards[name as core.CapabilityName];
    const full = Object.fromEntries(methods.map((method) => [method, () => {}]));
    assert.ok(guard(full), name);
    for (const method of methods) assert.ok(!guard({ ...full, [method]: undefined }), `${name} needs ${method}`);
    for (const nothing of [undefined, null, "broker", 5]) assert.ok(!guard(nothing), name);
  }
});

test("wrapBroker() answers every guard as the broker it wraps", () => {
  const four = { publish() {}, receive() {}, ack() {}, nack() {} } as unknown as Broker;
  const some = { ...four, extend() {}, deadLetters() {} } as unknown as Broker;
  for (const broker of [newMemory({ policy }), four, some]) {
    const wrapped = wrapBroker(broker, (_, proceed) => proceed());
    for (const [name, guard] of Object.entries(guards)) assert.equal(guard(wrapped), guard(broker), name);
    assert.equal("policy" in wrapped, "policy" in broker);
    assert.equal(Symbol.asyncDispose in wrapped, Symbol.asyncDispose in broker);
  }
});

test("wrapBroker() shows each call and lets it be changed, answered or refused", async () => {
  const seen: string[] = [];
  const jobs = wrapBroker(newMemory({ policy }), ({ method, args }, proceed) => {
    seen.push(method);
    if (method === "publish") return proceed([new Uint8Array([9]), args[1]]);
    if (method === "stats") return Promise.resolve("instead");
    if (method === "purge") throw new Error("refused");
    return proceed();
  });
  await jobs.publish(new Uint8Array([1]));
  const [delivery] = await jobs.receive(1);
  assert.deepEqual([...delivery!.message.payload], [9]);
  assert.equal(await jobs.stats() as unknown, "instead");
  assert.throws(() => jobs.purge(), /refused/);
  await jobs.close();
  assert.deepEqual(seen, ["publish", "receive", "stats", "purge", "close"]);
});
