/**
 * Sixteen consumers in four processes over one directory, with handlers that take 5 ms: how evenly they share the work, how
 * many of their claims they lose to each other, and how near they come to what the handlers allow.
 *
 * Run alone: `deno run -A bench/fairness.ts` or `bun bench/fairness.ts`.
 *
 * @module
 */

import process from "node:process";
import { type FileBroker, newFile } from "../src/brokers/file/mod.ts";
import { openFile } from "../src/brokers/file/new_file.ts";
import { currentPlatform, nodeOperations } from "../src/brokers/file/node_operations.ts";
import { type FileOperations, systemCode } from "../src/brokers/file/operations.ts";
import { consume } from "../src/consume/mod.ts";
import type { Policy } from "../src/core/policy.ts";
import { inDirectory } from "./directories.ts";
import type { Figure } from "./figures.ts";
import { hearParent, pause, startChild } from "./processes.ts";

const policy: Policy = { visibilityTimeout: 600_000, maxDeliveries: 5 };
const payload = new Uint8Array(64).fill(120);
const processes = 4;
const consumersEach = 4;
const messages = 16_000;
const handling = 5;

/** What one process did. */
interface Share {
  /** Messages handled by each of its consumers. */
  readonly handled: number[];
  /** Messages that were claimed, and claims that a rival had made before. */
  readonly claimed: number;
  readonly lost: number;
}

interface Claims {
  claimed: number;
  lost: number;
}

/** File operations that count how the renames of waiting entries to the leases end. */
function countingOperations(claims: Claims): FileOperations {
  const inner = nodeOperations(currentPlatform());
  return {
    ...inner,
    rename(from, to) {
      const isClaim = !from.includes("/leased/") && to.includes("/leased/");
      try {
        inner.rename(from, to);
      } catch (error) {
        if (isClaim && systemCode(error) === "ENOENT") claims.lost++;
        throw error;
      }
      if (isClaim) claims.claimed++;
    },
  };
}

/** In a child: consumers that work until the parent says that all is done. */
async function measureShare(dir: string): Promise<Share> {
  const claims: Claims = { claimed: 0, lost: 0 };
  const operations = countingOperations(claims);
  const brokers: FileBroker[] = [];
  for (let broker = 0; broker < consumersEach; broker++) brokers.push(await openFile({ dir, policy }, operations));
  const hear = hearParent();
  await hear();
  const stop = new AbortController();
  const handled = brokers.map(() => 0);
  const consuming = brokers.map((jobs, index) =>
    consume(jobs, {
      handler: async () => {
        await pause(handling);
        handled[index]!++;
      },
      handlerIsIdempotent: true,
      signal: stop.signal,
    })
  );
  await hear();
  stop.abort();
  await Promise.all(consuming);
  await Promise.all(brokers.map((jobs) => jobs.close()));
  return { handled, ...claims };
}

async function measureFairness(): Promise<{ shares: Share[]; rate: number }> {
  return await inDirectory(async (dir) => {
    await using jobs = await newFile({ dir, policy });
    for (let batch = 0; batch < messages / 1_000; batch++) await jobs.publishMany(Array(1_000).fill(payload));
    const children = Array.from({ length: processes }, () => startChild<Share>(import.meta.url, ["--share", dir]));
    await Promise.all(children.map(({ ready }) => ready));
    const started = performance.now();
    children.forEach((child) => child.say("begin"));
    for (;;) {
      await pause(50);
      const { queued, leased } = await jobs.stats();
      if (queued + leased === 0) break;
    }
    const elapsed = performance.now() - started;
    children.forEach((child) => child.say("stop"));
    return { shares: await Promise.all(children.map(({ result }) => result)), rate: messages * 1_000 / elapsed };
  });
}

/** The rows of the table; takes about ten seconds. */
export async function benchFairness(): Promise<Figure[]> {
  const { shares, rate } = await measureFairness();
  const handled = shares.flatMap((share) => share.handled);
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  const [least, most] = [Math.min(...handled), Math.max(...handled)];
  const spread = most / least - 1;
  const lost = sum(shares.map((share) => share.lost));
  const loss = lost / (lost + sum(shares.map((share) => share.claimed)));
  const ideal = processes * consumersEach * 1_000 / handling;
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return [
    {
      name: "fairness: 16,000 messages, 16 consumers in 4 processes",
      ours: `${least} to ${most} each`,
      raw: `even share ${messages / handled.length}`,
      ratio: `${percent(spread)} apart`,
      target: "within 20 %",
      met: spread <= 0.2,
    },
    {
      name: "fairness: claims lost to rivals",
      ours: percent(loss),
      raw: "-",
      ratio: `${lost} renames`,
      target: "a few percent (within 5 %)",
      met: loss <= 0.05,
    },
    {
      name: "fairness: rate with handlers of 5 ms",
      ours: `${Math.round(rate).toLocaleString("en")}/s`,
      raw: `handlers alone ${ideal.toLocaleString("en")}/s`,
      ratio: `${(rate / ideal).toFixed(2)}x its rate`,
      target: "-",
      met: true,
    },
  ];
}

if (import.meta.main) {
  if (process.argv[2] === "--share") console.log(JSON.stringify(await measureShare(process.argv[3]!)));
  else console.table(await benchFairness());
  process.exit(0);
}
