/**
 * The file broker: a queue in a directory. State is a file name, a claim is a rename, and a publish that resolved is on
 * the device.
 *
 * @module
 */

export { type FileBroker } from "./file_broker.ts";
export { type FileConfig, newFile } from "./new_file.ts";
export type { BrokerEvent, Policy, RetryJitterMode, TimeSource } from "../../core/mod.ts";
