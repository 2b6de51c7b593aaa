import assert from "node:assert/strict";
import { Fifo } from "../../../src/brokers/memory/fifo.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";

test("Fifo hands out what an array would, over random pushes and shifts", async () => {
  await withSeeds([1, 2, 3], (seed) => {
    const random = new SeededRandom(seed);
    const fifo = new Fifo<number>();
    let expected: number[] = [];
    for (let step = 0; step < 5_000; step++) {
      const growing = Math.floor(step / 500) % 2 === 0;
      if (random.oneIn(growing ? 4 : 2)) assert.equal(fifo.shift(), expected.shift());
      else {
        fifo.push(step);
        expected.push(step);
      }
      if (random.oneIn(200)) {
        fifo.filter((item) => item % 3 !== 0);
        expected = expected.filter((item) => item % 3 !== 0);
      }
      assert.deepEqual([fifo.size, fifo.first(), fifo.last()], [expected.length, expected[0], expected.at(-1)]);
    }
    while (expected.length > 0) assert.equal(fifo.shift(), expected.shift());
    assert.equal(fifo.shift(), undefined);
  });
});

test("Fifo gives its memory back once it is drained", () => {
  const fifo = new Fifo<number>();
  for (let item = 0; item < 100_000; item++) fifo.push(item);
  assert.ok(fifo.capacity < 100_300);
  while (fifo.size > 3) fifo.shift();
  assert.equal(fifo.capacity, 512);
  assert.equal(fifo.first(), 99_997);
  fifo.clear();
  assert.deepEqual([fifo.capacity, fifo.size, fifo.first()], [256, 0, undefined]);
});
