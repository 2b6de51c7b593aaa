import { newMemory } from "../../src/brokers/memory/mod.ts";
import { wrapBroker } from "../../src/core/mod.ts";
import { conformanceCases } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";

// A wrapper that does nothing must not be noticed by any case.
const cases = conformanceCases({
  open: (setup) => ({ broker: wrapBroker(newMemory(setup), (_call, proceed) => proceed()) }),
  lacks: ["reopen"],
});
for (const { name, run } of cases) test(`wrapped memory, ${name}`, run);
