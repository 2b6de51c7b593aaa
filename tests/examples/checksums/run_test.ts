import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { DeadLetter } from "@x/queue";
import { group, renderStanding } from "../../../examples/checksums/progress.ts";
import { collect, openQueue, produce, readDeadLetters, type Result, work } from "../../../examples/checksums/queue.ts";
import { findMissing, keyOf } from "../../../examples/checksums/run.ts";
import { sumFile } from "../../../examples/checksums/sum.ts";
import { test } from "../../support/test.ts";
import { bytes, withFolder } from "./folder.ts";

test("a file that vanished after it was found becomes a dead letter, and the others have sums", () =>
  withFolder(async (folder) => {
    writeFileSync(`${folder}/here`, "");
    await produce(folder, [bytes("here"), bytes("gone")]);
    const results: Result[] = [];
    const stop = new AbortController();
    const gathering = collect(folder, (result) => void results.push(result), stop.signal);
    const working = work(folder, (name, signal) => sumFile(folder, name, signal), stop.signal);
    await using jobs = await openQueue(folder, "jobs");
    for (let live = 1; live > 0 || results.length === 0;) {
      const { queued, leased } = await jobs.stats();
      live = queued + leased;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    stop.abort();
    await Promise.all([gathering, working]);

    assert.deepEqual(results.map(({ name, bytes }) => [new TextDecoder().decode(name), bytes]), [["here", 0]]);
    const [dead, ...more] = await readDeadLetters(jobs);
    assert.equal(more.length, 0);
    assert.equal(new TextDecoder().decode(dead!.message.payload), "gone");
    assert.deepEqual([dead!.reason, dead!.cause, dead!.deliveries], [
      "NOT_RETRYABLE",
      "ENOENT: the file does not exist",
      1,
    ]);
  }));

test("findMissing() names what is in neither the sums nor the dead letters", () => {
  const sums = new Map([[keyOf(bytes("\xff")), true]]);
  const dead = [{ message: { payload: bytes("b") } }] as unknown as DeadLetter[];
  assert.deepEqual(findMissing([bytes("\xff"), bytes("b")], sums, dead), []);
  assert.deepEqual(findMissing([bytes("\xfe"), bytes("b")], sums, dead), [bytes("\xfe")]);
});

test("renderStanding() fills the bar as the work goes on", () => {
  const rest = { waiting: 3, leased: 2 };
  assert.match(
    renderStanding({ done: 0, total: 5_000, ...rest }),
    /^\[\.{24}\] {3}0 % {2}0 of 5,000 done, 3 waiting, 2 leased$/,
  );
  assert.match(renderStanding({ done: 2_500, total: 5_000, ...rest }), /^\[#{12}\.{12}\] {2}50 % /);
  assert.match(renderStanding({ done: 5_000, total: 5_000, ...rest }), /^\[#{24}\] 100 % /);
  assert.match(renderStanding({ done: 0, total: 0, ...rest }), /^\[#{24}\] 100 % /);
  assert.equal(group(1_234_567), "1,234,567");
});
