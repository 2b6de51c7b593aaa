import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileOperations } from "../../../src/brokers/file/operations.ts";
import { isQueueError } from "../../../src/core/error.ts";
import { AckOutcome, type Receipt } from "../../../src/core/values.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { unflushedOperations } from "../../support/file_faults.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { pathsBelow } from "./on_disk.ts";
import { bytes, openQueue, settle, textsOf } from "./queue.ts";

/** File operations that note every path they are given. */
function watched(inner: FileOperations): { operations: FileOperations; paths: string[] } {
  const paths: string[] = [];
  const operations = {} as Record<string, unknown>;
  for (const [name, call] of Object.entries(inner)) {
    operations[name] = (...args: unknown[]) => {
      if (name !== "sha256") paths.push(...args.filter((argument) => typeof argument === "string"));
      return (call as (...args: unknown[]) => unknown)(...args);
    };
  }
  return { operations: operations as unknown as FileOperations, paths };
}

/** Receipts that were never issued, made from one that was. */
function unknownReceipts(receipt: string): unknown[] {
  const [bucket, name] = receipt.split(".") as [string, string];
  return [
    "",
    ".",
    "..",
    "/",
    "nonsense",
    bucket,
    name,
    `${bucket}/${name}`,
    `${bucket}.`,
    `.${name}`,
    `../${bucket}.${name}`,
    `../../etc.passwd`,
    `${bucket}./${name}`,
    `${bucket}..${name}`,
    `${bucket}.${name}/../x`,
    `${bucket}.../ready/${name}`,
    `/etc/passwd.${name}`,
    `%2e%2e.${name}`,
    `${bucket}\0.${name}`,
    `${receipt}\n`,
    `${receipt} `,
    ` ${receipt}`,
    `${receipt}.${name}`,
    receipt.toLowerCase(),
    `0${receipt}`,
    receipt.slice(1),
    receipt.slice(0, -1),
    `${receipt}0`,
    // A waiting entry's name is no receipt, nor is one that was never delivered.
    `${bucket}.${name.replace("l", "a")}`,
    `${bucket}.${name.replace(/-1-2-n-/, "-0-2-n-")}`,
    undefined,
    null,
    42,
    {},
    [receipt],
    Symbol("receipt"),
    { toString: () => receipt },
  ];
}

test("receipts that were never issued are unknown, and lead to no file", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  fs.writeFileSync(`${directory.path}/passwd`, "outside");
  const { operations, paths } = watched(unflushedOperations());
  await using jobs = await openQueue(dir, { operations });
  await jobs.publish(bytes("held"));
  const [held] = await jobs.receive(1);
  await settle();
  const before = pathsBelow(dir);
  const touched = paths.length;
  for (const value of unknownReceipts(held!.lease.receipt)) {
    const receipt = value as Receipt;
    const calls = [
      () => jobs.ack(receipt),
      () => jobs.nack(receipt),
      () => jobs.nackAfter(receipt, undefined, 10),
      () => jobs.reject(receipt),
      () => jobs.release(receipt),
      () => jobs.extend(receipt, 1_000),
    ];
    for (const call of calls) {
      await assert.rejects(call, (error) => isQueueError(error, "UNKNOWN_RECEIPT"), `${call} ${String(value)}`);
    }
    assert.deepEqual(await jobs.ackMany([receipt]), [AckOutcome.unknownReceipt]);
  }
  assert.equal(paths.length, touched, "no receipt reached the file system");
  assert.deepEqual(pathsBelow(dir), before);
  await jobs.ack(held!.lease.receipt);
});

test("a well-formed receipt of a lease that is not there has expired, whatever it names", async () => {
  using directory = temporaryDirectory();
  const dir = `${directory.path}/queue`;
  const clock = new ManualClock();
  const { operations, paths } = watched(unflushedOperations());
  await using jobs = await openQueue(dir, { clock, operations });
  await jobs.publish(bytes("held"));
  const [held] = await jobs.receive(1);
  const { receipt } = held!.lease;
  const [bucket, name] = receipt.split(".") as [string, string];
  const forged = [
    `${bucket}.${name.slice(0, -10)}0123456789`,
    `${bucket}.${name.replace(name.slice(14, 40), "0".repeat(26))}`,
    `${bucket}.${name.replace("-1-2-n-", "-2-2-n-")}`,
    `${bucket}.${name.replace(name.slice(0, 13), "9999999999999")}`,
    `9999999999999-0123456789.${name}`,
    `0000000000000-ZZZZZZZZZZ.${name}`,
  ];
  for (const value of forged) {
    assert.notEqual(value, receipt);
    const receipts = value as Receipt;
    await assert.rejects(jobs.ack(receipts), (error) => isQueueError(error, "LEASE_EXPIRED"), value);
    await assert.rejects(jobs.nack(receipts), (error) => isQueueError(error, "LEASE_EXPIRED"), value);
    await assert.rejects(jobs.extend(receipts, 10), (error) => isQueueError(error, "LEASE_EXPIRED"), value);
    await assert.rejects(jobs.release(receipts), (error) => isQueueError(error, "LEASE_EXPIRED"), value);
    await assert.rejects(jobs.reject(receipts), (error) => isQueueError(error, "LEASE_EXPIRED"), value);
    assert.deepEqual(await jobs.ackMany([receipts]), [AckOutcome.leaseExpired]);
  }
  const afterOpening = paths.slice(paths.lastIndexOf(`${dir}/tmp/clock`) + 1);
  assert.ok(afterOpening.length > 0);
  for (const path of afterOpening) assert.ok(path.startsWith(`${dir}/`) && !path.includes(".."), path);
  await jobs.ack(receipt);
  await assert.rejects(jobs.ack(receipt), (error) => isQueueError(error, "LEASE_EXPIRED"));
});

test("a receipt of another queue's lease has expired here, and the lease there holds", async () => {
  using directory = temporaryDirectory();
  await using here = await openQueue(`${directory.path}/here`);
  await using there = await openQueue(`${directory.path}/there`);
  await there.publish(bytes("theirs"));
  const [theirs] = await there.receive(1);
  await assert.rejects(here.ack(theirs!.lease.receipt), (error) => isQueueError(error, "LEASE_EXPIRED"));
  await there.ack(theirs!.lease.receipt);
});

test("a refused receipt changes nothing: the message is delivered with the count that it had", async () => {
  using directory = temporaryDirectory();
  const clock = new ManualClock();
  await using jobs = await openQueue(directory.path, { clock });
  await jobs.publish(bytes("again"));
  const [first] = await jobs.receive(1);
  clock.set(clock.now() + 30_000);
  await assert.rejects(jobs.nack(first!.lease.receipt), (error) => isQueueError(error, "LEASE_EXPIRED"));
  await assert.rejects(jobs.release(first!.lease.receipt), (error) => isQueueError(error, "LEASE_EXPIRED"));
  const again = await jobs.receive(1);
  assert.deepEqual(textsOf(again), ["again"]);
  assert.equal(again[0]!.deliveries, 2);
});
