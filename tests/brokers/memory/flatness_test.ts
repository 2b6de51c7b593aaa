// Not conformance cases: they count what the structures hold, so that nothing is measured by time or by a heap's size.

import assert from "node:assert/strict";
import { noHeaders, normalizePolicy, type Priority } from "../../../src/core/mod.ts";
import { MemoryStore } from "../../../src/brokers/memory/store.ts";
import { test } from "../../support/test.ts";

const policy = normalizePolicy({ visibilityTimeout: 30_000, maxDeliveries: 3, retryDelay: 100, maxAge: 3_600_000 });
const payload = new Uint8Array(64);

function publication(now: number, priority: Priority = 0) {
  return { payload, visibleAt: now, priority, headers: noHeaders };
}

/** Everything that could grow. */
function footprint(store: MemoryStore): number {
  return store.live.places + store.leases.places + store.waitingCapacity + store.slabs.count + store.onceKeys.size;
}

function receive(store: MemoryStore, now: number, max = 1) {
  return store.receive(max, now, now + policy.visibilityTimeout);
}

test("a million round trips leave every structure as small as the first thousand", () => {
  const store = new MemoryStore(policy, () => 0);
  let now = 1_000_000;
  for (let depth = 0; depth < 10; depth++) store.publish(publication(now), now);
  let after1000 = 0;
  for (let round = 1; round <= 1_000_000; round++) {
    if (round % 100 === 0) now++;
    store.publish(publication(now), now);
    const [lease] = receive(store, now);
    store.remove(lease!);
    if (round === 1_000) after1000 = footprint(store);
  }
  assert.equal(store.live.size, 10);
  assert.ok(footprint(store) <= after1000 + 1_500, `${after1000} after 1 000, ${footprint(store)} after 1 000 000`);
});

test("one message that is held long and one that waits long pin nothing of 200 000 that pass by", () => {
  const store = new MemoryStore(policy, () => 0);
  let now = 1_000_000;
  store.publish(publication(now), now);
  let [held] = receive(store, now);
  store.publish(publication(now, -2), now);
  for (let round = 0; round < 200_000; round++) {
    if (round % 100 === 0) now++;
    if (round % 1_000 === 0) held = store.extend(held!, now + policy.visibilityTimeout);
    store.publish(publication(now), now);
    const [lease] = receive(store, now);
    if (round % 3 === 0) store.release(lease!, 0, now);
    else store.remove(lease!);
    const [again] = round % 3 === 0 ? receive(store, now) : [];
    if (again !== undefined) store.remove(again);
  }
  assert.deepEqual([store.live.size, store.leases.size], [2, 1]);
  assert.ok(footprint(store) < 5_000, `${footprint(store)} places for two messages`);
});

test("a backlog of 100 000 gives its memory back once it is drained, retries and burials included", () => {
  const store = new MemoryStore(policy, () => 0);
  let now = 1_000_000;
  for (let message = 0; message < 100_000; message++) {
    if (message % 50 === 0) now++;
    store.publish(publication(now, (message % 5 - 2) as Priority), now);
  }
  const failure = { reason: "UNCLASSIFIED", cause: "", code: 0, trail: [] };
  while (store.live.size > 0) {
    now += 100;
    for (const [at, lease] of receive(store, now, 500).entries()) {
      if (at % 4 === 0) store.fail(lease, failure, now);
      else store.remove(lease);
    }
  }
  assert.ok(store.dead.size > 0);
  for (const dead of store.dead.page("", 100_000)) store.dead.delete(dead);
  assert.ok(footprint(store) < 5_000, `${footprint(store)} places for no message`);
  assert.ok(store.slabs.count <= 2, `${store.slabs.count} slabs for no message`);
});
