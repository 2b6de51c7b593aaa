/**
 * Processes on one directory whose clocks are an hour apart, and clocks that step.
 */

import assert from "node:assert/strict";
import fs from "node:fs";
import type { FileBroker } from "../../../src/brokers/file/mod.ts";
import { consume } from "../../../src/consume/consume.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { ManualClock } from "../../../src/testing/manual_clock.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { entriesOf, foldersOf } from "./on_disk.ts";
import { bytes, drain, openQueue, textOf, textsOf, withMonotonicClock } from "./queue.ts";

const hour = 3_600_000;
const start = Date.UTC(2026, 0, 1);

/** A process and its clock. */
interface Clocked {
  readonly jobs: FileBroker;
  readonly clock: ManualClock;
}

/** Runs a body with three processes: one that is right, one an hour ahead, one an hour behind. */
async function withThree(
  policy: Partial<Policy>,
  body: (right: Clocked, ahead: Clocked, behind: Clocked, dir: string) => Promise<void>,
): Promise<void> {
  using directory = temporaryDirectory();
  const clocks = [start, start + hour, start - hour].map((instant) => new ManualClock(instant));
  const brokers = await Promise.all(clocks.map((clock) => openQueue(directory.path, { clock, policy })));
  const [right, ahead, behind] = brokers.map((jobs, index) => ({ jobs, clock: clocks[index]! }));
  try {
    await body(right!, ahead!, behind!, directory.path);
  } finally {
    for (const jobs of brokers) await jobs.close();
  }
}

const pass = ({ clock }: Clocked, ms: number) => clock.set(clock.now() + ms);

test("what is published for now is received at once by everybody, whatever the clocks say", async () => {
  await withThree({}, async (...parts) => {
    const three = parts.slice(0, 3) as Clocked[];
    for (const publisher of three) {
      for (const receiver of three) {
        // So many that they fill folders, which are named by the publisher's clock.
        await publisher.jobs.publishMany(Array.from({ length: 1_100 }, (_, index) => bytes(`${index}`)));
        assert.ok(receiver === publisher || (await receiver.jobs.receive(1)).length === 1);
        const { scheduled, in: wait } = receiver.jobs.wake();
        assert.ok(scheduled && wait <= 0);
        assert.ok((await drain(receiver.jobs)).length >= 1_099);
        assert.equal((await receiver.jobs.stats()).ready, 0);
        await receiver.jobs.purge();
      }
    }
  });
});

test("what goes back at once is received at once by everybody, whatever the clocks say", async () => {
  await withThree({ retryDelay: 0, visibilityTimeout: 5 * hour }, async (right, ahead, behind) => {
    await ahead.jobs.publish(bytes("x"));
    for (let turn = 0; turn < 3; turn++) {
      for (const [holder, next] of [[ahead, behind], [behind, right], [right, ahead]] as const) {
        const [first] = await holder.jobs.receive(1);
        await holder.jobs.release(first!.lease.receipt);
        assert.equal((await next.jobs.receive(1)).length, 1, "released");
        await next.jobs.purge();
        await holder.jobs.publish(bytes("x"));
        const [again] = await holder.jobs.receive(1);
        await holder.jobs.nack(again!.lease.receipt);
        const [retried] = await next.jobs.receive(1);
        assert.equal(retried!.deliveries, 2, "nacked without a delay");
        await next.jobs.reject(retried!.lease.receipt);
        await holder.jobs.replayDeadLetters({ max: 1 });
      }
    }
  });
});

test("a lease of a clock that is ahead ends an hour later for others, and its holder settles it till then", async () => {
  await withThree({}, async (right, ahead) => {
    await right.jobs.publishMany(["settled", "orphaned"].map(bytes));
    const [settled, orphaned] = await ahead.jobs.receive(2);
    assert.equal(orphaned!.lease.expiresAt.getTime(), start + hour + 30_000);
    pass(right, hour + 29_999);
    assert.deepEqual(await right.jobs.receive(1), [], "it looks held");
    assert.equal(right.jobs.wake().in, 1);
    pass(ahead, 29_999);
    await ahead.jobs.ack(settled!.lease.receipt);
    pass(right, 1);
    const [again] = await right.jobs.receive(2);
    assert.deepEqual([again!.message.id, again!.deliveries], [orphaned!.message.id, 2]);
    await assert.rejects(ahead.jobs.ack(orphaned!.lease.receipt), { reason: "LEASE_EXPIRED" });
    await right.jobs.ack(again!.lease.receipt);
  });
});

test("a lease of a clock that is behind has ended for others; the last to receive it settles it, once", async () => {
  await withThree({}, async (right, _ahead, behind) => {
    await right.jobs.publish(bytes("x"));
    const [first] = await behind.jobs.receive(1);
    const [second] = await right.jobs.receive(1);
    assert.deepEqual([second!.message.id, second!.deliveries], [first!.message.id, 2], "it looks lapsed");
    await assert.rejects(behind.jobs.ack(first!.lease.receipt), { reason: "LEASE_EXPIRED" });
    await right.jobs.ack(second!.lease.receipt);
    for (const { jobs } of [right, behind]) assert.deepEqual(await jobs.receive(1), []);
  });
});

test("an instant is an instant: a delay that one clock gives is over when the reader's clock says so", async () => {
  await withThree({ retryDelay: 10_000 }, async (right, ahead, behind) => {
    await right.jobs.publishAt(bytes("at"), new Date(start + 1_000));
    assert.deepEqual(await behind.jobs.receive(1), []);
    assert.equal(behind.jobs.wake().in > 0, true);
    const [early] = await ahead.jobs.receive(1);
    assert.equal(textOf(early!.message.payload), "at", "its clock has passed that instant");
    const { visibleAt } = await ahead.jobs.nack(early!.lease.receipt);
    assert.equal(visibleAt!.getTime(), start + hour + 10_000);
    pass(right, hour);
    assert.deepEqual(await right.jobs.receive(1), []);
    pass(right, 10_000);
    assert.equal((await right.jobs.receive(1))[0]!.deliveries, 2);
  });
});

test("a once key is taken until its window ends by the clock of whoever asks, and costs no message", async () => {
  await withThree({}, async (right, ahead, behind) => {
    const ask = ({ jobs }: Clocked, window: number) => jobs.publishOnce("key", bytes("x"), window);
    assert.equal((await ask(right, 60_000)).published, true);
    assert.equal((await ask(behind, 60_000)).published, false);
    assert.equal((await ask(ahead, 60_000)).published, true, "an hour later by its clock");
    assert.equal((await ask(right, 60_000)).published, false, "now it is taken for an hour and a minute");
    pass(right, hour + 59_999);
    assert.equal((await ask(right, 60_000)).published, false);
    pass(right, 1);
    assert.equal((await ask(right, 60_000)).published, true);
    assert.equal((await drain(right.jobs)).length, 3);
  });
});

test("age and retention go by the reader's clock: one that is ahead buries and removes too early, one behind too late", async () => {
  const minutes = 60_000;
  await withThree({ maxAge: 30 * minutes, deadLetterRetention: 45 * minutes }, async (right, ahead, behind) => {
    await right.jobs.publishMany(["old", "young"].map(bytes));
    assert.deepEqual(textsOf(await behind.jobs.receive(1)), ["old"], "an hour before it was published");
    assert.deepEqual(await ahead.jobs.receive(1), []);
    // The lease of the one behind looks lapsed to it, so both are buried: kept, with the reason.
    const letters = await right.jobs.deadLetters({ max: 5 });
    assert.deepEqual(letters.map(({ reason }) => reason), ["MESSAGE_EXPIRED", "MESSAGE_EXPIRED"]);
    assert.deepEqual(letters.map(({ failedAt }) => failedAt.getTime()), [start + hour, start + hour]);
    pass(right, hour + 45 * minutes);
    await right.jobs.receive(1);
    assert.equal((await right.jobs.stats()).dead, 2);
    pass(right, 1 * minutes);
    await right.jobs.receive(1);
    assert.equal((await right.jobs.stats()).dead, 0);
  });
});

test("a lease folder that a clock ahead holds to be over may be removed, and the next lease finds another", async () => {
  await withThree({}, async (right, ahead, _behind, dir) => {
    for (let round = 0; round < 5; round++) {
      await right.jobs.publishMany(["one", "two"].map(bytes));
      const [one] = await right.jobs.receive(1);
      await right.jobs.ack(one!.lease.receipt);
      // What its bucket holds is gone, and its time is over for the one ahead.
      await drain(ahead.jobs);
      await right.jobs.receive(1);
      await ahead.jobs.receive(1);
    }
    assert.ok(foldersOf(dir, "leased").length <= 3);
    await drain(right.jobs);
    await drain(ahead.jobs);
    assert.equal(entriesOf(dir, "leased").length, 0);
    const { queued, leased } = await right.jobs.stats();
    assert.deepEqual({ queued, leased }, { queued: 0, leased: 0 });
  });
});

for (const step of [-hour, hour]) {
  test(`a consumer whose clock steps ${step < 0 ? "back" : "ahead"} an hour handles everything`, async () => {
    using directory = temporaryDirectory();
    const clock = new ManualClock();
    await using jobs = await openQueue(directory.path, { clock, policy: { maxDeliveries: 10 } });
    const handled: string[] = [];
    const stop = new AbortController();
    await jobs.publishMany(["before 1", "before 2"].map(bytes));
    const consuming = consume(jobs, {
      async handler({ message, deliveries }) {
        const text = textOf(message.payload);
        if (deliveries === 1 && text === "before 2") {
          clock.set(clock.now() + step);
          await jobs.publish(bytes("within"));
        }
        handled.push(text);
      },
      handlerIsIdempotent: true,
      clock,
      signal: stop.signal,
    });
    await clock.until(() => handled.includes("within"));
    await jobs.publish(bytes("after"));
    await clock.until(() => handled.includes("after"));
    // What it held when the clock stepped ahead has lapsed, and is handled a second time.
    const again = step > 0 ? 2 : 1;
    await clock.advance(60_000);
    await clock.until(() => handled.filter((text) => text === "before 2").length === again);
    stop.abort();
    await consuming;
    const { queued, leased, dead } = await jobs.stats();
    assert.deepEqual({ queued, leased, dead }, { queued: 0, leased: 0, dead: 0 });
    const once = handled.filter((text) => text !== "before 2").sort();
    assert.deepEqual(once, ["after", "before 1", "within"]);
  });
}

test("what dead processes left is told by the file system's clock: a broker's that is ahead removes nothing of the living", async () => {
  await withMonotonicClock(async (passUptime) => {
    await withThree({}, async (right, ahead, _behind, dir) => {
      fs.writeFileSync(`${dir}/tmp/0123456789`, "of a publish under way");
      fs.writeFileSync(`${dir}/pending/0123456789`, "of a once publish under way");
      pass(ahead, 1_000 * hour);
      passUptime(120_000);
      await ahead.jobs.receive(1);
      assert.ok(fs.existsSync(`${dir}/tmp/0123456789`) && fs.existsSync(`${dir}/pending/0123456789`));
      await right.jobs.publish(bytes("x"));
      assert.equal((await ahead.jobs.receive(1)).length, 1);
    });
  });
});
