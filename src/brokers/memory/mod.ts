/**
 * The memory broker: a queue inside one process, for tests and for work that may be lost with it.
 *
 * @example
 * ```ts
 * import { newMemory } from "jsr:@x/queue/memory";
 *
 * await using jobs = newMemory({ policy: { visibilityTimeout: 30_000, maxDeliveries: 5 } });
 * const message = await jobs.publish(new Uint8Array([1, 2, 3]));
 * const [delivery] = await jobs.receive(1);
 * if (delivery?.message.id !== message.id) throw new Error("It is the same message");
 * ```
 *
 * @module
 */

export { type MemoryBroker, type MemoryConfig, newMemory } from "./memory.ts";
export type { Policy, RetryJitterMode, TimeSource } from "../../core/mod.ts";
