import assert from "node:assert/strict";
import { type Chunk, IdIndex, type Indexed } from "../../../src/brokers/memory/id_index.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "./random.ts";

class Item implements Indexed<Item> {
  readonly id: string;
  readonly enqueuedAt: number;
  chunk: Chunk<Item> | undefined = undefined;

  constructor(id: string, enqueuedAt: number) {
    this.id = id;
    this.enqueuedAt = enqueuedAt;
  }
}

const idOf = (number: number) => String(number).padStart(9, "0");

test("IdIndex finds and lists what a sorted array would, over random calls", async () => {
  await withSeeds([1, 2, 3, 4], (seed) => {
    const random = new SeededRandom(seed);
    const index = new IdIndex<Item>();
    const items = new Map<string, Item>();
    let latest = 1_000_000;
    for (let step = 0; step < 12_000; step++) {
      const draining = Math.floor(step / 2_000) % 2 === 1;
      const victim = random.oneIn(draining ? 1 : 4)
        ? [...items.keys()][random.below(Math.min(items.size, 50))]
        : undefined;
      if (victim !== undefined) {
        index.remove(items.get(victim)!);
        items.delete(victim);
      } else {
        const inOrder = random.below(4) > 0;
        const id = idOf(inOrder ? latest += 1 + random.below(3) : random.below(latest));
        if (items.has(id)) continue;
        const item = new Item(id, random.below(1_000_000));
        items.set(id, item);
        index.add(item);
      }
      assert.equal(index.size, items.size);
      if (!random.oneIn(100)) continue;
      const sorted = [...items.values()].sort((a, b) => a.id < b.id ? -1 : 1);
      const after = random.oneIn(2) ? "" : random.pick(sorted)?.id ?? idOf(random.below(latest));
      assert.deepEqual(
        [...index.from(after)].map(({ id }) => id),
        sorted.map(({ id }) => id).filter((id) => id > after),
      );
      assert.equal(index.next(after)?.id, sorted.find(({ id }) => id > after)?.id);
      const oldest = sorted.length === 0 ? undefined : Math.min(...sorted.map(({ enqueuedAt }) => enqueuedAt));
      assert.equal(index.oldest(), oldest);
      for (const item of sorted.slice(0, 5)) assert.equal(index.find(item.id), item);
      assert.equal(index.find(idOf(latest + 1)), undefined);
    }
  });
});

test("IdIndex takes an id again that it removed before", () => {
  const index = new IdIndex<Item>();
  const items = Array.from({ length: 10 }, (_, at) => new Item(idOf(at), at));
  for (const item of items) index.append(item);
  index.remove(items[4]!);
  assert.equal(index.find(idOf(4)), undefined);
  const again = new Item(idOf(4), 4);
  index.add(again);
  assert.equal(index.find(idOf(4)), again);
  assert.equal([...index.from("")].length, 10);
});

test("IdIndex keeps few places for removed items, wherever they were", () => {
  const index = new IdIndex<Item>();
  const kept: Item[] = [];
  for (let number = 0; number < 100_000; number++) {
    const item = new Item(idOf(number), number);
    index.append(item);
    if (number % 1_000 === 0) kept.push(item);
    else index.remove(item);
  }
  assert.equal(index.size, 100);
  assert.deepEqual([...index.from("")], kept);
  assert.ok(index.places <= 100 * 64, `${index.places} places for 100 items`);
  for (const item of kept) index.remove(item);
  assert.deepEqual([index.size, [...index.from("")].length], [0, 0]);
  assert.ok(index.places < 64, `${index.places} places for none`);
});
