/**
 * Holds the ledgers of a run, and what is left on the disk, against what the queue promises.
 *
 * @module
 */

import type { DeadLetter } from "../../src/core/values.ts";
import type { Attempted, LedgerEvent } from "./ledger.ts";
import { readPayload } from "./payloads.ts";

/** How a run ended. */
export interface Remains {
  /** Every ledger's lines, the final drain's among them. */
  readonly events: readonly LedgerEvent[];
  readonly dead: readonly DeadLetter[];
  readonly maxDeliveries: number;
}

/** One check and what speaks against it. */
export interface Verdict {
  readonly name: string;
  readonly problems: readonly string[];
}

type Received = Extract<LedgerEvent, { kind: "received" }>;

/** A lease as far as it is known. */
interface Life {
  readonly received: Received;
  /** When it ends; an extension moves it. */
  until: number;
  /** When the first call to settle it began. */
  settlingAt: number;
  readonly begun: Set<string>;
  /** When its acknowledgement was known. */
  ackedAt: number;
}

/** Everything that is known of one message. */
interface Story {
  readonly id: string;
  readonly lives: Life[];
  handled: boolean;
  dead: boolean;
}

/** What the lines of a run come to. */
interface Account {
  readonly attempts: ReadonlyMap<string, Attempted>;
  /** Ids by the key of their attempt. */
  readonly published: ReadonlyMap<string, string>;
  readonly reserved: ReadonlySet<string>;
  readonly stories: ReadonlyMap<string, Story>;
  readonly replayed: ReadonlySet<string>;
  readonly deleted: ReadonlySet<string>;
  readonly bulkReplays: boolean;
  /** The latest instant up to which dead letters were removed. */
  readonly purgedBefore: number;
  readonly maxDeliveries: number;
}

function take({ events, dead, maxDeliveries }: Remains): Account {
  const attempts = new Map<string, Attempted>();
  const published = new Map<string, string>();
  const reserved = new Set<string>();
  const stories = new Map<string, Story>();
  const leases = new Map<string, Life>();
  const replayed = new Set<string>();
  const deleted = new Set<string>();
  let bulkReplays = false;
  let purgedBefore = -Infinity;
  const storyOf = (id: string) => {
    let story = stories.get(id);
    if (story === undefined) stories.set(id, story = { id, lives: [], handled: false, dead: false });
    return story;
  };
  for (const event of events) {
    switch (event.kind) {
      case "publishing":
        attempts.set(event.key, event);
        break;
      case "published":
        published.set(event.key, event.id);
        break;
      case "reserved":
        reserved.add(event.key);
        break;
      case "received": {
        const life = {
          received: event,
          until: event.until,
          settlingAt: Infinity,
          begun: new Set<string>(),
          ackedAt: Infinity,
        };
        leases.set(event.lease, life);
        storyOf(event.id).lives.push(life);
        break;
      }
      case "handled":
        storyOf(event.id).handled = true;
        break;
      case "settling": {
        const life = leases.get(event.lease);
        if (life === undefined) break;
        life.begun.add(event.verb);
        if (event.verb !== "extend") life.settlingAt = Math.min(life.settlingAt, event.t);
        break;
      }
      case "settled": {
        const life = leases.get(event.lease);
        if (life === undefined) break;
        if (event.next !== undefined) {
          life.until = event.until!;
          leases.set(event.next, life);
        }
        if (event.verb === "ack" && event.outcome === "done") life.ackedAt = Math.min(life.ackedAt, event.t);
        break;
      }
      case "replaying":
        if (event.id === undefined) bulkReplays = true;
        else replayed.add(event.id);
        break;
      case "deleting":
        deleted.add(event.id);
        break;
      case "purging":
        purgedBefore = Math.max(purgedBefore, event.before);
        break;
    }
  }
  for (const { message } of dead) storyOf(message.id).dead = true;
  for (const { lives } of stories.values()) {
    lives.sort((a, b) => compareReceived(a.received, b.received));
  }
  return {
    attempts,
    published,
    reserved,
    stories,
    replayed,
    deleted,
    bulkReplays,
    purgedBefore,
    maxDeliveries,
  };
}

/** Which was leased first: sometime between the beginning of its receive and its line. Where both may be, the counts tell. */
function compareReceived(a: Received, b: Received): number {
  if (a.t < b.at || b.t < a.at) return a.at - b.at;
  return a.count - b.count || a.t - b.t;
}

/** Whether a message may have been a dead letter at some time. */
function mayHaveDied({ lives, dead }: Story, { maxDeliveries }: Account): boolean {
  return dead || lives.some(({ received, begun }) => received.count >= maxDeliveries || begun.has("reject"));
}

/** Whether a message may have been queued again from the dead letters, so that it is another message since. */
function mayBeReplayed(story: Story, account: Account): boolean {
  return account.replayed.has(story.id) || (account.bulkReplays && mayHaveDied(story, account));
}

function mayBeRemoved(story: Story, account: Account): boolean {
  if (account.deleted.has(story.id)) return true;
  const last = story.lives.at(-1)?.received.at ?? Infinity;
  return mayHaveDied(story, account) && last < account.purgedBefore;
}

function* findLost(account: Account): Generator<string> {
  for (const [key, id] of account.published) {
    const story = account.stories.get(id);
    if (story === undefined) yield `${key} was published as ${id}, and never seen again`;
    else if (!story.handled && !story.dead && !mayBeRemoved(story, account)) yield `${key}, ${id}, was never handled`;
  }
}

function* findUnended({ stories }: Account): Generator<string> {
  for (const { id, lives, handled } of stories.values()) {
    if (!handled && lives.some(({ begun }) => begun.has("ack"))) yield `${id} was acknowledged before it was handled`;
  }
}

function* findForeign(account: Account): Generator<string> {
  const ids = new Map<string, string>(account.published);
  for (const { id, lives } of account.stories.values()) {
    for (const { received } of lives) {
      const { key, wrong } = received;
      if (wrong !== undefined) yield `${id}: ${wrong}`;
      const attempt = account.attempts.get(key);
      if (attempt === undefined) {
        yield `${id}: nobody published ${JSON.stringify(key)}`;
        continue;
      }
      for (const field of ["hash", "priority", "once"] as const) {
        if (attempt[field] !== received[field]) yield `${id}: ${field} of ${key} is ${received[field]}`;
      }
      if (account.reserved.has(key)) yield `${id}: ${key} was refused, since its once key was reserved`;
      if ((ids.get(key) ?? id) !== id) yield `${key} is there as ${ids.get(key)} and as ${id}`;
      ids.set(key, id);
    }
  }
}

function* findResurrected(account: Account): Generator<string> {
  for (const story of account.stories.values()) {
    if (mayBeReplayed(story, account)) continue;
    const acked = story.lives.find(({ ackedAt }) => ackedAt < Infinity);
    if (acked === undefined) continue;
    const { count } = acked.received;
    for (const { received } of story.lives) {
      if (received === acked.received || (received.at <= acked.ackedAt && received.count <= count)) continue;
      yield `${story.id} was acknowledged on delivery ${count} and came again as ${received.count}`;
    }
  }
}

function* findShared(account: Account): Generator<string> {
  for (const story of account.stories.values()) {
    if (mayBeReplayed(story, account)) continue;
    for (const [index, { received, until, settlingAt }] of story.lives.entries()) {
      const next = story.lives[index + 1];
      if (next === undefined || settlingAt <= next.received.t) continue;
      // A receive that began before the lease's end may have got what somebody else reclaimed at its end; the clock of
      // the final drain is ahead.
      if (Math.max(next.received.t, next.received.at) >= until) continue;
      yield `${story.id} was leased until ${until} (${received.lease}) and handed out again at ${next.received.t}`;
    }
  }
}

function* findUncounted(account: Account): Generator<string> {
  for (const story of account.stories.values()) {
    if (mayBeReplayed(story, account)) continue;
    for (const [index, { received: { count }, begun }] of story.lives.entries()) {
      const next = story.lives[index + 1];
      if (next === undefined) continue;
      const least = begun.has("release") ? count : count + 1;
      if (next.received.count < least) yield `${story.id}: delivery ${count} was followed by ${next.received.count}`;
    }
  }
}

function* findRepeated({ attempts, published, reserved, stories }: Account): Generator<string> {
  const ids = new Map<string, Set<string>>();
  const answered = new Set<string>();
  for (const [key, { once }] of attempts) {
    if (once === undefined) continue;
    if (!ids.has(once)) ids.set(once, new Set());
    if (published.has(key)) ids.get(once)!.add(published.get(key)!);
    if (published.has(key) || reserved.has(key)) answered.add(once);
  }
  for (const { id, lives } of stories.values()) {
    for (const { received: { once } } of lives) if (once !== undefined) ids.get(once)?.add(id);
  }
  for (const [once, found] of ids) {
    if (found.size > 1) yield `${once} was published as ${[...found].join(" and ")}`;
    if (found.size === 0 && answered.has(once)) yield `${once} is reserved, and its message is nowhere`;
  }
}

function* findWrongLetters(account: Account, dead: readonly DeadLetter[]): Generator<string> {
  for (const { message, priority, reason, deliveries } of dead) {
    const { key, hash, wrong } = readPayload(message, priority);
    const attempt = account.attempts.get(key);
    if (wrong !== undefined) yield `dead letter ${message.id}: ${wrong}`;
    else if (attempt === undefined) yield `dead letter ${message.id}: nobody published ${JSON.stringify(key)}`;
    else if (attempt.hash !== hash || attempt.priority !== priority) yield `dead letter ${message.id} is not ${key}`;
    if (reason === "" && deliveries < account.maxDeliveries) yield `dead letter ${message.id} has no reason`;
  }
}

/** The checks of a run's ledgers, each with what speaks against it. */
export function check(remains: Remains): Verdict[] {
  const account = take(remains);
  const surprises = remains.events.flatMap((event) => event.kind === "surprise" ? [event.what] : []);
  const failures = remains.events.flatMap((event) =>
    event.kind === "settled" && !["done", "dead", "expired"].includes(event.outcome)
      ? [`${event.verb} ended in ${event.outcome}`]
      : []
  );
  return [
    { name: "no process met anything but death", problems: [...surprises, ...failures] },
    {
      name: "every publish that resolved was handled, is a dead letter or was removed",
      problems: [...findLost(account)],
    },
    { name: "nothing was acknowledged that was not handled", problems: [...findUnended(account)] },
    { name: "what was delivered is what was published, whole", problems: [...findForeign(account)] },
    { name: "nothing came back after its acknowledgement", problems: [...findResurrected(account)] },
    { name: "nothing was in two hands at once", problems: [...findShared(account)] },
    { name: "every delivery was counted", problems: [...findUncounted(account)] },
    { name: "every once key published once", problems: [...findRepeated(account)] },
    { name: "the dead letters are what was published", problems: [...findWrongLetters(account, remains.dead)] },
  ];
}
