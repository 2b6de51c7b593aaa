/**
 * Wakes that follow each other closely, which some platforms' watches leave out.
 */

import { openAsProcess } from "../../support/file_processes.ts";
import { temporaryDirectory } from "../../support/temporary.ts";
import { test } from "../../support/test.ts";

test("every publish of another process wakes whoever looked after the one before, however soon it comes", async () => {
  using directory = temporaryDirectory();
  const policy = { visibilityTimeout: 30_000, maxDeliveries: 5 };
  await using publisher = await openAsProcess({ dir: directory.path, policy });
  await using consumer = await openAsProcess({ dir: directory.path, policy });
  await using _watch = consumer.watch();
  for (let round = 0; round < 200; round++) {
    const { signal } = consumer.wake();
    const woken = new Promise((resolve) => signal.addEventListener("abort", resolve));
    await publisher.publish(new Uint8Array(1));
    // A wake that got lost would be waited for until the test's own time is over.
    await woken;
  }
});
