import assert from "node:assert/strict";
import { capabilities, type CapabilityName } from "../../src/core/mod.ts";
import { conformanceCases, type Feature } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";
import { ReferenceBroker } from "./reference_broker.ts";

// A broker of somebody else's with four methods and nothing beside them: it gets the cases that are left, and passes.
const lacks: readonly Feature[] = [
  ...Object.keys(capabilities) as CapabilityName[],
  ...["reopen", "headers", "at", "priority", "expiry", "retention", "policy", "close"] as const,
  ...["orderedIds", "lastFailure", "steppedClock"] as const,
];
const cases = conformanceCases({ open: (setup) => ({ broker: new ReferenceBroker(setup) }), lacks });

for (const { name, run } of cases) test(`reference, ${name}`, run);

test("a broker of four methods still gets a good number of cases", () => {
  assert.ok(cases.length > 80, `${cases.length} cases`);
});
