import assert from "node:assert/strict";
import { Heap } from "../../../src/brokers/memory/heap.ts";
import { SortedQueue } from "../../../src/brokers/memory/sorted_queue.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";

const smaller = (a: number, b: number) => a < b;

for (
  const [name, make] of [["Heap", () => new Heap(smaller)], ["SortedQueue", () => new SortedQueue(smaller)]] as const
) {
  test(`${name} hands out the smallest first, over random calls`, async () => {
    await withSeeds([1, 2, 3], (seed) => {
      const random = new SeededRandom(seed);
      const queue = make();
      let expected: number[] = [];
      for (let step = 0; step < 3_000; step++) {
        if (random.oneIn(3)) assert.equal(queue.shift(), expected.shift());
        else {
          const item = random.oneIn(4) ? random.below(3_000) : step;
          queue.push(item);
          expected.push(item);
          expected.sort((a, b) => a - b);
        }
        if (random.oneIn(300)) {
          queue.filter((item) => item % 5 !== 0);
          expected = expected.filter((item) => item % 5 !== 0);
        }
        assert.deepEqual([queue.size, queue.first()], [expected.length, expected[0]]);
      }
      queue.clear();
      assert.deepEqual([queue.size, queue.first(), queue.shift()], [0, undefined, undefined]);
    });
  });
}

test("SortedQueue compares once for an item in order, and not at all on taking it", () => {
  let comparisons = 0;
  const queue = new SortedQueue<number>((a, b) => {
    comparisons++;
    return a < b;
  });
  for (let item = 0; item < 1_000; item++) queue.push(item);
  while (queue.size > 0) queue.shift();
  assert.equal(comparisons, 999);
});
