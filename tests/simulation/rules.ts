/**
 * What must be true of a queue directory, at any step and after any crash, by what is known of its messages.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { Contents } from "./contents.ts";
import type { Fact, Ledger } from "./ledger.ts";

/**
 * Checks a directory.
 *
 * After a power cut an unflushed move may be undone, so there a message may be back after its ack and a count may be one
 * that an earlier name held; what stands in the names is then what the broker must report.
 *
 * @param lossless Whether nothing was lost: nobody crashed, or processes died and the disk is as they left it.
 */
export function checkContents(ledger: Ledger, contents: Contents, now: number, lossless: boolean): void {
  const { live, dead, damaged } = contents;
  assert.deepEqual(damaged, [], "torn: something was set aside");
  for (const [id, entries] of live) {
    for (const { record, entry } of entries) {
      const fact = ledger.recognize(id, record);
      assert.equal(entry.enqueuedAt, fact.enqueuedAt, `${fact.payload}: enqueuedAt changed`);
      assert.equal(entry.priority, fact.priority, `${fact.payload}: the priority changed`);
      const isNew = fact.entries.length === 0 && !fact.letter && fact.arriving > 0 && ledger.receives === 0;
      if (isNew) assert.equal(entry.instant, fact.notBefore, `${fact.payload} becomes visible at another instant`);
    }
  }
  for (const [id, letters] of dead) {
    for (const { record, name, footer } of letters) {
      const fact = ledger.recognize(id, record);
      assert.equal(footer.enqueuedAt, fact.enqueuedAt, `${fact.payload}: enqueuedAt changed`);
      assert.equal(footer.priority, fact.priority, `${fact.payload}: the priority changed`);
      assert.ok(name.failedAt <= now, `${fact.payload} failed later than now`);
    }
  }
  for (const fact of ledger.byPayload.values()) {
    const entries = live.get(fact.id!) ?? [];
    const letters = dead.get(fact.id!) ?? [];
    checkPresence(ledger, fact, entries.length, letters.length, lossless);
    if (lossless) {
      checkNoReturn(ledger, fact, entries.length, letters.length);
      for (const { entry } of entries) checkCount(ledger, fact, entry.deliveries);
      if (isLeftAlone(ledger, fact, now)) {
        assert.deepEqual(
          entries.map(({ name }) => name).sort(),
          fact.entries.map(({ name }) => name).sort(),
          `${fact.payload} moved by itself`,
        );
      }
    }
  }
  checkKeys(ledger, contents, now);
}

function checkPresence(ledger: Ledger, fact: Fact, live: number, dead: number, lossless: boolean): void {
  const replays = ledger.replays(fact);
  const { removing, burying, buried, clearing } = fact;
  const hasEntry = fact.live > 0 && (lossless || fact.liveIsDurable);
  const hasLetter = (fact.dead > 0 && (lossless || fact.deadIsDurable)) || buried > 0;
  const entrySafe = hasEntry && removing === 0 && !(burying > 0 && clearing > 0);
  const letterSafe = hasLetter && clearing === 0 && !(replays > 0 && removing > 0);
  if (entrySafe || letterSafe) assert.ok(live + dead > 0, `lost: ${fact.payload}`);
  if (hasEntry && removing === 0 && burying === 0) assert.ok(live > 0, `lost: ${fact.payload}, which was live`);
  if (hasLetter && clearing === 0 && replays === 0) assert.ok(dead > 0, `lost: the letter of ${fact.payload}`);
}

/** What was ended while nothing was lost does not come back, and nothing multiplies. */
function checkNoReturn(ledger: Ledger, fact: Fact, live: number, dead: number): void {
  const { arriving, removed, buried, cleared, burying } = fact;
  const mostLive = fact.entries.length + (fact.letter ? 0 : arriving) + ledger.replays(fact) - removed - buried;
  assert.ok(live <= mostLive, `${fact.payload} came back: ${live} entries, at most ${mostLive} expected`);
  const mostDead = cleared > 0 ? burying : fact.letters.length + (fact.letter ? arriving : 0) + burying;
  assert.ok(dead <= mostDead, `${fact.payload} came back: ${dead} letters, at most ${mostDead} expected`);
}

function checkCount(ledger: Ledger, fact: Fact, count: number): void {
  const least = ledger.leastCount(fact);
  const greatest = ledger.greatestCount(fact);
  assert.ok(
    least <= count && count <= greatest,
    `${fact.payload} has the count ${count}, between ${least} and ${greatest} expected`,
  );
}

/** Whether no call since all was quiet may have moved it. */
function isLeftAlone(ledger: Ledger, fact: Fact, now: number): boolean {
  if (fact.arriving + fact.removing + fact.burying + fact.settling + ledger.replays(fact) > 0) return false;
  // A reserved message is moved by whoever finds it.
  if (fact.entries.some(({ state }) => state === "pending")) return false;
  return ledger.receives === 0 || fact.entries.every(({ entry }) => entry.instant > now);
}

/** A key that is reserved has not cost its message, and a key that a call reserved stays so. */
function checkKeys(ledger: Ledger, { live, dead, reservations }: Contents, now: number): void {
  for (const { id, end, record } of reservations.values()) {
    const fact = ledger.recognize(id, record);
    if (end <= now || live.has(id) || dead.has(id)) continue;
    assert.ok(ledger.mayHaveEnded(fact), `a key is reserved and its message is nowhere: ${fact.payload}`);
  }
  for (const fact of ledger.byPayload.values()) {
    if (!fact.keyHeld || fact.keyEnd! <= now) continue;
    const reservation = reservations.get(fact.key!);
    assert.ok(reservation !== undefined && reservation.end > now, `the key of ${fact.payload} is free again`);
  }
}
