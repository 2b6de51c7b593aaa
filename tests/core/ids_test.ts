import assert from "node:assert/strict";
import { IdMint } from "../../src/core/ids.ts";
import { test } from "../support/test.ts";

const pattern = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/;
const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** The instant in an id, by the ULID specification: 48 bits in its first ten digits. */
function instantOf(id: string): number {
  return [...id.slice(0, 10)].reduce((sum, digit) => sum * 32 + digits.indexOf(digit), 0);
}

test("IdMint mints ULIDs that hold their instant, at both ends of time", () => {
  for (const instant of [0, 1, 1_769_904_000_123, 9_223_372_036_854]) {
    const id = new IdMint().next(instant);
    assert.match(id, pattern);
    assert.equal(instantOf(id), instant);
    assert.equal(instantOf(new IdMint().at(instant)), instant);
  }
});

test("IdMint ids sort in the order of minting within an instant, past the counter, and when the clock steps back", () => {
  const mint = new IdMint();
  let last = "";
  for (let count = 0; count < 1_200_000; count++) {
    const id = mint.next(5_000);
    if (!(id > last)) assert.fail(`${id} after ${last}`);
    last = id;
  }
  for (const instant of [4_000, 5_001, 1, 5_002]) {
    const id = mint.next(instant);
    assert.ok(id > last);
    last = id;
  }
});

test("IdMint.at() leaves the order of next() alone", () => {
  const mint = new IdMint();
  const before = mint.next(5_000);
  mint.at(9_000_000_000_000);
  const after = mint.next(5_000);
  assert.ok(after > before);
  assert.equal(instantOf(after), 5_000);
});

test("two mints never meet at one instant", () => {
  const mints = [new IdMint(), new IdMint(), new IdMint(), new IdMint()];
  const ids = new Set(mints.flatMap((mint) => Array.from({ length: 5_000 }, () => mint.next(5_000))));
  assert.equal(ids.size, 20_000);
});

test("a mint draws nothing before its first id", () => {
  const original = crypto.getRandomValues;
  crypto.getRandomValues = () => assert.fail("drew a random value");
  try {
    new IdMint();
  } finally {
    crypto.getRandomValues = original;
  }
});
