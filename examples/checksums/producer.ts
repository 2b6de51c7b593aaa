/**
 * The producer process: finds the files of a folder and publishes a job for each.
 *
 * Arguments: the queues' directory, the folder, and any names to leave out.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { lstatSync, writeFileSync } from "node:fs";
import process from "node:process";
import { produce } from "./queue.ts";
import { findFiles } from "./walk.ts";

const [root = "", folder = "", ...leftOut] = process.argv.slice(2);

/** A name that no file of the folder has: the job that cannot be done. */
function plantedName(): string {
  let name = "no such file";
  while (lstatSync(`${folder}/${name}`, { throwIfNoEntry: false }) !== undefined) name += "!";
  return name;
}

const planted = plantedName();
const names = [...findFiles(folder, leftOut.map((name) => Buffer.from(name))), Buffer.from(planted)];
// For the parent, which checks in the end that each of these came back.
writeFileSync(`${root}/names`, Buffer.concat(names.flatMap((name) => [name, Buffer.from([0])])));
console.log(JSON.stringify({ kind: "found", jobs: names.length, planted }));

const started = performance.now();
await produce(root, names);
console.log(JSON.stringify({ kind: "published", jobs: names.length, seconds: (performance.now() - started) / 1000 }));
