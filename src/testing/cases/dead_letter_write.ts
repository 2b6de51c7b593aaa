/**
 * Writing a dead letter that was recorded elsewhere.
 *
 * @module
 */

import { maxInstant } from "../../core/limits.ts";
import type { DeadLetter } from "../../core/values.ts";
import { ensure, equal, notEqual, refuses } from "../assert.ts";
import { bytes, type CaseDefinition, type Feature } from "../case.ts";
import { allDeadLetters, bury, onlyDeadLetter, receiveNothing, receiveOne } from "../steps.ts";

const needs: readonly Feature[] = ["DeadLetterReader", "DeadLetterWriter"];

function deadLetter(changes: Partial<DeadLetter> = {}, message: Partial<DeadLetter["message"]> = {}): DeadLetter {
  return {
    message: {
      id: "",
      enqueuedAt: new Date(Date.UTC(2025, 5, 1)),
      payload: bytes("recorded elsewhere"),
      headers: {},
      ...message,
    },
    failedAt: new Date(Date.UTC(2025, 5, 2)),
    reason: "PAYMENT_DECLINED",
    cause: "The payment was declined",
    code: 4_711,
    trail: [1, 2, 3],
    deliveries: 7,
    priority: 0,
    ...changes,
  };
}

function withoutId(dead: DeadLetter): DeadLetter {
  return { ...dead, message: { ...dead.message, id: "", headers: { ...dead.message.headers } } };
}

const kept: readonly DeadLetter[] = [
  deadLetter(),
  deadLetter({ deliveries: 0, code: 0, trail: undefined }),
  deadLetter({ deliveries: 2_147_483_647, code: 0xffff_ffff }),
  deadLetter({ reason: "", cause: "" }),
  deadLetter({ reason: "\u{1f600}".repeat(120), cause: "e\u0301".repeat(60) }),
  deadLetter({ reason: `"quotes": and 'more'`, cause: "tab\tand \u0000 and \\" }),
  deadLetter({ trail: Array.from({ length: 16 }, (_, index) => 0xffff_ffff - index) }),
  deadLetter({ failedAt: new Date(0) }, { enqueuedAt: new Date(0) }),
  deadLetter({ failedAt: new Date(maxInstant) }, { enqueuedAt: new Date(maxInstant) }),
  deadLetter({}, { payload: new Uint8Array(0) }),
  deadLetter({}, { payload: new Uint8Array(100_000).fill(9) }),
];

type Row = readonly [field: string, dead: unknown];

const refused: readonly Row[] = [
  ["message.id", deadLetter({}, { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" })],
  ["deliveries", deadLetter({ deliveries: -1 })],
  ["deliveries", deadLetter({ deliveries: 2_147_483_648 })],
  ["deliveries", deadLetter({ deliveries: 1.5 })],
  ["deliveries", deadLetter({ deliveries: NaN })],
  ["message.enqueuedAt", deadLetter({}, { enqueuedAt: new Date(-1) })],
  ["message.enqueuedAt", deadLetter({}, { enqueuedAt: new Date(maxInstant + 1) })],
  ["message.enqueuedAt", deadLetter({}, { enqueuedAt: new Date(NaN) })],
  ["failedAt", deadLetter({ failedAt: new Date(-1) })],
  ["failedAt", deadLetter({ failedAt: new Date(maxInstant + 1) })],
  ["failedAt", deadLetter({ failedAt: new Date(NaN) })],
  ["reason", deadLetter({ reason: "x".repeat(121) })],
  ["reason", deadLetter({ reason: "one\ntwo" })],
  ["reason", deadLetter({ reason: "\ud800" })],
  ["cause", deadLetter({ cause: "\u{1f600}".repeat(121) })],
  ["cause", deadLetter({ cause: "one\rtwo" })],
  ["cause", deadLetter({ cause: "one\u2028two" })],
  ["code", deadLetter({ code: -1 })],
  ["code", deadLetter({ code: 0x1_0000_0000 })],
  ["code", deadLetter({ code: 0.5 })],
  ["trail", deadLetter({ trail: Array.from({ length: 17 }, () => 1) })],
  ["trail", deadLetter({ trail: [-1] })],
  ["priority", deadLetter({ priority: 3 as 2 })],
  ["priority", deadLetter({ priority: 0.5 as 0 })],
];

/** Writing dead letters. */
export const deadLetterWriteCases: readonly CaseDefinition[] = [
  {
    id: "put-dead-kept",
    title: "it is kept as given but for the id, which is minted",
    needs: [...needs, "DeadLetterManager"],
    async run({ broker }) {
      for (const dead of kept) {
        const id = await broker.putDeadLetter(dead);
        const read = await onlyDeadLetter(broker);
        ensure(id !== "" && read.message.id === id, `The id answered is ${id}, the one read is ${read.message.id}`);
        equal(withoutId(read), withoutId(dead), "The dead letter read back");
        await broker.deleteDeadLetter(id);
      }
    },
  },
  {
    id: "put-dead-priority",
    title: "its level and headers are kept",
    needs: [...needs, "headers", "priority"],
    async run({ broker }) {
      const dead = deadLetter({ priority: -2 }, { headers: { name: "value" } });
      await broker.putDeadLetter(dead);
      equal(withoutId(await onlyDeadLetter(broker)), withoutId(dead), "The dead letter read back");
    },
  },
  {
    id: "put-dead-empty-trail",
    title: "an empty trail reads back as absent",
    needs,
    async run({ broker }) {
      await broker.putDeadLetter(deadLetter({ trail: [] }));
      equal((await onlyDeadLetter(broker)).trail, undefined, "The trail");
    },
  },
  {
    id: "put-dead-unique",
    title: "every one gets its own id, also for one instant",
    needs,
    async run({ broker }) {
      const first = await broker.putDeadLetter(deadLetter());
      notEqual(await broker.putDeadLetter(deadLetter()), first, "The second id");
      equal((await allDeadLetters(broker)).length, 2, "The number of dead letters");
    },
  },
  {
    id: "put-dead-order",
    title: "it sorts by the instant it was enqueued at",
    needs: [...needs, "orderedIds"],
    policy: { maxDeliveries: 1 },
    async run({ broker, clock }) {
      await bury(broker, "now");
      const instants = [clock.now() + 60_000, clock.now() - 60_000, 0];
      for (const instant of instants) await broker.putDeadLetter(deadLetter({}, { enqueuedAt: new Date(instant) }));
      const order = (await allDeadLetters(broker)).map(({ message }) => message.enqueuedAt.getTime());
      equal(order, [...instants, clock.now()].sort((a, b) => a - b), "The order of the dead letters");
    },
  },
  {
    id: "put-dead-refused",
    title: "what cannot be recorded is refused by field, and nothing is written",
    needs,
    async run({ broker }) {
      for (const [field, dead] of refused) {
        const put = () => broker.putDeadLetter(dead as DeadLetter);
        await refuses(put, "INVALID_DEAD_LETTER", `A dead letter with a bad "${field}"`, field);
      }
      equal(await allDeadLetters(broker), [], "The dead letters");
    },
  },
  {
    id: "put-dead-oversized",
    title: "a payload that is too large is refused, and nothing is written",
    needs,
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      await refuses(() => broker.putDeadLetter(deadLetter()), "MESSAGE_TOO_LARGE", "18 bytes", "payload");
      equal(await allDeadLetters(broker), [], "The dead letters");
    },
  },
  {
    id: "put-dead-undelivered",
    title: "it is not delivered until it is replayed, and then like any other",
    needs: [...needs, "DeadLetterManager"],
    async run({ broker, pass }) {
      const id = await broker.putDeadLetter(deadLetter());
      pass(3_600_000);
      await receiveNothing(broker, "beside a dead letter that was written");
      await broker.replayDeadLetter(id);
      const delivery = await receiveOne(broker);
      equal(delivery.deliveries, 1, "The delivery count");
      equal(delivery.message, { ...deadLetter().message, id }, "The message replayed");
    },
  },
  {
    id: "put-dead-copied",
    title: "a record that the caller changes afterwards changes nothing",
    needs,
    async run({ broker }) {
      const payload = bytes("recorded elsewhere");
      const trail = [1, 2, 3];
      await broker.putDeadLetter(deadLetter({ trail }, { payload }));
      payload.fill(0);
      trail[0] = 9;
      equal(withoutId(await onlyDeadLetter(broker)), withoutId(deadLetter()), "The dead letter read back");
    },
  },
];
