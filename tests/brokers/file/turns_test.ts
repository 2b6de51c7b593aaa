import assert from "node:assert/strict";
import { consume } from "../../../src/consume/mod.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";
import { openQueue } from "./queue.ts";

test("timers of the process run while a backlog is drained one by one", async () => {
  using directory = temporaryDirectory();
  await using jobs = await openQueue(directory.path);
  const count = 5_000;
  await jobs.publishMany(new Array(count).fill(new Uint8Array(1)));
  const stop = new AbortController();
  let acknowledged = 0;
  let beats = 0;
  const interval = setInterval(() => beats++, 1);
  await consume(jobs, {
    handlerIsIdempotent: true,
    handler: () => {},
    signal: stop.signal,
    onEvent: ({ kind }) => {
      if (kind === "acknowledged" && ++acknowledged === count) stop.abort();
    },
  });
  clearInterval(interval);
  assert.ok(beats > 1, `${beats} beats`);
});
