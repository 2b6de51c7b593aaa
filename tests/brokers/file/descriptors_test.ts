import assert from "node:assert/strict";
import fs from "node:fs";
import { newFile } from "../../../src/brokers/file/mod.ts";
import { faultyOperations, type OperationName } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { bytes, drain, openQueue } from "./queue.ts";

const policy = { visibilityTimeout: 30_000, maxDeliveries: 3 };

/** What this process's descriptors point at, where the system tells. */
function describeDescriptors(): string[] {
  const open: string[] = [];
  for (const descriptor of fs.readdirSync("/proc/self/fd")) {
    try {
      open.push(fs.readlinkSync(`/proc/self/fd/${descriptor}`));
    } catch {
      // The descriptor of the listing itself.
    }
  }
  return open.sort();
}

async function useQueue(dir: string): Promise<void> {
  await using jobs = await newFile({ dir, policy });
  await using _watch = jobs.watch();
  await using _second = jobs.watch();
  await jobs.publishMany([bytes("one"), { payload: new Uint8Array(400_000) }, bytes("three")]);
  await jobs.publishOnce(`key ${Math.random()}`, bytes("once"), 1_000);
  await jobs.reject((await jobs.receive(1))[0]!.lease.receipt);
  await jobs.deadLetters({ max: 5 });
  await jobs.messages({ max: 5 });
  for await (const _ of jobs.allMessages()) break;
  await drain(jobs);
}

if (fs.existsSync("/proc/self/fd")) {
  test("opening, using and closing twenty brokers leaves no descriptor behind", async () => {
    using directory = temporaryDirectory();
    // The first use opens what the runtime itself keeps.
    await useQueue(`${directory.path}/warm`);
    await useQueue(`${directory.path}/warm`);
    const isOurs = (target: string) => target.startsWith(directory.path) || target.includes("inotify");
    const before = describeDescriptors();
    for (let index = 0; index < 20; index++) await useQueue(`${directory.path}/${index % 4}`);
    // A watch is closed by the runtime a little after it was told to.
    let after = describeDescriptors();
    for (let turn = 0; turn < 10_000 && after.length > before.length; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      after = describeDescriptors();
    }
    // The runtime may have closed one of its own meanwhile.
    assert.ok(after.length <= before.length, after.filter(isOurs).join("\n"));
  });
}

test("a refused construction leaves no descriptor behind", async () => {
  using directory = temporaryDirectory();
  const names: readonly OperationName[] = [
    "makeDirectory",
    "status",
    "create",
    "open",
    "flush",
    "list",
    "touch",
    "resolve",
  ];
  let refused = 0;
  for (const operation of names) {
    for (const when of ["before", "after"] as const) {
      for (let nth = 1;; nth++) {
        const faulty = faultyOperations();
        faulty.arm({ operation, nth, when, code: "EIO" });
        const dir = `${directory.path}/${operation}-${when}-${nth}/below`;
        let opened = false;
        try {
          await (await openQueue(dir, { operations: faulty.operations })).close();
          opened = true;
        } catch (error) {
          assert.equal((error as { reason?: string }).reason, "QUEUE_BACKEND_FAILED", `${operation} ${error}`);
          refused++;
        }
        assert.equal(faulty.open.size, 0, `${operation} ${nth} ${when}`);
        if (faulty.thrown === undefined) {
          assert.ok(opened);
          break;
        }
        faulty.disarm();
        await using again = await openQueue(dir, { operations: faulty.operations });
        await again.publish(bytes("x"));
      }
    }
  }
  assert.ok(refused > 20, "there is something to refuse");
});

test("listeners of a signal that outlives the calls are taken back", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  const { signal } = new AbortController();
  const listening = new Set<unknown>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listening.add(args[1]);
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listening.delete(args[1]);
    remove(...args);
  };
  for (let round = 0; round < 10; round++) {
    await jobs.publish(bytes("x"), { signal });
    await jobs.publishMany([bytes("y")], { signal });
    for (const { lease } of await jobs.receive(2, { signal })) await jobs.ack(lease.receipt, { signal });
    await jobs.stats({ signal });
    const watch = jobs.watch({ signal });
    await watch[Symbol.asyncDispose]();
    await watch[Symbol.asyncDispose]();
  }
  assert.equal(listening.size, 0);
});
