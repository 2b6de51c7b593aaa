import { test } from "../support/test.ts";
import { simulate } from "./simulation.ts";

/** Seeds that once failed. */
const failed: readonly number[] = [];

const fresh = Math.floor(Math.random() * 1_000_000);

for (const seed of [...failed, ...Array.from({ length: 16 }, (_, index) => index + 1), fresh, fresh + 1]) {
  test(`each delivery ends one way and no message is lost, whatever happens: seed ${seed}`, () => simulate(seed));
}
