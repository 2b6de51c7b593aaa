/**
 * Opening a queue directory.
 *
 * @module
 */

import type { BrokerEvent } from "../../core/capabilities/wake.ts";
import type { TimeSource } from "../../core/clock.ts";
import { type NormalizedPolicy, type Policy, resolvePolicy } from "../../core/policy.ts";
import { resolveSources, type Sources } from "../../core/sources.ts";
import { describeFileError } from "./failures.ts";
import { DirectoryBroker, type FileBroker } from "./file_broker.ts";
import { currentPlatform, nodeOperations } from "./node_operations.ts";
import { type FileOperations, tidyUp } from "./operations.ts";
import { QueueDirectory, type QueueSizes, queueSizes } from "./queue_directory.ts";
import { prepareRoot } from "./trust.ts";

/** What `newFile` takes. */
export interface FileConfig {
  /** The queue's directory; made owner-only, parents included, where it is absent. */
  readonly dir: string;
  /** How messages are treated. */
  readonly policy: Policy;
  /**
   * Where instants come from. All processes on one directory must agree on the time to the precision of their leases.
   * @default {systemClock}
   */
  readonly clock?: TimeSource;
  /**
   * A number in [0, 1) for the jitter of retries.
   * @default {Math.random}
   */
  readonly random?: () => number;
  /** Told of folders and entries that were passed over, and of a watch that fails. */
  readonly onEvent?: (event: BrokerEvent) => void;
}

/** A directory open in this process, shared weakly: brokers that were dropped without `close` keep nothing alive. */
interface Held {
  readonly reference: WeakRef<QueueDirectory>;
  holders: number;
}

/** The directories open in this process, by their file system and path. */
const opened = new WeakMap<FileOperations, Map<string, Held>>();

let platformOperations: FileOperations | undefined;

/**
 * Opens a queue in a directory, which any number of brokers and processes may share: Deno, Bun and Node alike.
 *
 * A publish that resolved is on the device. The directory must be on a journalling file system of this machine (ext4,
 * xfs, btrfs, APFS), never on a network share.
 *
 * @returns The broker; close it, or bind it with `await using`.
 * @throws {QueueError} `QUEUE_MISCONFIGURED` for the policy; `QUEUE_DIRECTORY_UNUSABLE` for a directory that outsiders
 * could plant messages in; `UNSUPPORTED_PLATFORM` on Windows and where there is no file system;
 * `QUEUE_BACKEND_FAILED` when the file system refuses.
 *
 * @example
 * ```ts
 * import { newFile } from "jsr:@x/queue";
 * import { mkdtemp, rm } from "node:fs/promises";
 *
 * const dir = await mkdtemp("/tmp/queue-");
 * {
 *   await using jobs = await newFile({ dir, policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 *   await jobs.publish(new TextEncoder().encode("hello"));
 *   const [delivery] = await jobs.receive(1);
 *   await jobs.ack(delivery!.lease.receipt);
 * }
 * await rm(dir, { recursive: true });
 * ```
 */
export async function newFile(config: FileConfig): Promise<FileBroker> {
  checkSettings(config);
  platformOperations ??= nodeOperations(currentPlatform());
  return await openFile(config, platformOperations);
}

/** As `newFile`, over any file operations. */
export async function openFile(
  config: FileConfig,
  operations: FileOperations,
  sizes: QueueSizes = queueSizes,
): Promise<FileBroker> {
  const { policy, clock, random } = checkSettings(config);
  try {
    const { path: root, made } = prepareRoot(operations, config.dir);
    await QueueDirectory.prepare(operations, root, made);
    const directory = hold(operations, root, sizes);
    const unlisten = directory.listen(config.onEvent);
    const onClosed = () => {
      unlisten();
      release(operations, root);
    };
    try {
      // A first look belongs to the opening, so that the first message does not wait for it.
      await directory.look(clock.now());
      directory.lookAhead(clock.now());
    } catch (error) {
      onClosed();
      throw error;
    }
    return new DirectoryBroker({ directory, policy, clock, random, onClosed });
  } catch (error) {
    throw describeFileError(error, "open the queue directory");
  }
}

/** Everything that is refused before the disk is touched. */
function checkSettings(config: FileConfig): Sources & { readonly policy: NormalizedPolicy } {
  return { policy: resolvePolicy(config?.policy), ...resolveSources(config) };
}

function hold(operations: FileOperations, root: string, sizes: QueueSizes): QueueDirectory {
  let directories = opened.get(operations);
  if (directories === undefined) opened.set(operations, directories = new Map());
  const held = directories.get(root);
  const shared = held?.reference.deref();
  if (held !== undefined && shared !== undefined) {
    held.holders++;
    return shared;
  }
  const directory = new QueueDirectory(operations, root, sizes);
  directories.set(root, { reference: new WeakRef(directory), holders: 1 });
  return directory;
}

function release(operations: FileOperations, root: string): void {
  const directories = opened.get(operations);
  const held = directories?.get(root);
  if (held === undefined || --held.holders > 0) return;
  directories!.delete(root);
  tidyUp(() => held.reference.deref()?.leases.removeOwn());
}
