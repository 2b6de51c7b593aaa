import assert from "node:assert/strict";
import { noHeaders, type Receipt } from "../../../src/core/mod.ts";
import { Entry } from "../../../src/brokers/memory/entry.ts";
import { LeaseTable } from "../../../src/brokers/memory/leases.ts";
import { ReceiptMint } from "../../../src/brokers/memory/receipts.ts";
import { test } from "../../support/test.ts";

const entry = () => new Entry("id", 1, 0, 0, noHeaders, 0, 0, 0);

test("ReceiptMint never mints a receipt twice, and knows its own again", () => {
  const mint = new ReceiptMint();
  const other = new ReceiptMint();
  const seen = new Set<string>();
  for (let lease = 0; lease < 5_000; lease++) {
    const place = [0, 3, 1_023, 1_024, 1_048_575, 1_048_576, 2 ** 30 - 1][lease % 7]!;
    const receipt = mint.mint(mint.tailOf(place));
    assert.ok(!seen.has(receipt));
    seen.add(receipt);
    assert.equal(mint.placeOf(receipt), place);
    assert.ok(mint.hasIssued(receipt));
    assert.ok(!other.hasIssued(receipt));
  }
  other.mint(other.tailOf(0));
  for (const receipt of [...seen].slice(0, 50)) assert.ok(!other.hasIssued(receipt));
});

test("ReceiptMint takes nothing but the form of a receipt for one of its own", () => {
  const mint = new ReceiptMint();
  const receipt = mint.mint(mint.tailOf(0));
  const later = receipt.slice(0, 12) + "ZZZZZZZZZZ" + receipt.slice(22);
  const forms = [
    "",
    "nonsense",
    "../../etc/passwd",
    `${receipt}0`,
    `${receipt}x0`,
    ` ${receipt}`,
    receipt.slice(0, -1),
    receipt.slice(0, -2),
    receipt.toLowerCase(),
    receipt.slice(0, -1) + "\u{1F600}",
    later,
  ];
  for (const form of forms) assert.ok(!mint.hasIssued(form), `Took ${JSON.stringify(form)}`);
});

test("LeaseTable finds a lease by its whole receipt only", () => {
  const leases = new LeaseTable();
  const first = leases.hold(entry(), 1_000);
  const second = leases.hold(entry(), 1_000);
  assert.equal(leases.find(second.receipt), second);
  // The same text as a value of its own, as it comes out of a file.
  assert.equal(leases.find(JSON.parse(JSON.stringify(second.receipt))), second);
  const forged = first.receipt.slice(0, -2) + second.receipt.slice(-2);
  assert.equal(leases.find(forged as Receipt), undefined);
  leases.end(second);
  const third = leases.hold(entry(), 1_000);
  assert.equal(third.place, second.place);
  assert.equal(leases.find(second.receipt), undefined);
  assert.ok(leases.hasIssued(second.receipt));
});

test("LeaseTable hands out the earliest deadline and skips what has ended", () => {
  const leases = new LeaseTable();
  const [late, early, middle] = [300, 100, 200].map((deadline) => leases.hold(entry(), deadline));
  assert.equal(leases.first(), early);
  leases.end(early!);
  assert.equal(leases.first(), middle);
  leases.end(middle!);
  leases.end(late!);
  assert.equal(leases.first(), undefined);
});

test("LeaseTable keeps little of a million leases that ended behind a long one", () => {
  const leases = new LeaseTable();
  const long = leases.hold(entry(), 1);
  for (let round = 0; round < 1_000_000; round++) leases.end(leases.hold(entry(), 1_000 + round));
  assert.equal(leases.size, 1);
  assert.ok(leases.places < 3_000, `${leases.places} places for one lease`);
  assert.equal(leases.first(), long);
});

test("LeaseTable gives the memory of a burst back", () => {
  const leases = new LeaseTable();
  const burst = Array.from({ length: 50_000 }, (_, at) => leases.hold(entry(), at));
  for (const lease of burst) leases.end(lease);
  assert.equal(leases.first(), undefined);
  assert.deepEqual([leases.size, leases.places], [0, 0]);
});
