/**
 * Processes that are halted longer than their leases last, and processes whose clocks are an hour apart.
 */

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { newFile } from "../../src/brokers/file/mod.ts";
import { deliveries } from "../../src/consume/deliveries.ts";
import { startProgram } from "../support/children.ts";
import { findRuntimes } from "../support/runtimes.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { test } from "../support/test.ts";

const program = fileURLToPath(new URL("./worker.ts", import.meta.url));
const policy = { visibilityTimeout: 60_000, maxDeliveries: 5 };

for (const settled of [false, true]) {
  test(`a process that was halted beyond its lease settles nothing, ${settled ? "settled" : "held"} by another`, async () => {
    using directory = temporaryDirectory();
    const dir = directory.path;
    await using jobs = await newFile({ dir, policy });
    const { id } = await jobs.publish(new Uint8Array(3));
    const child = await startProgram(program, ["hold", dir, "1000"]);
    assert.equal(await child.start(), id);
    child.signal("SIGSTOP");
    for await (const { message, lease, deliveries: count } of deliveries(jobs)) {
      assert.deepEqual([message.id, count], [id, 2]);
      if (settled) await jobs.ack(lease.receipt);
      child.signal("SIGCONT");
      assert.equal(await child.goOn(), "LEASE_EXPIRED");
      if (!settled) await jobs.ack(lease.receipt);
      break;
    }
    await child.end();
    const { queued, leased, dead } = await jobs.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
  });
}

test("a halted process whose message nobody took meanwhile settles nothing either, and the message comes back", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await newFile({ dir, policy });
  const { id } = await jobs.publish(new Uint8Array(3));
  const child = await startProgram(program, ["hold", dir, "500"]);
  await child.start();
  child.signal("SIGSTOP");
  // The lease ends by the clock of the machine.
  for (const end = Date.now() + 501; Date.now() < end;) await new Promise((resolve) => setTimeout(resolve, 10));
  child.signal("SIGCONT");
  assert.equal(await child.goOn(), "LEASE_EXPIRED");
  await child.end();
  const [again] = await jobs.receive(1);
  assert.deepEqual([again!.message.id, again!.deliveries], [id, 2]);
});

test("a consumer that was halted within its handler is told that its lease is lost, though it renews leases", async () => {
  using directory = temporaryDirectory();
  const dir = directory.path;
  await using jobs = await newFile({ dir, policy });
  const { id } = await jobs.publish(new Uint8Array(3));
  const child = await startProgram(program, ["consume", dir, "1000"]);
  assert.equal(await child.start(), id);
  child.signal("SIGSTOP");
  for await (const { message, lease } of deliveries(jobs)) {
    assert.equal(message.id, id);
    await jobs.ack(lease.receipt);
    break;
  }
  child.signal("SIGCONT");
  assert.deepEqual(await child.goOn(), ["leaseLost"]);
  await child.end();
  const { queued, leased, dead } = await jobs.stats();
  assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
});

for (const [lease, duplicates] of [[4 * 3_600_000, false], [60_000, true]] as const) {
  test(`processes whose clocks are an hour apart drain one directory, with leases of ${lease / 60_000} minutes`, async () => {
    using directory = temporaryDirectory();
    const dir = directory.path;
    await using jobs = await newFile({ dir, policy });
    const published = (await jobs.publishMany(Array.from({ length: 1_500 }, () => new Uint8Array(3)))).map(({ id }) =>
      id
    );
    const runtimes = findRuntimes();
    const children = await Promise.all([0, 3_600_000, -3_600_000].map((skew, index) => {
      return startProgram(program, ["drain", dir, String(lease), String(skew)], runtimes[index % runtimes.length]);
    }));
    const drained = await Promise.all(
      children.map((child) => child.start() as Promise<{ ids: string[]; lost: string[] }>),
    );
    await Promise.all(children.map((child) => child.end()));
    // A lease of the one behind has ended for the others, so what it held is handled twice, and acknowledged once.
    const acknowledged = drained.flatMap(({ ids }) => ids);
    assert.deepEqual(acknowledged.sort(), published);
    if (!duplicates) assert.deepEqual(drained.flatMap(({ lost }) => lost), []);
    const { queued, leased, dead } = await jobs.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
  });
}
