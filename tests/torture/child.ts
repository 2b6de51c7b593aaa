/**
 * A producer, a consumer or the operator, until its standard input ends or it is killed.
 *
 * @module
 */

import process from "node:process";
import type { BrokerEvent } from "../../src/core/capabilities/wake.ts";
import { newFile } from "../../src/brokers/file/mod.ts";
import { Random } from "../simulation/random.ts";
import { currentRuntime } from "../support/runtimes.ts";
import { runConsumer } from "./consumer.ts";
import { Ledger } from "./ledger.ts";
import { runOperator } from "./operator.ts";
import { runProducer } from "./producer.ts";
import { policy, type Task } from "./settings.ts";

const task = JSON.parse(process.argv[2]!) as Task;
const ledger = new Ledger(task.ledger);
ledger.note({ kind: "started", role: task.role, runtime: currentRuntime().name });

const stop = new AbortController();
process.stdin.on("end", () => stop.abort());
process.stdin.on("error", () => stop.abort());
process.stdin.resume();

const onEvent = (event: BrokerEvent) => {
  // The watches of a machine are limited, and a process does without.
  if (event.kind !== "watchFailed") ledger.note({ kind: "surprise", what: JSON.stringify(event) });
};
try {
  await using jobs = await newFile({ dir: task.dir, policy, onEvent });
  const run = { producer: runProducer, consumer: runConsumer, operator: runOperator }[task.role];
  await run({ jobs, ledger, task, random: new Random(task.seed), signal: stop.signal });
} catch (error) {
  ledger.note({ kind: "surprise", what: `${task.role}: ${(error as Error)?.stack ?? error}` });
  console.error(error);
  process.exit(1);
}
process.exit(0);
