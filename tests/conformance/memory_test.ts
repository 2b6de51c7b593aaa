import { newMemory } from "../../src/brokers/memory/mod.ts";
import { conformanceCases } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";

for (const { name, run } of conformanceCases({ open: (setup) => ({ broker: newMemory(setup) }), lacks: ["reopen"] })) {
  test(`memory, ${name}`, run);
}
