/**
 * Uses a queue on a file system that it mounts, fills and remounts: `full KIND DIR` or `readOnly DIR`. It has to run where
 * it may mount.
 *
 * @module
 */

import process from "node:process";
import { type DiskKind, mountDisk } from "./disks.ts";
import { consumeOnFullDisk, receiveOnFullDisk, useFullDisk } from "./full_disk.ts";
import { useReadOnlyDisk } from "./read_only_disk.ts";

const [what, dir = "", kind = ""] = process.argv.slice(2);
if (what === "full") {
  for (const [number, use] of [useFullDisk, consumeOnFullDisk, receiveOnFullDisk].entries()) {
    await use(mountDisk(kind as DiskKind, `${dir}/${number}`));
  }
} else {
  await useReadOnlyDisk(`${dir}/disk`);
}
console.log("survived");
