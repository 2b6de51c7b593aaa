/**
 * No error shows a payload.
 *
 * @module
 */

import { errorChain } from "../../core/error.ts";
import { ensure, refusal } from "../assert.ts";
import { bytes, type CaseDefinition } from "../case.ts";
import { allDeadLetters, lease } from "../steps.ts";

const secret = "the-payload-that-nobody-may-see";

/** Every form in which an error could show the secret. */
function forms(): string[] {
  const secretBytes = bytes(secret);
  const hex = [...secretBytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [secret, hex, btoa(secret).slice(0, 20), [...secretBytes].join(","), [...secretBytes].slice(0, 8).join(", ")];
}

/** Everything that a logger could print of an error. */
function rendering(error: unknown): string {
  const parts: string[] = [];
  for (const link of errorChain(error)) {
    parts.push(String(link));
    if (typeof link !== "object" || link === null) continue;
    for (const name of Object.getOwnPropertyNames(link)) {
      const value = (link as Record<string, unknown>)[name];
      parts.push(String(value));
      try {
        parts.push(JSON.stringify(value) ?? "");
      } catch {
        // Something that cannot be written as JSON is covered by its text.
      }
    }
  }
  return parts.join("\n");
}

function ensureHidden(text: string, what: string): void {
  for (const form of forms()) ensure(!text.includes(form), `${what} shows the payload`);
}

/** Secrets. */
export const secretCases: readonly CaseDefinition[] = [
  {
    id: "secret-oversized",
    title: "the refusal of a payload that is too large does not show it",
    policy: { maxMessageBytes: 10 },
    async run({ broker }) {
      const error = await refusal(() => broker.publish(bytes(secret)), "An oversized payload");
      ensureHidden(rendering(error), "The refusal");
    },
  },
  {
    id: "secret-option",
    title: "the refusal of an option does not show the payload",
    async run({ broker }) {
      const error = await refusal(() => broker.publish(bytes(secret), { priority: 9 as 2 }), "A level of 9");
      ensureHidden(rendering(error), "The refusal");
    },
  },
  {
    id: "secret-header",
    title: "the refusal of headers does not show their values",
    async run({ broker }) {
      const long = { name: secret.repeat(1_000) };
      const error = await refusal(() => broker.publish(bytes("work"), { headers: long }), "Headers that are too large");
      ensureHidden(rendering(error), "The refusal");
    },
  },
  {
    id: "secret-lease",
    title: "the refusals of a lapsed lease do not show the payload",
    async run({ broker, pass }) {
      const { lease: held } = await lease(broker, secret);
      pass(30_000);
      ensureHidden(rendering(await refusal(() => broker.ack(held.receipt), "An ack")), "The refusal of an ack");
      ensureHidden(rendering(await refusal(() => broker.nack(held.receipt), "A nack")), "The refusal of a nack");
    },
  },
  {
    id: "secret-receipt",
    title: "receipt and id do not hold the payload",
    async run({ broker }) {
      const { lease: held, message } = await lease(broker, secret);
      ensureHidden(held.receipt, "The receipt");
      ensureHidden(message.id, "The id");
    },
  },
  {
    id: "secret-cause",
    title: "a dead letter never keeps the text of a foreign error, nor a stack",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker }) {
      const causes = [
        new Error(secret),
        new Error("outer", { cause: new RangeError(secret) }),
        new AggregateError([new Error(secret)], secret),
        secret,
        { message: secret, name: secret, reason: secret },
      ];
      for (const cause of causes) {
        await broker.nack((await lease(broker, "work")).lease.receipt, cause);
      }
      for (const dead of await allDeadLetters(broker)) {
        ensureHidden(JSON.stringify({ ...dead, message: undefined }), "The dead letter");
      }
    },
  },
];
