import assert from "node:assert/strict";
import { capabilities, type CapabilityName } from "../../src/core/mod.ts";
import { conformanceCases } from "../../src/testing/mod.ts";
import { newMemory } from "../../src/brokers/memory/mod.ts";
import { test } from "../support/test.ts";
import { mutants } from "./mutants.ts";

for (const { name, caughtBy, failsWith, open } of mutants) {
  test(`a broker that ${name} is caught by "${caughtBy}"`, async () => {
    const cases = conformanceCases({ open: (setup) => ({ broker: open(setup) }), lacks: ["reopen"] });
    const found = cases.find(({ id }) => id === caughtBy);
    assert.ok(found, `There is no case "${caughtBy}"`);
    // A mutant that breaks by a slip of its own proves nothing: only the expected end counts as caught.
    await assert.rejects(found.run(), { name: failsWith ?? "ConformanceFailure" });
  });
}

test("case ids are unique and every capability has cases of its own", () => {
  const open = () => ({ broker: newMemory({ policy: { visibilityTimeout: 1, maxDeliveries: 1 } }) });
  const ids = conformanceCases({ open }).map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const name of Object.keys(capabilities) as CapabilityName[]) {
    const left = new Set(conformanceCases({ open, lacks: [name] }).map(({ id }) => id));
    const own = ids.filter((id) => !left.has(id));
    assert.ok(own.length >= 3, `${name} has only the cases ${own.join(", ")}`);
  }
});
