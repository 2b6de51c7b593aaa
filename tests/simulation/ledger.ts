/**
 * What is known of every message of a program: what it is, where it lay when all was quiet, and what calls have done to it
 * since or may be doing.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { NormalizedPolicy } from "../../src/core/policy.ts";
import type { Priority } from "../../src/core/priority.ts";
import type { Message, Receipt } from "../../src/core/values.ts";
import type { Contents, LetterEntry, LiveEntry, RecordText } from "./contents.ts";

/** What a message is from its publication on. */
export interface Birth {
  /** Its payload, which no other message has. */
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly priority: Priority;
  readonly enqueuedAt: number;
  /** Nobody may be handed it before. */
  readonly notBefore: number;
  /** Whether it is made as a dead letter. */
  readonly letter?: boolean;
  /** What its count starts from. */
  readonly deliveries?: number;
  /** The hash of its once key. */
  readonly key?: string;
  /** When its key is free again. */
  readonly keyEnd?: number;
}

/** What is known of a message. Counters of calls say how many began since all was quiet and were not refused. */
export interface Fact extends Birth {
  id: string | undefined;
  /** Its `publishOnce` said that it was published. */
  keyHeld: boolean;
  /** It lay somewhere once. */
  seen: boolean;
  /** How many entries it has, and letters: when all was quiet, plus what resolved calls added. */
  live: number;
  dead: number;
  /** Whether a power cut must leave an entry of it, or a letter. */
  liveIsDurable: boolean;
  deadIsDurable: boolean;
  /** What lay there when all was quiet. */
  entries: readonly LiveEntry[];
  letters: readonly LetterEntry[];
  /** Its publication is under way. */
  arriving: number;
  /** Calls that remove its entries: acks and purges; those of one entry that resolved. */
  removing: number;
  removed: number;
  /** Calls that make a letter of it; those that resolved. */
  burying: number;
  buried: number;
  /** Calls that remove its letters; those that resolved. */
  clearing: number;
  cleared: number;
  /** Calls that replay it. */
  replaying: number;
  /** Calls that hand it back. */
  handing: number;
  /** Calls that hand it back uncounted. */
  releasing: number;
  /** Calls with a receipt of it. */
  settling: number;
  /** How often it was handed out. */
  delivered: number;
}

const untouched = {
  arriving: 0,
  removing: 0,
  removed: 0,
  burying: 0,
  buried: 0,
  clearing: 0,
  cleared: 0,
  replaying: 0,
  handing: 0,
  releasing: 0,
  settling: 0,
  delivered: 0,
} as const;

/** The facts of one program. */
export class Ledger {
  readonly policy: NormalizedPolicy;
  readonly byPayload: Map<string, Fact> = new Map();
  readonly byId: Map<string, Fact> = new Map();
  /** Receives since all was quiet, each of which may raise a count. */
  receives = 0;
  /** Leases made since all was quiet. */
  leases: Set<Receipt> = new Set();
  /** Purges under way. */
  purging = 0;
  /** Bulk replays since all was quiet. */
  bulkReplays = 0;
  /** Letters that failed before are being purged, or were since all was quiet. */
  clearedBefore = 0;

  constructor(policy: NormalizedPolicy) {
    this.policy = policy;
  }

  /** The ledger as it is now, for a check that is made later. */
  copy(): Ledger {
    const copy = new Ledger(this.policy);
    for (const fact of this.byPayload.values()) {
      const copied = { ...fact };
      copy.byPayload.set(fact.payload, copied);
      if (fact.id !== undefined) copy.byId.set(fact.id, copied);
    }
    copy.receives = this.receives;
    copy.bulkReplays = this.bulkReplays;
    copy.clearedBefore = this.clearedBefore;
    return copy;
  }

  /** Notes a message whose publication begins. */
  add(birth: Birth): Fact {
    const fact: Fact = {
      ...birth,
      ...untouched,
      id: undefined,
      keyHeld: false,
      seen: false,
      live: 0,
      dead: 0,
      liveIsDurable: false,
      deadIsDurable: false,
      entries: [],
      letters: [],
      arriving: 1,
      removing: this.purging,
    };
    this.byPayload.set(fact.payload, fact);
    return fact;
  }

  /** Forgets a message whose publication was refused. */
  forget(fact: Fact): void {
    this.byPayload.delete(fact.payload);
    if (fact.id !== undefined) this.byId.delete(fact.id);
  }

  /** Notes that a publication resolved. */
  land(fact: Fact, id: string): void {
    this.#bind(fact, id);
    fact.seen = true;
    if (fact.letter) {
      fact.dead++;
      fact.deadIsDurable = true;
    } else {
      fact.live++;
      fact.liveIsDurable = true;
    }
  }

  /** The fact of a message that came from the broker; refuses one that is torn, mixed up or under another's id. */
  identify(message: Message, priority: Priority): Fact {
    const payload = new TextDecoder().decode(message.payload);
    const fact = this.recognize(message.id, { payload, headers: message.headers });
    assert.equal(message.enqueuedAt.getTime(), fact.enqueuedAt, `${payload}: enqueuedAt changed`);
    assert.equal(priority, fact.priority, `${payload}: the priority changed`);
    return fact;
  }

  /** The fact of a record under an id. */
  recognize(id: string, record: RecordText | undefined): Fact {
    assert.ok(record !== undefined, `torn: the record of ${id}`);
    const fact = this.byPayload.get(record.payload);
    assert.ok(fact !== undefined, `a payload that nobody published: ${JSON.stringify(record.payload)}`);
    this.#bind(fact, id);
    const names = Object.keys(record.headers);
    const same = names.length === Object.keys(fact.headers).length &&
      names.every((name) => record.headers[name] === fact.headers[name]);
    assert.ok(same, `${record.payload} has headers ${JSON.stringify(record.headers)}`);
    return fact;
  }

  #bind(fact: Fact, id: string): void {
    const other = this.byId.get(id);
    assert.ok(other === undefined || other === fact, `${fact.payload} came under the id of ${other?.payload}`);
    assert.ok(fact.id === undefined || fact.id === id, `${fact.payload} came under two ids`);
    fact.id = id;
    this.byId.set(id, fact);
  }

  /** Notes a receive, and what it may do besides handing out. */
  beginReceive(now: number): void {
    this.receives++;
    const { maxAge, maxDeliveries, deadLetterRetention } = this.policy;
    for (const fact of this.byPayload.values()) {
      const expired = maxAge > 0 && now - fact.enqueuedAt >= maxAge;
      const spent = fact.entries.some(({ state, entry }) =>
        state === "leased" && entry.instant <= now && entry.deliveries >= maxDeliveries
      );
      if ((fact.live > 0 || fact.arriving > 0) && (expired || spent)) fact.burying++;
      if (deadLetterRetention > 0 && fact.letters.some(({ name }) => now - name.failedAt > deadLetterRetention)) {
        fact.clearing++;
      }
    }
  }

  /** Notes a purge; returns what notes its end. */
  beginPurge(): () => void {
    this.purging++;
    for (const fact of this.byPayload.values()) fact.removing++;
    return () => void this.purging--;
  }

  /** The least count that an entry may have while nothing was lost. */
  leastCount(fact: Fact): number {
    if (fact.replaying + this.bulkReplays > 0 && (fact.dead > 0 || fact.burying > 0)) return 0;
    const counts = fact.entries.map(({ entry }) => entry.deliveries);
    if (fact.arriving > 0) counts.push(fact.deliveries ?? 0);
    return Math.max(0, Math.min(...counts) - fact.releasing);
  }

  /** The greatest count that an entry may have while nothing was lost. */
  greatestCount(fact: Fact): number {
    return Math.max(fact.deliveries ?? 0, ...fact.entries.map(({ entry }) => entry.deliveries)) + this.receives;
  }

  /** How many of its entries a receive may hand out. */
  available(fact: Fact, now: number): number {
    const due = fact.entries.filter(({ entry }) => entry.instant <= now).length;
    return due + fact.arriving + fact.handing + this.replays(fact);
  }

  /** How many calls may replay it. */
  replays(fact: Fact): number {
    return fact.dead > 0 || fact.burying > 0 || fact.letter ? fact.replaying + this.bulkReplays : 0;
  }

  /** Whether the message may have ended for good. */
  mayHaveEnded(fact: Fact): boolean {
    return (fact.seen && fact.live === 0 && fact.dead === 0) || fact.removing > 0 || fact.clearing > 0;
  }

  /**
   * Takes over what lies there now that all is quiet.
   *
   * @param how Whether every call had its end, the processes were killed, or the power was cut.
   */
  settle({ live, dead }: Contents, how: "finished" | "killed" | "cut"): void {
    for (const [id, entries] of live) this.recognize(id, entries[0]!.record);
    for (const [id, letters] of dead) this.recognize(id, letters[0]!.record);
    for (const fact of this.byPayload.values()) {
      const wasDead = fact.dead > 0;
      fact.entries = live.get(fact.id!) ?? [];
      fact.letters = dead.get(fact.id!) ?? [];
      fact.live = fact.entries.length;
      fact.dead = fact.letters.length;
      fact.seen ||= fact.live + fact.dead > 0 || fact.removing > 0;
      // After a power cut all that is there is on the device; so is what a replay moved that resolved, and a letter
      // without an entry, since the entry goes last.
      const replayed = wasDead && fact.dead === 0 && how === "finished";
      fact.liveIsDurable = fact.live > 0 && (fact.liveIsDurable || replayed || how === "cut");
      fact.deadIsDurable = fact.dead > 0 && (fact.deadIsDurable || (fact.live === 0 && !fact.letter) || how === "cut");
      Object.assign(fact, untouched);
    }
    this.receives = 0;
    this.leases = new Set();
    this.purging = 0;
    this.bulkReplays = 0;
    this.clearedBefore = 0;
  }
}
