import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { runProgram } from "./program.ts";

const first = Number(globalThis.process?.env.QUEUE_SIMULATION_SEED ?? 1);
const programs = Number(globalThis.process?.env.QUEUE_SIMULATION_PROGRAMS ?? 40);

test(`a disk that loses power at any step loses no message: ${programs} programs from seed ${first}`, async () => {
  let cuts = 0;
  for (let seed = first; seed < first + programs; seed++) {
    cuts += (await runProgram({ seed, verbs: 30, cuts: 0.1 })).cuts;
  }
  assert.ok(cuts > programs, "the power was cut");
});
