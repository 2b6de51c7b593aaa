/**
 * The conformance cases: one list for every broker and every test runner.
 *
 * @module
 */

import type { Broker } from "../core/broker.ts";
import type { Policy } from "../core/policy.ts";
import {
  type AnyBroker,
  type BrokerSetup,
  type CaseContext,
  type CaseDefinition,
  defaultPolicy,
  type Feature,
  type OpenBroker,
  type OpenedBroker,
  type SetupOverrides,
} from "./case.ts";
import { allCases } from "./cases/mod.ts";
import { ManualClock } from "./manual_clock.ts";

/** What {@linkcode conformanceCases} takes. */
export interface ConformanceOptions {
  /** Opens a broker over a new and empty store. */
  readonly open: OpenBroker;
  /**
   * What the broker lacks, capabilities and traits by name. A case checks that this is true in both directions.
   * @default {[]}
   */
  readonly lacks?: readonly Feature[];
}

/** One case, ready to be registered with a test runner. */
export interface ConformanceCase {
  /** Stable and unique, such as `"ack-twice"`. */
  readonly id: string;
  /** Area and title, for a test runner. */
  readonly name: string;
  /** Runs the case; rejects when the broker does not conform. Needs no `this`. */
  readonly run: () => Promise<void>;
}

/**
 * The cases that a broker has to pass, whoever wrote it. They drive the broker through its contract alone, on a clock that
 * stands still until they move it, and assert no duration and no order that brokers may choose.
 *
 * A broker without some capabilities names them in `lacks` and gets the cases that are left, and some that check how it
 * goes without (it refuses, for instance, a publish with headers that it would drop).
 *
 * @example Register a broker of your own
 * ```ts
 * import { newMemory } from "jsr:@x/queue/memory";
 * import { conformanceCases } from "jsr:@x/queue/testing";
 *
 * const cases = conformanceCases({
 *   open: (setup) => ({ broker: newMemory(setup) }),
 *   lacks: ["reopen"],
 * });
 * // With a test runner: for (const { name, run } of cases) test(name, run);
 * for (const { run } of cases.slice(0, 3)) await run();
 * ```
 */
export function conformanceCases(options: ConformanceOptions): ConformanceCase[] {
  const lacks = new Set(options.lacks ?? []);
  const fits = ({ needs = [], without = [] }: CaseDefinition) =>
    !needs.some((feature) => lacks.has(feature)) && without.every((feature) => lacks.has(feature));
  return allCases.flatMap(({ area, cases }) =>
    cases.filter(fits).map((definition) => ({
      id: definition.id,
      name: `${area}: ${definition.title}`,
      run: () => runCase(definition, options.open, lacks),
    }))
  );
}

async function runCase(definition: CaseDefinition, open: OpenBroker, lacks: ReadonlySet<Feature>): Promise<void> {
  const bench = new Bench(definition, open, lacks);
  try {
    await definition.run(await bench.context());
  } finally {
    await bench.clear();
  }
}

/** Opens what one case asks for and puts it away afterwards. */
class Bench {
  readonly #definition: CaseDefinition;
  readonly #open: OpenBroker;
  readonly #lacks: ReadonlySet<Feature>;
  readonly #clock = new ManualClock();
  readonly #brokers: Broker[] = [];
  readonly #stores: OpenedBroker[] = [];

  constructor(definition: CaseDefinition, open: OpenBroker, lacks: ReadonlySet<Feature>) {
    this.#definition = definition;
    this.#open = open;
    this.#lacks = lacks;
  }

  async context(): Promise<CaseContext> {
    const clock = this.#clock;
    const first = await this.#openStore();
    return {
      broker: first.broker as AnyBroker,
      clock,
      lacks: this.#lacks,
      reopens: first.reopen !== undefined,
      pass: (by) => clock.set(clock.now() + by),
      open: async (overrides) => (await this.#openStore(overrides)).broker as AnyBroker,
      reopen: async (overrides) => {
        if (first.reopen === undefined) throw new Error(`The factory offers no "reopen", and "lacks" does not say so`);
        const broker = await first.reopen(this.#setup(overrides));
        this.#brokers.push(broker);
        return broker as AnyBroker;
      },
    };
  }

  #setup(overrides: SetupOverrides = {}): BrokerSetup {
    const policy: Policy = { ...defaultPolicy, ...this.#definition.policy, ...overrides.policy };
    const random = overrides.random ?? (() => 0.5);
    return { policy, clock: overrides.clock ?? this.#clock, random };
  }

  async #openStore(overrides?: SetupOverrides): Promise<OpenedBroker> {
    const opened = await this.#open(this.#setup(overrides));
    this.#stores.push(opened);
    this.#brokers.push(opened.broker);
    return opened;
  }

  async clear(): Promise<void> {
    for (const broker of this.#brokers) {
      const { close } = broker as Partial<AnyBroker>;
      if (typeof close === "function") await close.call(broker);
    }
    for (const { remove } of this.#stores) await remove?.();
  }
}
