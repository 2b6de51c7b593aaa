import assert from "node:assert/strict";
import {
  bucketLevel,
  bucketStart,
  type Entry,
  isBucketName,
  isEntryName,
  isId,
  isLeaseBucketName,
  looksLikeEntry,
  NonceSource,
  parseDead,
  parseEntry,
  parseFailure,
  parseReceipt,
  renderBucket,
  renderDead,
  renderEntry,
  renderFailure,
  renderLeaseBucket,
} from "../../../src/brokers/file/names.ts";
import { maxInstant } from "../../../src/core/limits.ts";
import type { Priority } from "../../../src/core/priority.ts";
import { test } from "../../support/test.ts";
import { SeededRandom, withSeeds } from "../memory/random.ts";

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const plain: Entry = {
  instant: 1_767_225_600_000,
  state: "a",
  id: "01JGFJJZ00ABCDEFGHJKMNPQRS",
  enqueuedAt: 1_767_225_599_999,
  deliveries: 0,
  priority: 0,
  failure: "n",
  segment: "0123456789",
  offset: 0,
  length: 38,
  nonce: "ABCDEFGHJK",
};

test("an entry comes back from its name, each field at its extremes", () => {
  const extremes: Partial<Record<keyof Entry, readonly unknown[]>> = {
    instant: [0, 1, 999_999_999_999, 1_000_000_000_000, maxInstant],
    state: ["a", "b", "l"],
    id: ["0".repeat(26), "Z".repeat(26), plain.id],
    enqueuedAt: [0, 1, 999_999_999_999, maxInstant],
    deliveries: [0, 1, 9, 10, 999, 1_000, 2_147_483_647],
    priority: [-2, -1, 0, 1, 2],
    failure: ["n", "u", "c", "l", "1", "136964", "4294967295"],
    segment: ["0".repeat(10), "Z".repeat(10)],
    offset: [0, 1, 1_048_576, 9_999_999_999],
    length: [38, 4_294_967_295],
    nonce: ["0".repeat(10), "Z".repeat(10)],
  };
  for (const [field, values] of Object.entries(extremes)) {
    for (const value of values) {
      const entry = { ...plain, [field]: value };
      const name = renderEntry(entry);
      assert.deepEqual(parseEntry(name), entry, `${field} ${value}`);
      assert.ok(isEntryName(name));
      assert.equal(looksLikeEntry(name), entry.state !== "l", "what waits looks like it");
      assert.ok(name.length <= 200, "every file system takes the name");
    }
  }
});

test("the byte order of waiting names is the order of delivery", () => {
  const later = { ...plain, id: "01JGFJJZ00ABCDEFGHJKMNPQRT" };
  const inOrder: Entry[] = [
    { ...plain, instant: 9 },
    { ...plain, instant: 10 },
    { ...plain, instant: 999_999_999_999 },
    plain,
    later,
    { ...plain, state: "b", deliveries: 1 },
    { ...later, state: "b", deliveries: 10 },
    { ...plain, instant: plain.instant + 1 },
    { ...plain, instant: maxInstant },
  ];
  const names = inOrder.map(renderEntry);
  assert.deepEqual([...names].sort(), names);
  for (const level of [2, 1, 0, -1, -2] as Priority[]) {
    const name = renderBucket(level, names[0]!.slice(0, 40), "0123456789");
    assert.ok(isBucketName(name));
    assert.equal(bucketLevel(name), 2 - level);
    assert.equal(bucketStart(name), names[0]!.slice(0, 40));
  }
});

test("names close to an entry's are refused", () => {
  const name = renderEntry({ ...plain, deliveries: 12 });
  assert.ok(isEntryName(name));
  const nearMisses = [
    "",
    " ",
    `${name} `,
    ` ${name}`,
    `${name}\n`,
    `${name}\0`,
    `${name}~`,
    `.${name}`,
    `./${name}`,
    `../${name}`,
    `${name}/..`,
    name.slice(1),
    name.slice(0, -1),
    `0${name}`,
    name.toLowerCase(),
    name.replaceAll("-", "_"),
    name.replaceAll("-", "‐"),
    name.replace("-12-", "-012-"),
    name.replace("-12-", "-+12-"),
    name.replace("-12-", "--12-"),
    name.replace("-12-", "-1e1-"),
    name.replace("-12-", "-٢-"),
    name.replace("-12-", "--"),
    name.replace("-12-", "-12345678901-"),
    name.replace("-2-n-", "-5-n-"),
    name.replace("-2-n-", "-2-x-"),
    name.replace("-2-n-", "-2-0-"),
    name.replace("-2-n-", "-2-01-"),
    name.replace("-0123456789-", "-012345678I-"),
    name.replace("-0123456789-", "-012345678-"),
    name.replace("-0123456789-", "-0123456789A-"),
    name.replace("ABCDEFGHJK", "ABCDEFGHJk"),
    name.replace(plain.id, plain.id.replace("R", "U")),
    `${name}-ABCDEFGHJK`,
    "README",
    `${name}.swp`,
    `${name.slice(0, 13)}x${name.slice(14)}`,
  ];
  for (const miss of nearMisses) {
    assert.notEqual(miss, name);
    assert.equal(parseEntry(miss), undefined, JSON.stringify(miss));
    assert.equal(isEntryName(miss), false, JSON.stringify(miss));
  }
});

/** Changes a text in one to three places. */
function mutate(random: SeededRandom, text: string): string {
  const spice = [...alphabet, ..."abcl-.+~/ \n\0Iiuno٣é"];
  let mutated = text;
  for (let change = random.below(3); change >= 0; change--) {
    const at = random.below(mutated.length + 1);
    const kind = random.below(4);
    const piece = kind === 2 ? "" : random.pick(spice)!;
    mutated = mutated.slice(0, at) + piece + mutated.slice(at + (kind === 0 ? 0 : 1));
    if (kind === 3) mutated = mutated.slice(0, at) + mutated.slice(at + random.below(3));
  }
  return mutated;
}

test("whatever name is accepted is the one that the broker would write", () => {
  return withSeeds([1, 2, 3], (seed) => {
    const random = new SeededRandom(seed);
    const draw = (length: number) => Array.from({ length }, () => random.pick([...alphabet])).join("");
    let accepted = 0;
    for (let round = 0; round < 5_000; round++) {
      const entry: Entry = {
        instant: random.below(maxInstant),
        state: random.pick(["a", "b", "l"] as const)!,
        id: draw(26),
        enqueuedAt: random.below(maxInstant),
        deliveries: random.below(20),
        priority: random.below(5) - 2 as Priority,
        failure: random.pick(["n", "u", "c", "l", "136964"])!,
        segment: draw(10),
        offset: random.below(2_000_000),
        length: random.below(2_000_000),
        nonce: draw(10),
      };
      const name = renderEntry(entry);
      assert.deepEqual(parseEntry(name), entry);
      const mutated = mutate(random, name);
      const parsed = parseEntry(mutated);
      if (parsed !== undefined) {
        accepted++;
        assert.equal(renderEntry(parsed), mutated);
      }
      assert.equal(isEntryName(mutated), parsed !== undefined);
      if (parsed !== undefined && parsed.state !== "l") assert.ok(looksLikeEntry(mutated), "a folder's list keeps it");
      const receipt = parseReceipt(mutate(random, `0000000000000-0000000000.${name}`));
      if (receipt !== undefined) {
        assert.match(`${receipt.bucket}/${receipt.name}`, /^[0-9A-Zabcnlu/-]+$/);
        assert.equal(receipt.entry.state, "l");
      }
    }
    assert.ok(accepted > 100, "some changes lead to another good name");
  });
});

test("the names of folders, dead letters and ids are as strict", () => {
  const bucket = renderBucket(0, renderEntry(plain).slice(0, 40), "ABCDEFGHJK");
  const lease = renderLeaseBucket(plain.instant, "ABCDEFGHJK");
  const dead = renderDead({ id: plain.id, failedAt: 7, offset: 0, length: 99 });
  assert.deepEqual(parseDead(dead), { id: plain.id, failedAt: 7, offset: 0, length: 99 });
  assert.ok(isBucketName(bucket) && isLeaseBucketName(lease) && isId(plain.id));
  const change = (name: string) => [
    `${name} `,
    `${name}\n`,
    `x${name}`,
    name.slice(1),
    name.slice(0, -1).slice(0, -1),
    name.toLowerCase(),
    `../${name}`,
    name.replace("A", "I"),
    "README",
    "",
  ];
  for (const miss of change(bucket)) assert.equal(isBucketName(miss), false, miss);
  for (const miss of [...change(lease), lease.replace("-", "")]) assert.equal(isLeaseBucketName(miss), false, miss);
  for (const miss of [...change(plain.id), 42, null, undefined, {}]) assert.equal(isId(miss), false, String(miss));
  for (const miss of [`${dead} `, `x${dead}`, dead.toLowerCase(), dead.replace("-99", "-099"), `${plain.id}-7-0-99`]) {
    assert.equal(parseDead(miss), undefined, miss);
  }
  assert.equal(isBucketName(`5${bucket.slice(1)}`), false, "there are five levels");
});

test("what last failed comes back from its code or letter", () => {
  const failures = [
    { reason: "UNREPORTED", code: 0 },
    { reason: "UNCLASSIFIED", code: 0 },
    { reason: "LEASE_EXPIRED", code: 0 },
    { reason: "LEASE_EXPIRED", code: 136964 },
    { reason: "NOT_RETRYABLE", code: 136966 },
    { reason: "UNCLASSIFIED", code: 4_294_967_295 },
  ];
  for (const failure of failures) assert.deepEqual(parseFailure(renderFailure(failure)), failure);
  assert.equal(parseFailure("n"), undefined);
});

test("no nonce is drawn twice", () => {
  const source = new NonceSource();
  const drawn = new Set<string>();
  for (let index = 0; index < 20_000; index++) {
    const nonce = source.next();
    assert.match(nonce, /^[0-9A-HJKMNP-TV-Z]{10}$/);
    drawn.add(nonce);
  }
  assert.equal(drawn.size, 20_000);
});
