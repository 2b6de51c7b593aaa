/**
 * What a broker says it lacks is what it lacks, and it lacks nothing else.
 *
 * @module
 */

import {
  capabilities,
  type CapabilityName,
  isAcker,
  isAckPublisher,
  isBatchPublisher,
  isCounter,
  isDeadLetterBulkManager,
  isDeadLetterManager,
  isDeadLetterPager,
  isDeadLetterReader,
  isDeadLetterWriter,
  isDelayedNacker,
  isDelayedPublisher,
  isLeaseExtender,
  isMessageLister,
  isMessageReader,
  isMessageWriter,
  isOncePublisher,
  isPriorityPublisher,
  isPurger,
  isRejecter,
  isReleaser,
  isWaker,
  isWatcher,
} from "../../core/capabilities/mod.ts";
import { normalizePolicy } from "../../core/policy.ts";
import { ensure, equal, refuses } from "../assert.ts";
import { bytes, type CaseDefinition, defaultPolicy, type Trait, traits } from "../case.ts";
import { receiveNothing } from "../steps.ts";

const guards: Readonly<Record<CapabilityName, (broker: unknown) => boolean>> = {
  Acker: isAcker,
  AckPublisher: isAckPublisher,
  BatchPublisher: isBatchPublisher,
  Counter: isCounter,
  DeadLetterBulkManager: isDeadLetterBulkManager,
  DeadLetterManager: isDeadLetterManager,
  DeadLetterPager: isDeadLetterPager,
  DeadLetterReader: isDeadLetterReader,
  DeadLetterWriter: isDeadLetterWriter,
  DelayedNacker: isDelayedNacker,
  DelayedPublisher: isDelayedPublisher,
  LeaseExtender: isLeaseExtender,
  MessageLister: isMessageLister,
  MessageReader: isMessageReader,
  MessageWriter: isMessageWriter,
  OncePublisher: isOncePublisher,
  PriorityPublisher: isPriorityPublisher,
  Purger: isPurger,
  Rejecter: isRejecter,
  Releaser: isReleaser,
  Waker: isWaker,
  Watcher: isWatcher,
};

/** A publish option that a broker cannot keep, as it would be given. */
const options: Readonly<Partial<Record<Trait, Record<string, unknown>>>> = {
  headers: { headers: { "content-type": "text/plain" } },
  at: { at: new Date(Date.UTC(2030, 0, 1)) },
  priority: { priority: 1 },
};

function refusedOption(trait: "headers" | "at" | "priority"): CaseDefinition {
  return {
    id: `declared-without-${trait}`,
    title: `a publish with "${trait}" is refused and nothing is published`,
    without: [trait],
    async run({ broker }) {
      await refuses(
        () => broker.publish(bytes("work"), options[trait]),
        "QUEUE_MISCONFIGURED",
        `A publish with "${trait}"`,
        trait,
      );
      await receiveNothing(broker, "after the refusal");
    },
  };
}

function refusedPolicy(trait: "expiry" | "retention", field: "maxAge" | "deadLetterRetention"): CaseDefinition {
  return {
    id: `declared-without-${trait}`,
    title: `a policy that sets "${field}" is refused`,
    without: [trait],
    async run({ open }) {
      await refuses(
        () => open({ policy: { [field]: 60_000 } }),
        "QUEUE_MISCONFIGURED",
        `A policy with "${field}"`,
        `policy.${field}`,
      );
    },
  };
}

/** The declaration, checked in both directions. */
export const declarationCases: readonly CaseDefinition[] = [
  {
    id: "declared-names",
    title: "every name it declares to lack is one that there is",
    run({ lacks }) {
      for (const name of lacks) {
        ensure(name in capabilities || (traits as readonly string[]).includes(name), `"lacks" names "${name}"`);
      }
      return Promise.resolve();
    },
  },
  {
    id: "declared-capabilities",
    title: "the type guards find every capability but those it declares to lack",
    run({ broker, lacks }) {
      for (const name of Object.keys(capabilities) as CapabilityName[]) {
        equal(guards[name](broker), !lacks.has(name), `Whether the broker has ${name}`);
      }
      return Promise.resolve();
    },
  },
  {
    id: "declared-methods",
    title: "it has the four methods, and no part of a capability that it declares to lack",
    run({ broker, lacks }) {
      const methods = broker as unknown as Record<string, unknown>;
      for (const name of ["publish", "receive", "ack", "nack"]) {
        equal(typeof methods[name], "function", `The type of "${name}"`);
      }
      for (const [name, parts] of Object.entries(capabilities)) {
        if (!lacks.has(name as CapabilityName)) continue;
        for (const part of parts) equal(typeof methods[part], "undefined", `The type of "${part}"`);
      }
      return Promise.resolve();
    },
  },
  {
    id: "declared-properties",
    title: "it can be reopened, shows its policy and can be closed unless it declares otherwise",
    run({ broker, lacks, reopens }) {
      const { policy, close } = broker as Partial<typeof broker>;
      const dispose = (broker as Partial<AsyncDisposable>)[Symbol.asyncDispose];
      equal(reopens, !lacks.has("reopen"), `Whether the factory offers "reopen"`);
      equal(policy !== undefined, !lacks.has("policy"), `Whether there is a "policy"`);
      equal(typeof close === "function", !lacks.has("close"), `Whether there is "close"`);
      equal(typeof dispose === "function", !lacks.has("close"), "Whether it can be disposed of");
      return Promise.resolve();
    },
  },
  {
    id: "declared-policy",
    title: "its policy is the one it was made with, normalised and frozen",
    needs: ["policy"],
    policy: { retryDelay: -5 },
    run({ broker }) {
      equal(broker.policy, normalizePolicy({ ...defaultPolicy, retryDelay: 0 }), "The policy");
      ensure(Object.isFrozen(broker.policy), "The policy is not frozen");
      return Promise.resolve();
    },
  },
  refusedOption("headers"),
  refusedOption("at"),
  refusedOption("priority"),
  refusedPolicy("expiry", "maxAge"),
  refusedPolicy("retention", "deadLetterRetention"),
];
