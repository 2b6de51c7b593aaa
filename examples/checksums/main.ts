/**
 * Sums of all files of a folder, by processes of which one is killed: `deno task demo [folder] [--out FILE]`.
 *
 * The queue part stands in queue.ts; this file reads the arguments, cleans up and prints the summary.
 *
 * @module
 */

import { mkdtempSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { group, Progress } from "./progress.ts";
import { run, type RunResult } from "./run.ts";
import { printableName, renderSums, writeSums } from "./sums_file.ts";

const usage = `Usage: deno task demo [folder] [--out FILE]

Writes the SHA-256 sums of every regular file under a folder (by default this repository) to FILE (by default SHA256SUMS)
through a durable queue, with three worker processes of which one is killed half way.`;

/** The arguments cannot be used: exit code 2. */
class UsageError extends Error {}

interface Arguments {
  /** The folder's real path. */
  readonly folder: string;
  /** The real path that the output file has or will have. */
  readonly out: string;
}

function readArguments(args: string[]): Arguments | undefined {
  const options = { out: { type: "string", short: "o" }, help: { type: "boolean", short: "h" } } as const;
  let parsed;
  try {
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`);
  }
  const { values, positionals } = parsed;
  if (values.help) return undefined;
  if (positionals.length > 1) {
    throw new UsageError(`Cannot sum ${positionals.length} folders, expected one\n\n${usage}`);
  }
  const folder = positionals[0] ?? fileURLToPath(new URL("../../", import.meta.url));
  return { folder: readFolder(folder), out: readOutput(values.out ?? "SHA256SUMS") };
}

function readFolder(path: string): string {
  const entry = statSync(path, { throwIfNoEntry: false });
  if (entry === undefined) throw new UsageError(`Cannot sum the folder: "${printable(path)}" does not exist`);
  if (!entry.isDirectory()) throw new UsageError(`Cannot sum the folder: "${printable(path)}" is not a folder`);
  return realpathSync(path);
}

function readOutput(path: string): string {
  const entry = statSync(path, { throwIfNoEntry: false });
  if (entry?.isDirectory()) throw new UsageError(`Cannot write the sums: "${printable(path)}" is a folder`);
  if (entry !== undefined) return realpathSync(path);
  const parent = dirname(resolve(path));
  if (!statSync(parent, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`Cannot write the sums: the folder "${printable(parent)}" does not exist`);
  }
  return join(realpathSync(parent), basename(path));
}

function printable(path: string): string {
  return printableName(new TextEncoder().encode(path));
}

function printSummary({ sums, deadLetters, planted, redeliveries, publishRate }: RunResult): void {
  for (const { message, reason, cause, deliveries } of deadLetters) {
    const name = printableName(message.payload);
    const note = name === printable(planted) ? " (planted)" : "";
    console.log(`Dead letter${note}: "${name}", ${cause} (${reason}, delivery ${deliveries})`);
  }
  const bytes = [...sums.values()].reduce((sum, result) => sum + result.bytes, 0);
  console.log(`
  files                        ${group(sums.size)}
  bytes                        ${group(bytes)}
  redeliveries                 ${group(redeliveries)}
  dead letters                 ${group(deadLetters.length)}
  durable publishes a second   ${group(Math.round(publishRate))}
`);
}

async function sumFolder({ folder, out }: Arguments, signal: AbortSignal): Promise<number> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "queue-demo-")));
  const progress = new Progress();
  try {
    progress.note(`Sums of "${printable(folder)}" through a queue in "${printable(root)}"`);
    const leftOut = [out, root].map((path) => relative(folder, path)).filter((path) => !path.startsWith("../"));
    const result = await run({ folder, root, leftOut, progress, signal });
    progress.end();
    writeSums(out, renderSums(result.sums.values()));
    printSummary(result);
    console.log(`Wrote "${printable(out)}"; in the folder, "sha256sum -c" accepts it`);
    for (const name of result.missing) console.error(`Lost: "${printableName(name)}"`);
    return result.missing.length === 0 ? 0 : 1;
  } finally {
    progress.end();
    rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Exit codes of a process that a signal ended, as shells count them. */
const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

async function main(): Promise<number> {
  const stop = new AbortController();
  let stopped: number | undefined;
  for (const [name, code] of Object.entries(signals)) {
    process.on(name, () => {
      stopped ??= code;
      stop.abort();
    });
  }
  try {
    const given = readArguments(process.argv.slice(2));
    if (given !== undefined) return await sumFolder(given, stop.signal);
    console.log(usage);
    return 0;
  } catch (error) {
    if (stopped !== undefined) return stopped;
    console.error((error as Error).message);
    return error instanceof UsageError ? 2 : 1;
  }
}

process.exit(await main());
