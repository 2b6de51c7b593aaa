import { conformanceCases } from "../../src/testing/mod.ts";
import { test } from "../support/test.ts";
import { openFile } from "./file_store.ts";

const cases = conformanceCases({ open: openFile(), lacks: ["AckPublisher"] });
for (const { name, run } of cases) test(`file, ${name}`, run);
