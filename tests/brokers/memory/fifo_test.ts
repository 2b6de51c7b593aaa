import assert from "node:assert/strict";
import { Ring } from "../../../src/brokers/memory/ring.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";

test("Ring hands out what an array would, over random pushes and shifts", async () => {
  await withSeeds([1, 2, 3], (seed) => {
    const random = new SeededRandom(seed);
    const ring = new Ring<number>();
    let expected: number[] = [];
    for (let step = 0; step < 5_000; step++) {
      const growing = Math.floor(step / 500) % 2 === 0;
      if (random.oneIn(growing ? 4 : 2)) assert.equal(ring.shift(), expected.shift());
      else {
        ring.push(step);
        expected.push(step);
      }
      if (random.oneIn(200)) {
        ring.filter((item) => item % 3 !== 0);
        expected = expected.filter((item) => item % 3 !== 0);
      }
      assert.deepEqual([ring.size, ring.first(), ring.last()], [expected.length, expected[0], expected.at(-1)]);
    }
    while (expected.length > 0) assert.equal(ring.shift(), expected.shift());
    assert.equal(ring.shift(), undefined);
  });
});

test("Ring gives its memory back once it is drained", () => {
  const ring = new Ring<number>();
  for (let item = 0; item < 100_000; item++) ring.push(item);
  assert.equal(ring.capacity, 131_072);
  while (ring.size > 3) ring.shift();
  assert.equal(ring.capacity, 16);
  assert.equal(ring.first(), 99_997);
  ring.clear();
  assert.deepEqual([ring.capacity, ring.size, ring.first()], [0, 0, undefined]);
});
