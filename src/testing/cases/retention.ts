/**
 * Dead letters that are not kept for good.
 *
 * @module
 */

import { ensure, equal } from "../assert.ts";
import { type AnyBroker, bytes, type CaseDefinition, type Feature } from "../case.ts";
import { allDeadLetters, bury, payloadText, receiveNothing } from "../steps.ts";

const needs: readonly Feature[] = ["retention", "DeadLetterReader"];
const keeping = { deadLetterRetention: 3_600_000, maxDeliveries: 1 };

async function deadTexts(broker: AnyBroker): Promise<string[]> {
  return (await allDeadLetters(broker)).map(payloadText);
}

/** Retention. */
export const retentionCases: readonly CaseDefinition[] = [
  {
    id: "retention-removes",
    title: "a receive removes what is older than the retention and leaves what is not",
    needs,
    policy: keeping,
    async run({ broker, pass }) {
      await bury(broker, "old");
      pass(3_000_000);
      await bury(broker, "young");
      pass(599_999);
      await receiveNothing(broker, "one tick before the first is old enough");
      equal((await deadTexts(broker)).sort(), ["old", "young"], "The dead letters one tick before");
      pass(120_000);
      equal((await deadTexts(broker)).sort(), ["old", "young"], "The dead letters before anybody received");
      await receiveNothing(broker, "after the first grew old");
      equal(await deadTexts(broker), ["young"], "The dead letters after a receive");
    },
  },
  {
    id: "retention-by-failure",
    title: "the age counts from when it failed, not from when it was published",
    needs,
    policy: { ...keeping, visibilityTimeout: 86_400_000 },
    async run({ broker, pass }) {
      await broker.publish(bytes("work"));
      const [delivery] = await broker.receive(1);
      pass(36_000_000);
      await broker.nack(delivery!.lease.receipt);
      pass(120_000);
      await receiveNothing(broker, "after the failure");
      equal(await deadTexts(broker), ["work"], "The dead letters");
    },
  },
  {
    id: "retention-seldom",
    title: "there is at most one sweep a minute",
    needs: [...needs, "DeadLetterWriter"],
    policy: keeping,
    async run({ broker, clock, pass }) {
      const old = (text: string) =>
        broker.putDeadLetter({
          message: { id: "", enqueuedAt: new Date(0), payload: bytes(text), headers: {} },
          failedAt: new Date(clock.now() - 7_200_000),
          reason: "",
          cause: "",
          code: 0,
          deliveries: 1,
          priority: 0,
        });
      await old("first");
      pass(120_000);
      await receiveNothing(broker, "before the first sweep");
      equal(await deadTexts(broker), [], "The dead letters after the first sweep");
      await old("second");
      pass(30_000);
      await receiveNothing(broker, "half a minute later");
      equal(await deadTexts(broker), ["second"], "The dead letters half a minute later");
      pass(31_000);
      await receiveNothing(broker, "a minute later");
      equal(await deadTexts(broker), [], "The dead letters a minute later");
    },
  },
  {
    id: "retention-many",
    title: "hundreds are removed, some at a time",
    needs: [...needs, "DeadLetterWriter", "Counter"],
    policy: keeping,
    async run({ broker, clock, pass }) {
      for (let index = 0; index < 250; index++) {
        await broker.putDeadLetter({
          message: { id: "", enqueuedAt: new Date(index), payload: bytes("work"), headers: {} },
          failedAt: new Date(clock.now() - 7_200_000),
          reason: "",
          cause: "",
          code: 0,
          deliveries: 1,
          priority: 0,
        });
      }
      pass(61_000);
      await receiveNothing(broker, "in the first sweep");
      ensure((await broker.stats()).dead >= 150, "One sweep removed more than 100");
      for (let sweep = 0; sweep < 5; sweep++) {
        pass(61_000);
        await receiveNothing(broker, "in a later sweep");
      }
      equal((await broker.stats()).dead, 0, "The number of dead letters in the end");
    },
  },
  {
    id: "retention-none",
    title: "without a retention they are kept for good",
    needs: ["DeadLetterReader"],
    policy: { maxDeliveries: 1 },
    async run({ broker, pass }) {
      await bury(broker, "work");
      pass(100 * 365 * 24 * 3_600_000);
      await receiveNothing(broker, "after a century");
      equal(await deadTexts(broker), ["work"], "The dead letters after a century");
    },
  },
];
