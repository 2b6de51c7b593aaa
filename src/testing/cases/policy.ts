/**
 * What a broker refuses when it is made.
 *
 * @module
 */

import { maxDeadlineOffset } from "../../core/limits.ts";
import type { Policy } from "../../core/policy.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition, type Feature } from "../case.ts";
import { receiveOne } from "../steps.ts";

type Row = readonly [field: keyof Policy, policy: Record<string, unknown>];

const growth = { retryDelay: 1_000, maxRetryDelay: 8_000 };

const refused: readonly Row[] = [
  ["visibilityTimeout", { visibilityTimeout: 0 }],
  ["visibilityTimeout", { visibilityTimeout: -1 }],
  ["visibilityTimeout", { visibilityTimeout: 0.5 }],
  ["visibilityTimeout", { visibilityTimeout: NaN }],
  ["visibilityTimeout", { visibilityTimeout: Infinity }],
  ["visibilityTimeout", { visibilityTimeout: "30000" }],
  ["visibilityTimeout", { visibilityTimeout: undefined }],
  ["visibilityTimeout", { visibilityTimeout: maxDeadlineOffset + 1 }],
  ["visibilityTimeout", { visibilityTimeout: Number.MAX_SAFE_INTEGER }],
  ["visibilityTimeout", { visibilityTimeout: 0, maxDeliveries: 0 }],
  ["maxDeliveries", { maxDeliveries: 0 }],
  ["maxDeliveries", { maxDeliveries: -1 }],
  ["maxDeliveries", { maxDeliveries: 1.5 }],
  ["maxDeliveries", { maxDeliveries: NaN }],
  ["maxDeliveries", { maxDeliveries: undefined }],
  ["maxDeliveries", { maxDeliveries: 0, maxMessageBytes: -1 }],
  ["maxMessageBytes", { maxMessageBytes: -1 }],
  ["maxMessageBytes", { maxMessageBytes: NaN }],
  ["maxMessageBytes", { maxMessageBytes: -1, retryDelay: Infinity }],
  ["retryDelay", { retryDelay: maxDeadlineOffset + 1 }],
  ["retryDelay", { retryDelay: Number.MAX_SAFE_INTEGER }],
  ["retryDelay", { retryDelay: Infinity }],
  ["retryDelay", { retryDelay: NaN }],
  ["retryDelay", { retryDelay: Infinity, maxRetryDelay: -1 }],
  ["maxRetryDelay", { retryDelay: 1, maxRetryDelay: -1 }],
  ["maxRetryDelay", { retryDelay: 1, maxRetryDelay: maxDeadlineOffset + 1 }],
  ["maxRetryDelay", { retryDelay: 1, maxRetryDelay: Number.MAX_SAFE_INTEGER }],
  ["maxRetryDelay", { maxRetryDelay: 1_000 }],
  ["maxRetryDelay", { retryDelay: -1, maxRetryDelay: 1_000 }],
  ["maxRetryDelay", { retryDelay: 2_000, maxRetryDelay: 1_999 }],
  ["maxRetryDelay", { retryDelay: 1, maxRetryDelay: NaN, retryJitter: 5 }],
  ["retryJitter", { retryJitter: 0.5 }],
  ["retryJitter", { ...growth, retryJitter: -0.1 }],
  ["retryJitter", { ...growth, retryJitter: 1.1 }],
  ["retryJitter", { ...growth, retryJitter: NaN }],
  ["retryJitter", { ...growth, retryJitter: 0.5, retryJitterMode: "full" }],
  ["retryJitter", { ...growth, retryJitter: 0.5, retryJitterMode: "decorrelated" }],
  ["retryJitterMode", { retryJitterMode: "full" }],
  ["retryJitterMode", { retryJitterMode: "decorrelated" }],
  ["retryJitterMode", { ...growth, retryJitterMode: "equal" }],
  ["maxHeaders", { maxHeaders: -1 }],
  ["maxHeaderBytes", { maxHeaderBytes: -1 }],
];

function refusalsOfAge(id: string, feature: Feature, field: "maxAge" | "deadLetterRetention"): CaseDefinition {
  return {
    id,
    title: `a bad "${field}" is refused`,
    needs: [feature],
    async run({ open }) {
      for (const value of [-1, NaN, Infinity, maxDeadlineOffset + 1, "1"]) {
        const policy = { [field]: value } as Partial<Policy>;
        await refuses(() => open({ policy }), "QUEUE_MISCONFIGURED", `A "${field}" of ${value}`, `policy.${field}`);
      }
      await open({ policy: { [field]: maxDeadlineOffset } });
    },
  };
}

/** What a broker refuses when it is made. */
export const policyCases: readonly CaseDefinition[] = [
  {
    id: "policy-refused",
    title: "a bad policy is refused when the broker is made, naming the first field that is wrong",
    async run({ open }) {
      for (const [field, policy] of refused) {
        await refuses(
          () => open({ policy: policy as Partial<Policy> }),
          "QUEUE_MISCONFIGURED",
          `The policy ${JSON.stringify(policy)}`,
          `policy.${field}`,
        );
      }
    },
  },
  refusalsOfAge("policy-max-age", "expiry", "maxAge"),
  refusalsOfAge("policy-retention", "retention", "deadLetterRetention"),
  {
    id: "policy-extremes",
    title: "the extremes that are accepted are accepted",
    async run({ open }) {
      const accepted: readonly Partial<Policy>[] = [
        { visibilityTimeout: maxDeadlineOffset },
        { visibilityTimeout: 1 },
        { maxDeliveries: 1 },
        { maxDeliveries: 2_147_483_647 },
        { retryDelay: maxDeadlineOffset },
        { retryDelay: -Number.MAX_VALUE },
        { retryDelay: 1_000, maxRetryDelay: 1_000 },
        { retryDelay: 1, maxRetryDelay: maxDeadlineOffset },
        { retryDelay: 1, maxRetryDelay: 2, retryJitter: 1 },
        { retryDelay: 1, maxRetryDelay: 2, retryJitterMode: "full" },
        { maxMessageBytes: 0 },
        { maxHeaders: 0, maxHeaderBytes: 0 },
      ];
      for (const policy of accepted) await open({ policy });
    },
  },
  {
    id: "policy-negative-retry-delay",
    title: "a negative retryDelay is read as 0",
    policy: { retryDelay: -60_000 },
    async run({ broker, clock }) {
      await broker.publish(bytes("work"));
      const { visibleAt } = await broker.nack((await receiveOne(broker)).lease.receipt);
      equal(visibleAt, new Date(clock.now()), "When it is visible again");
      await receiveOne(broker);
    },
  },
  {
    id: "policy-fraction",
    title: "a fraction of a millisecond is cut off",
    policy: { visibilityTimeout: 1_500.9 },
    async run({ broker, clock }) {
      await broker.publish(bytes("work"));
      const { lease } = await receiveOne(broker);
      equal(lease.expiresAt.getTime(), clock.now() + 1_500, "The lease's end");
    },
  },
  {
    id: "policy-untouched",
    title: "the policy object is the caller's: it is not changed, and later changes to it do nothing",
    async run({ open, pass }) {
      const policy = { visibilityTimeout: 10_000, maxDeliveries: 5, retryDelay: -1 };
      const given = { ...policy };
      const broker = await open({ policy: given });
      equal(given, policy, "The policy object after the broker was made");
      given.visibilityTimeout = 1;
      await broker.publish(bytes("work"));
      await receiveOne(broker);
      pass(9_999);
      ensure((await broker.receive(1)).length === 0, "The lease ended early");
    },
  },
];
