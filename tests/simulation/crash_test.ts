import assert from "node:assert/strict";
import process from "node:process";
import { test } from "../support/test.ts";
import { runProgram } from "./program.ts";

/** Seeds that failed once; every step of theirs is a crash. */
const failedSeeds: readonly number[] = [50265, 50583];

const first = Number(process.env.QUEUE_SIMULATION_SEED ?? 1);
const programs = Number(process.env.QUEUE_SIMULATION_PROGRAMS ?? 40);

test(`processes that die and a disk that loses power cost nothing: ${programs} programs from seed ${first}`, async () => {
  let crashes = 0;
  for (let seed = first; seed < first + programs; seed++) {
    crashes += (await runProgram({ seed, verbs: 30, crashes: 0.1 })).crashes;
  }
  assert.ok(crashes > programs, "there were crashes");
});

test("programs that failed once", async () => {
  for (const seed of failedSeeds) await runProgram({ seed, verbs: 30, crashes: 1 });
});

test("a seed decides a whole run", async () => {
  const options = { seed: 7, verbs: 30, crashes: 0 };
  const { steps } = await runProgram(options);
  assert.deepEqual(await runProgram(options), { steps, crashes: 2 });
  // Crashes that are looked at leave the program as it is, so that a failing seed fails again with a crash at every step.
  assert.equal((await runProgram({ ...options, crashes: 0.2 })).steps, steps);
});
