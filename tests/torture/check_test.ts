import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import type { DeadLetter } from "../../src/core/values.ts";
import { temporaryDirectory } from "../support/temporary.ts";
import { test } from "../support/test.ts";
import { check } from "./check.ts";
import { Ledger, type LedgerEvent, readLedger } from "./ledger.ts";

const payload = new TextEncoder().encode("dead key\nx");
const hash = createHash("sha256").update(payload).digest("hex").slice(0, 16);

const attempt = (t: number, key: string, more = {}): LedgerEvent => {
  return { t, kind: "publishing", key, hash: "h", priority: 0, ...more };
};
const published = (t: number, key: string, id: string): LedgerEvent => ({ t, kind: "published", key, id });
const received = (at: number, id: string, lease: string, count: number, key: string, more = {}): LedgerEvent => {
  return { t: at + 1, kind: "received", id, lease, count, at, until: at + 100, key, hash: "h", priority: 0, ...more };
};
const handled = (t: number, id: string): LedgerEvent => ({ t, kind: "handled", id });
const settling = (t: number, verb: string, lease: string): LedgerEvent => ({ t, kind: "settling", verb, lease });
const settled = (t: number, verb: string, lease: string, outcome = "done", more = {}): LedgerEvent => {
  return { t, kind: "settled", verb, lease, outcome, ...more };
};

const letter: DeadLetter = {
  message: { id: "D", enqueuedAt: new Date(0), payload, headers: { key: "dead key", hash } },
  failedAt: new Date(1),
  reason: "NOT_RETRYABLE",
  cause: "",
  code: 0,
  deliveries: 1,
  priority: 0,
};

/** A run in which everything is well: a retry, a lapse, a release, an extension, doubts, a once key and a dead letter. */
const sound: readonly LedgerEvent[] = [
  { t: 0, kind: "started", role: "producer", runtime: "Deno" },
  attempt(1, "a"),
  published(2, "a", "A"),
  received(10, "A", "a1", 1, "a"),
  settling(20, "nack", "a1"),
  settled(21, "nack", "a1"),
  received(30, "A", "a2", 2, "a"),
  received(130, "A", "a3", 3, "a"),
  settling(140, "release", "a3"),
  received(150, "A", "a4", 3, "a"),
  settling(160, "extend", "a4"),
  settled(161, "extend", "a4", "done", { next: "a5", until: 400 }),
  handled(300, "A"),
  settling(301, "ack", "a5"),
  settled(302, "ack", "a5"),
  // The second receive began before the first lease had ended, and ended afterwards.
  attempt(1, "r"),
  received(10, "R", "r1", 1, "r"),
  received(105, "R", "r2", 2, "r", { t: 115 }),
  // By a clock that is ahead all leases have ended.
  received(900, "R", "r3", 3, "r", { t: 150 }),
  // A receive that began before another, and got what that one handed back.
  attempt(1, "s"),
  received(9, "S", "s2", 2, "s", { t: 20 }),
  received(10, "S", "s1", 1, "s"),
  settling(13, "nack", "s1"),
  // Killed within both calls.
  attempt(1, "b"),
  attempt(1, "c"),
  received(50, "C", "c1", 1, "c"),
  handled(60, "C"),
  settling(61, "ack", "c1"),
  attempt(1, "o1", { once: "o" }),
  attempt(2, "o2", { once: "o" }),
  published(3, "o2", "O"),
  { t: 4, kind: "reserved", key: "o1" },
  received(50, "O", "o1", 1, "o2", { once: "o" }),
  handled(60, "O"),
  settling(61, "ack", "o1"),
  settled(62, "ack", "o1"),
  attempt(1, "dead key", { hash }),
  published(2, "dead key", "D"),
  received(10, "D", "d1", 1, "dead key", { hash }),
  settling(11, "reject", "d1"),
  settled(12, "reject", "d1", "dead"),
];

/** The checks that fail. */
function failing(events: readonly LedgerEvent[], dead: readonly DeadLetter[] = [letter]): string[] {
  return check({ events, dead, maxDeliveries: 4 }).filter(({ problems }) => problems.length > 0).map(({ name }) =>
    name
  );
}

const without = (kind: string, matching: Partial<Record<string, unknown>>) =>
  sound.filter((event) => {
    const fields = event as unknown as Record<string, unknown>;
    return event.kind !== kind || Object.entries(matching).some(([name, value]) => fields[name] !== value);
  });

test("a sound run passes every check", () => {
  assert.deepEqual(failing(sound), []);
});

const lost = "every publish that resolved was handled, is a dead letter or was removed";
const foreign = "what was delivered is what was published, whole";
const repeated = "every once key published once";

const flaws: Readonly<Record<string, { readonly events: readonly LedgerEvent[]; readonly fails: string }>> = {
  "a message that was published and never seen": {
    events: [...sound, attempt(5, "e"), published(6, "e", "E")],
    fails: lost,
  },
  "a message that was leased by the dead and never came back": {
    events: [...sound, attempt(5, "e"), published(6, "e", "E"), received(7, "E", "e1", 1, "e")],
    fails: lost,
  },
  "an acknowledgement before the handling": {
    events: without("handled", { id: "C" }),
    fails: "nothing was acknowledged that was not handled",
  },
  "a delivery that nobody published": { events: without("publishing", { key: "c" }), fails: foreign },
  "another payload": { events: [...sound, received(99, "B", "b1", 1, "b", { hash: "other" })], fails: foreign },
  "another priority": { events: [...sound, received(99, "B", "b1", 1, "b", { priority: 2 })], fails: foreign },
  "a torn payload": { events: [...sound, received(99, "B", "b1", 1, "b", { wrong: "it is torn" })], fails: foreign },
  "one attempt under two ids": {
    events: [...sound, received(98, "B", "b1", 1, "b"), received(99, "E", "e1", 1, "b")],
    fails: foreign,
  },
  "another id than the one that was returned": { events: [...sound, received(99, "Z", "z1", 1, "a")], fails: foreign },
  "what was refused for its key and delivered all the same": {
    events: [...sound, received(99, "P", "p1", 1, "o1", { once: "o" })],
    fails: foreign,
  },
  "a message that came again after its acknowledgement": {
    events: [...sound, received(500, "A", "a6", 4, "a")],
    fails: "nothing came back after its acknowledgement",
  },
  "a lease within a lease": {
    events: [...sound, received(99, "C", "c0", 2, "c", { at: 59, t: 60 })],
    fails: "nothing was in two hands at once",
  },
  "a count that stands still": {
    events: [...sound, received(700, "C", "c2", 1, "c")],
    fails: "every delivery was counted",
  },
  "a once key that published twice": {
    events: [...sound, attempt(5, "o3", { once: "o" }), received(99, "P", "p1", 1, "o3", { once: "o" })],
    fails: repeated,
  },
  "a once key that cost its message": {
    events: [...sound, attempt(5, "q1", { once: "q" }), { t: 6, kind: "reserved", key: "q1" }],
    fails: repeated,
  },
  "a refusal of anything": {
    events: [...sound, { t: 9, kind: "surprise", what: "EIO" }],
    fails: "no process met anything but death",
  },
  "an outcome of a kind that there is not": {
    events: [...sound, settled(9, "ack", "c1", "outcome 3")],
    fails: "no process met anything but death",
  },
};

for (const [name, { events, fails }] of Object.entries(flaws)) {
  test(`a run fails its check for ${name}`, () => {
    assert.ok(failing(events).includes(fails), failing(events).join("; ") || "nothing fails");
  });
}

test("a dead letter that is not what was published fails, and one that is lost does", () => {
  const other = { ...letter, message: { ...letter.message, headers: { key: "a", hash } } };
  assert.deepEqual(failing(sound, [other]), ["the dead letters are what was published"]);
  assert.deepEqual(failing(sound, []), [lost]);
});

test("what the operator decided accounts for what it may have been decided of, and for no more", () => {
  const deleted: LedgerEvent = { t: 50, kind: "deleting", id: "D" };
  const purged: LedgerEvent = { t: 50, kind: "purging", before: 40 };
  assert.deepEqual(failing([...sound, deleted], []), []);
  assert.deepEqual(failing([...sound, purged], []), []);
  assert.deepEqual(failing([...sound, { ...purged, before: 5 }], []), [lost], "it failed later than that");
  const waiting = [attempt(1, "w"), published(2, "w", "W"), received(3, "W", "w1", 1, "w")];
  assert.deepEqual(failing([...sound, ...waiting, purged]), [lost], "it never died");
  const again = [received(50, "D", "d2", 1, "dead key", { hash })];
  assert.deepEqual(failing([...sound, ...again]), ["every delivery was counted"]);
  assert.deepEqual(failing([...sound, { t: 40, kind: "replaying" }, ...again]), []);
  assert.deepEqual(failing([...sound, { t: 40, kind: "replaying", id: "D" }, ...again]), []);
});

test("a ledger keeps what was written before its writer died, and what the next one writes", () => {
  using directory = temporaryDirectory();
  const path = `${directory.path}/ledger`;
  const first = new Ledger(path);
  first.note({ kind: "handled", id: "A" });
  first.close();
  fs.appendFileSync(path, '{"t":1,"kind":"han');
  const second = new Ledger(path);
  second.note({ kind: "handled", id: "B" }, { kind: "handled", id: "C" });
  second.close();
  assert.deepEqual(readLedger(path).map((event) => (event as { id?: string }).id), ["A", "B", "C"]);
  assert.deepEqual(readLedger(`${directory.path}/absent`), []);
});
