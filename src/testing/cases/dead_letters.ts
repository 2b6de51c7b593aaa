/**
 * What a dead letter records, and reading it.
 *
 * @module
 */

import { QueueError } from "../../core/error.ts";
import { doNotRetry, retryAfter } from "../../core/marks.ts";
import { reasons } from "../../core/reasons.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { allDeadLetters, bury, lease, onlyDeadLetter, payloadText, receiveNothing, receiveOne } from "../steps.ts";
import { badBatchSizes } from "./receive.ts";

const { NOT_RETRYABLE, RETRY_REQUESTED, TASK_TIMEOUT, MESSAGE_TOO_LARGE } = reasons;

interface Recorded {
  readonly what: string;
  readonly cause: unknown;
  readonly reason: string;
  readonly text: string;
  readonly code: number;
  readonly trail?: readonly number[];
}

class PaymentDeclined extends Error {
  override readonly name: string = "PaymentDeclined";
}

const longName = Object.assign(new Error("m"), { name: "N".repeat(300) });
const brokenName = Object.assign(new Error("m"), { name: "One\r\nTwo" });

function nested(codes: number): unknown {
  let error: unknown = new QueueError("TASK_TIMEOUT");
  for (let index = 0; index < codes; index++) error = new QueueError("MESSAGE_TOO_LARGE", undefined, { cause: error });
  return error;
}

const recordings: readonly Recorded[] = [
  { what: "no cause", cause: undefined, reason: "UNREPORTED", text: "", code: 0 },
  { what: "an error of ours", cause: new QueueError("TASK_TIMEOUT"), reason: "TASK_TIMEOUT", ...TASK_TIMEOUT },
  { what: "a foreign error", cause: new RangeError("secret"), reason: "UNCLASSIFIED", text: "RangeError", code: 0 },
  {
    what: "a subclass",
    cause: new PaymentDeclined("secret"),
    reason: "UNCLASSIFIED",
    text: "PaymentDeclined",
    code: 0,
  },
  { what: "no error at all", cause: "a text", reason: "UNCLASSIFIED", text: "", code: 0 },
  { what: "a long name", cause: longName, reason: "UNCLASSIFIED", text: "N".repeat(120), code: 0 },
  { what: "a name with a line break", cause: brokenName, reason: "UNCLASSIFIED", text: "One Two", code: 0 },
  {
    what: "ours behind a foreign one",
    cause: new Error("outer", { cause: new QueueError("TASK_TIMEOUT") }),
    reason: "TASK_TIMEOUT",
    ...TASK_TIMEOUT,
  },
  {
    what: "ours behind ours",
    cause: nested(1),
    reason: "TASK_TIMEOUT",
    ...TASK_TIMEOUT,
    trail: [MESSAGE_TOO_LARGE.code],
  },
  {
    what: "ours behind many of ours",
    cause: nested(20),
    reason: "TASK_TIMEOUT",
    ...TASK_TIMEOUT,
    trail: Array.from({ length: 16 }, () => MESSAGE_TOO_LARGE.code),
  },
  {
    what: "doNotRetry around a foreign error",
    cause: doNotRetry(new RangeError("secret")),
    reason: "NOT_RETRYABLE",
    text: "RangeError",
    code: NOT_RETRYABLE.code,
  },
  {
    what: "retryAfter around a foreign error",
    cause: retryAfter(new RangeError("secret"), 5),
    reason: "RETRY_REQUESTED",
    text: "RangeError",
    code: RETRY_REQUESTED.code,
  },
  {
    what: "doNotRetry around ours",
    cause: doNotRetry(new QueueError("TASK_TIMEOUT")),
    reason: "TASK_TIMEOUT",
    ...TASK_TIMEOUT,
    trail: [NOT_RETRYABLE.code],
  },
];

/** Dead letters. */
export const deadLetterCases: readonly CaseDefinition[] = [
  {
    id: "dead-record",
    title: "a dead letter keeps the message unmodified, when it failed, its count and its level",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 2 },
    async run({ broker, clock, pass }) {
      const first = await lease(broker);
      pass(1_000);
      await broker.nack(first.lease.receipt, new QueueError("TASK_UNDECODABLE"));
      const second = await receiveOne(broker);
      pass(2_000);
      await broker.nack(second.lease.receipt, new QueueError("TASK_TIMEOUT"));
      equal(await onlyDeadLetter(broker), {
        message: first.message,
        failedAt: new Date(clock.now()),
        reason: "TASK_TIMEOUT",
        cause: TASK_TIMEOUT.text,
        code: TASK_TIMEOUT.code,
        deliveries: 2,
        priority: 0,
      }, "The dead letter");
    },
  },
  {
    id: "dead-causes",
    title: "of a cause its reason, public half, code and trail are recorded, never its own text",
    needs: ["DeadLetterReader", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      for (const { what, cause, reason, text, code, trail } of recordings) {
        await bury(broker, "work", cause);
        const dead = await onlyDeadLetter(broker);
        const recorded = { reason: dead.reason, cause: dead.cause, code: dead.code, trail: dead.trail };
        equal(recorded, { reason, cause: text, code, trail: trail && [...trail] }, `What is recorded of ${what}`);
        await broker.deleteDeadLetter(dead.message.id);
      }
    },
  },
  {
    id: "dead-reading",
    title: "reading removes nothing and shares nothing",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      for (const text of ["one", "two", "three"]) await bury(broker, text);
      for (let round = 0; round < 3; round++) {
        const dead = await allDeadLetters(broker);
        equal(dead.map(payloadText).sort(), ["one", "three", "two"], "The dead letters");
        for (const { message } of dead) message.payload.fill(0);
      }
      await receiveNothing(broker, "beside dead letters");
    },
  },
  {
    id: "dead-order",
    title: "the oldest come first by id, whatever order they died in, and at most so many as asked for",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      const ids: string[] = [];
      for (let index = 0; index < 5; index++) {
        ids.push((await broker.publish(bytes(`${index}`))).id);
        pass(1);
      }
      const received = await broker.receive(5);
      for (const delivery of [...received].reverse()) {
        await broker.nack(delivery.lease.receipt);
        pass(1);
      }
      const sorted = [...ids].sort();
      equal((await allDeadLetters(broker)).map(({ message }) => message.id), sorted, "All ids");
      const first = await broker.deadLetters({ max: 2 });
      equal(first.map(({ message }) => message.id), sorted.slice(0, 2), "The first two ids");
    },
  },
  {
    id: "dead-batch-size",
    title: "a batch size that is no positive whole number is refused",
    needs: ["DeadLetterReader", "DeadLetterPager"],
    async run({ broker }) {
      for (const max of badBatchSizes as number[]) {
        await refuses(() => broker.deadLetters({ max }), "INVALID_BATCH_SIZE", `Reading ${max}`, "max");
        await refuses(() => broker.deadLettersAfter({ max }), "INVALID_BATCH_SIZE", `A page of ${max}`, "max");
      }
    },
  },
  {
    id: "dead-pages",
    title: "paging with the last id visits each once, in id order",
    needs: ["DeadLetterReader", "DeadLetterPager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      for (let index = 0; index < 7; index++) await bury(broker, `${index}`);
      const all = await allDeadLetters(broker);
      for (const max of [1, 2, 3, 7, 100]) {
        const paged = [];
        let after = "";
        for (;;) {
          const page = await broker.deadLettersAfter({ after, max });
          ensure(page.length <= max, `A page of ${max} holds ${page.length}`);
          if (page.length === 0) break;
          paged.push(...page);
          ensure(paged.length <= all.length, `Pages of ${max} hold more than there is`);
          after = page.at(-1)!.message.id;
        }
        equal(paged, all, `All pages of ${max}`);
      }
    },
  },
  {
    id: "dead-page-start",
    title: "a page starts strictly after the given id, which need not exist; without one, at the first",
    needs: ["DeadLetterReader", "DeadLetterPager", "DeadLetterManager"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      for (let index = 0; index < 3; index++) await bury(broker, `${index}`);
      const ids = (await allDeadLetters(broker)).map(({ message }) => message.id);
      const page = async (after?: string) =>
        (await broker.deadLettersAfter({ after, max: 10 })).map(({ message }) => message.id);
      equal(await page(), ids, "The page without a start");
      equal(await page(ids[1]), ids.slice(2), "The page after the second");
      await broker.deleteDeadLetter(ids[1]!);
      equal(await page(ids[1]), ids.slice(2), "The page after the second, which is deleted");
      equal(await page(ids[0]), ids.slice(2), "The page after the first");
      equal(await page("\u007f"), [], "The page after everything");
      equal(await page("!"), [ids[0]!, ids[2]!], "The page after something that sorts before everything");
      equal(await page("../../etc"), [ids[0]!, ids[2]!], "The page after something like a path");
    },
  },
];
