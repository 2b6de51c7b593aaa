/**
 * Programs that work on a queue directory beside the test, step by step.
 *
 * @module
 */

import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import process from "node:process";
import type { Readable, Writable } from "node:stream";
import { currentRuntime, type Runtime } from "./runtimes.ts";

/** A child that has opened the queue and waits. */
export interface Child {
  /** Lets it do its work; what it prints, parsed. */
  start(): Promise<unknown>;
  /** Tells it to go on after it has printed something; what it prints next. */
  goOn(): Promise<unknown>;
  /** Sends it a signal, such as one that halts it. */
  signal(name: NodeJS.Signals): void;
  /** Waits until it has ended by itself. */
  end(): Promise<void>;
  /** Kills it as `kill -9` does, and waits until it is gone. */
  kill(): Promise<void>;
}

type ChildProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** Starts a program that says "ready", works once it is told to on its standard input, and prints lines of JSON. */
export async function startProgram(
  program: string,
  args: readonly string[],
  runtime: Runtime = currentRuntime(),
): Promise<Child> {
  const child: ChildProcess = spawn(runtime.command, [...runtime.args, program, ...args], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const lines: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  let rest = "";
  let complaints = "";
  child.stdin.on("error", () => {});
  child.stderr.on("data", (text) => complaints += text);
  child.stdout.on("data", (text) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    for (const line of parts) waiting.length > 0 ? waiting.shift()!(line) : lines.push(line);
  });
  const closed = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
  const readLine = async (): Promise<string> => {
    const line = lines.length > 0 ? lines.shift()! : await Promise.race([
      new Promise<string>((resolve) => waiting.push(resolve)),
      closed.then(() => undefined),
    ]);
    if (line === undefined) throw new Error(`The child ended: ${complaints}`);
    return line;
  };
  assert.equal(await readLine(), "ready");
  return {
    async start() {
      child.stdin.write("go\n");
      return JSON.parse(await readLine());
    },
    async goOn() {
      child.stdin.write("go on\n");
      return JSON.parse(await readLine());
    },
    signal(name) {
      // The child's own method sends one signal in its life on Deno.
      process.kill(child.pid!, name);
    },
    async end() {
      child.stdin.end();
      assert.equal(await closed, 0, complaints);
    },
    async kill() {
      process.kill(child.pid!, "SIGKILL");
      child.stdin.destroy();
      await closed;
    },
  };
}
