/**
 * The test of the test: a broker that leaves out one of its flushes, or swaps two steps whose order carries a promise, must
 * be caught by the simulation.
 */

import assert from "node:assert/strict";
import { test } from "../support/test.ts";
import { type ProgramOptions, runProgram } from "./program.ts";
import { countPairs, leaveOutFlush, type SwapCount, swapSteps } from "./sabotage.ts";

/** Every place that the broker flushes. */
const flushed: readonly string[] = [
  "temporary file",
  "ready bucket",
  "ready",
  "delayed bucket",
  "delayed",
  "leased",
  "dead folder",
  "dead",
  "pending file",
  "pending",
  "once folder",
  "once",
  "root",
];

/** Pairs of steps that follow each other in a call and whose order carries a promise. */
const ordered: readonly string[] = [
  // What a file holds is on the device before it has a name that anybody reads.
  "write temporary file, flush temporary file",
  "write pending file, flush pending file",
  "flush temporary file, rename temporary file to ready entry",
  "flush temporary file, rename temporary file to delayed entry",
  "flush temporary file, rename temporary file to letter",
  "flush temporary file, link temporary file as ready entry",
  "flush temporary file, link temporary file as delayed entry",
  "flush temporary file, link temporary file as letter",
  // A name is there before the flush that makes it durable.
  "rename temporary file to ready entry, flush ready bucket",
  "rename temporary file to delayed entry, flush delayed bucket",
  "rename temporary file to letter, flush dead folder",
  "link temporary file as ready entry, flush ready bucket",
  "link temporary file as delayed entry, flush delayed bucket",
  "link temporary file as letter, flush dead folder",
  "rename letter to ready entry, flush ready bucket",
  // So is a folder.
  "make ready bucket, flush ready",
  "make delayed bucket, flush delayed",
  "make leased bucket, flush leased",
  // A message that is on the device moves only into a folder that is.
  "flush ready, rename leased entry to ready entry",
  "flush delayed, rename leased entry to delayed entry",
  "flush ready, rename letter to ready entry",
  "flush ready, rename pending file to ready entry",
  "flush delayed, rename pending file to delayed entry",
  // A key is taken for a message that lies there, and before the message moves.
  "flush pending, link pending file as key",
  "link pending file as key, rename pending file to ready entry",
  "link pending file as key, rename pending file to delayed entry",
  // An entry goes once its letter is on the device.
  "flush dead, unlink leased entry",
];

/** Why the order of every other pair does not matter. */
const free: readonly (readonly [pairs: RegExp, why: string])[] = [
  [/^create (\w+) file, write \1 file$/, "the second needs what the first gave"],
  [/^make (\w+) (bucket|folder), (rename|link) .*\1/, "the second needs what the first made"],
  [/^make dead folder, (rename|link) temporary file (to|as) letter$/, "the second needs what the first made"],
  [/^make once folder, link pending file as key$/, "the second needs what the first made"],
  [/, make leased bucket$/, "a lease bucket is made beside the call that asked for it"],
  [/^flush leased, /, "what is made beside a call is nothing to its other steps"],
  [/^flush [^,]*, flush /, "nothing is promised before both"],
  [/^flush [^,]*, make /, "the folder is empty until the next step"],
  [/^flush (\w+) bucket, create temporary file$/, "they are of different messages"],
  [/^flush (ready|delayed) bucket, (rename|unlink|remove) /, "they are of different messages or folders"],
  [/^flush (\w+) bucket, unlink temporary file$/, "the message has another name"],
  [/^flush dead, unlink temporary file$/, "the letter has another name"],
  [/^flush dead, create temporary file$/, "they are of different letters"],
  [/^flush once, link pending file as key$/, "the message is pending until both are done"],
  [/^flush once( folder)?, unlink key$/, "they are of different keys"],
  [/^link pending file as key, (make|flush) /, "the message moves only after both"],
  [/^link temporary file as ([^,]*), (link|make|rename) /, "they are of different messages or folders"],
  [
    /^(link|rename) temporary file (as|to) ([^,]*), flush (ready|delayed|dead)$/,
    "both come before the folder's own flush",
  ],
  [/^rename pending file to (\w+) entry, flush \1 bucket$/, "unless it has moved it is pending, and found there"],
  [/^rename pending file to (\w+) entry, /, "they are of different messages or folders"],
  [
    /^rename (\w+) entry to (\w+) entry, (rename|create|make|unlink|flush) /,
    "they are of different messages or folders",
  ],
  [/^rename letter to ready entry, (make|rename) /, "they are of different messages or folders"],
  [/^rename temporary file to (\w+) entry, (make|rename|create) /, "they are of different messages or folders"],
  [/^remove |, remove /, "an empty folder goes, or one that is not empty stays"],
  [/^unlink [^,]*, unlink /, "they are of different messages, or of names of one that has another"],
  [/^unlink [^,]*, (create|flush|rename) /, "they are of different messages"],
];

/** Runs programs until one notices; whether one did. */
async function isCaught(options: Omit<ProgramOptions, "seed" | "verbs">, programs: number): Promise<boolean> {
  for (let seed = 1; seed <= programs; seed++) {
    try {
      await runProgram({ seed, verbs: 30, ...options });
    } catch (error) {
      assert.match((error as Error).message, new RegExp(`^Seed ${seed} `));
      return true;
    }
  }
  return false;
}

for (const place of flushed) {
  test(`the simulation notices when the flush of ${place} is left out`, async () => {
    const sabotage = leaveOutFlush(place);
    assert.ok(await isCaught({ crashes: 0.02, sabotage }, 300), "300 programs passed without it");
  });
}

for (const pair of ordered) {
  const [first, second] = pair.split(", ") as [string, string];
  test(`the simulation notices when "${first}" comes after "${second}"`, async () => {
    const count: SwapCount = { swapped: 0, refused: 0 };
    const sabotage = swapSteps(first, second, count);
    assert.ok(await isCaught({ crashes: 0.01, oneByOne: true, sabotage }, 400), `${count.swapped} swaps passed`);
    assert.ok(count.swapped > 0, "it broke without a swap");
  });
}

test("every other pair of steps that follow each other in a call may come in either order, for a reason", async () => {
  const pairs = new Map<string, number>();
  for (let seed = 1; seed <= 60; seed++) {
    await runProgram({ seed, verbs: 30, crashes: 0, oneByOne: true, sabotage: countPairs(pairs) });
  }
  const unknown = [...pairs.keys()].filter((pair) =>
    !ordered.includes(pair) && !free.some(([known]) => known.test(pair))
  );
  assert.deepEqual(unknown, []);
  for (const [known, why] of free) {
    const both = ordered.filter((pair) => known.test(pair));
    assert.deepEqual(both, [], `"${why}" is said of what carries a promise`);
  }
});
