// The memory broker under somebody else's fake time: it reads the global Date late, so FakeTime moves it.
import { assert, assertEquals, assertExists, assertRejects } from "@std/assert";
import { FakeTime } from "@std/testing/time";
import { consume, type Delivery, newMemory, QueueError } from "../../mod.ts";

const policy = {
  visibilityTimeout: 30_000,
  maxDeliveries: 3,
  retryDelay: 5_000,
};
const payload = new TextEncoder().encode("work");

Deno.test("a lease lapses at exactly its end", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const [first] = await jobs.receive(1);
  assertEquals(first?.lease.expiresAt, new Date(Date.now() + 30_000));
  time.tick(29_999);
  assertEquals(await jobs.receive(1), []);
  time.tick(1);
  const [second] = await jobs.receive(1);
  assertEquals(second?.deliveries, 2);
  assertEquals(second?.message, first?.message);
});

Deno.test("an ack from the lease's end on is refused", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const [delivery] = await jobs.receive(1);
  assertExists(delivery);
  time.tick(30_000);
  const error = await assertRejects(
    () => jobs.ack(delivery.lease.receipt),
    QueueError,
  );
  assertEquals(error.reason, "LEASE_EXPIRED");
});

Deno.test("a renewed lease ends so long from now", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const [delivery] = await jobs.receive(1);
  assertExists(delivery);
  time.tick(20_000);
  const renewed = await jobs.extend(delivery.lease.receipt, 60_000);
  time.tick(59_999);
  assertEquals(await jobs.receive(1), []);
  await jobs.ack(renewed.receipt);
  time.tick(60_000);
  assertEquals(await jobs.receive(1), []);
});

Deno.test("a failed message comes back at the end of its delay", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const [delivery] = await jobs.receive(1);
  assertExists(delivery);
  const { visibleAt } = await jobs.nack(delivery.lease.receipt);
  assertEquals(visibleAt, new Date(Date.now() + 5_000));
  time.tick(4_999);
  assertEquals(await jobs.receive(1), []);
  time.tick(1);
  assertEquals((await jobs.receive(1))[0]?.deliveries, 2);
});

Deno.test("a named delay is kept to the tick", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const [delivery] = await jobs.receive(1);
  assertExists(delivery);
  await jobs.nackAfter(delivery.lease.receipt, undefined, 90_000);
  time.tick(89_999);
  assertEquals(await jobs.receive(1), []);
  time.tick(1);
  assertEquals((await jobs.receive(1)).length, 1);
});

Deno.test("a deferred message comes at its instant", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publishAt(payload, new Date(Date.now() + 3_600_000));
  assertEquals(jobs.wake().in, 3_600_000);
  time.tick(3_599_999);
  assertEquals(await jobs.receive(1), []);
  time.tick(1);
  assertEquals((await jobs.receive(1))[0]?.deliveries, 1);
});

Deno.test("a once key is free again at the end of its window", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  assert((await jobs.publishOnce("key", payload, 60_000)).published);
  time.tick(59_999);
  assert(!(await jobs.publishOnce("key", payload, 60_000)).published);
  time.tick(1);
  assert((await jobs.publishOnce("key", payload, 60_000)).published);
});

Deno.test("a consumer waits for a retry on fake timers", async () => {
  using time = new FakeTime();
  await using jobs = newMemory({ policy });
  await jobs.publish(payload);
  const stop = new AbortController();
  const seen: Delivery[] = [];
  const consumer = consume(jobs, {
    handlerIsIdempotent: true,
    handler: (delivery) => {
      seen.push(delivery);
      if (seen.length === 1) throw new Error("The first attempt fails");
      stop.abort();
    },
    signal: stop.signal,
  });
  await time.tickAsync(4_000);
  assertEquals(seen.length, 1);
  await time.tickAsync(2_000);
  await consumer;
  assertEquals(seen.map(({ deliveries }) => deliveries), [1, 2]);
});
