/**
 * What a queue's directory holds, seen from outside.
 *
 * @module
 */

import fs from "node:fs";
import path from "node:path";
import { type Entry, parseEntry } from "../../../src/brokers/file/names.ts";

/** A message's entry on the disk. */
export interface FoundEntry {
  readonly path: string;
  readonly name: string;
  readonly folder: string;
  readonly entry: Entry;
}

/** Every path below a directory, folders included, relative to it and sorted; links are not followed. */
export function pathsBelow(dir: string): string[] {
  const found: string[] = [];
  for (const name of fs.readdirSync(dir)) {
    found.push(name);
    const inner = path.join(dir, name);
    if (fs.lstatSync(inner).isDirectory()) found.push(...pathsBelow(inner).map((below) => `${name}/${below}`));
  }
  return found.sort();
}

/** The folders of a state. */
export function foldersOf(dir: string, state: string): string[] {
  return fs.readdirSync(path.join(dir, state)).sort();
}

/** The entries of a state, in the order of their names. */
export function entriesOf(dir: string, state: "ready" | "delayed" | "leased"): FoundEntry[] {
  const found: FoundEntry[] = [];
  for (const folder of foldersOf(dir, state)) {
    const inner = path.join(dir, state, folder);
    if (!fs.lstatSync(inner).isDirectory()) continue;
    for (const name of fs.readdirSync(inner)) {
      const entry = parseEntry(name);
      if (entry !== undefined) found.push({ path: path.join(inner, name), name, folder, entry });
    }
  }
  return found.sort((a, b) => a.name < b.name ? -1 : 1);
}

/** The only entry of a state. */
export function onlyEntry(dir: string, state: "ready" | "delayed" | "leased"): FoundEntry {
  const [entry, ...others] = entriesOf(dir, state);
  if (entry === undefined || others.length > 0) throw new Error(`Expected one entry, found ${others.length + 1}`);
  return entry;
}
