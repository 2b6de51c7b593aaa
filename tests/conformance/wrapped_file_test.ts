import { wrapBroker } from "../../src/core/mod.ts";
import { conformanceCases } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";
import { openFile } from "./file_store.ts";

// A wrapper that does nothing must not be noticed by any case.
const cases = conformanceCases({
  open: openFile((broker) => wrapBroker(broker, (_call, proceed) => proceed())),
  lacks: ["AckPublisher"],
});
for (const { name, run } of cases) test(`wrapped file, ${name}`, run);
