/**
 * What lies in a queue directory, read from the disk without the broker.
 *
 * @module
 */

import { type DeadName, type Entry, parseDead, parseEntry } from "../../src/brokers/file/names.ts";
import { readRecord, splitFooter } from "../../src/brokers/file/records.ts";
import type { Disk } from "./disk.ts";

/** The directory of the queue that programs run on. */
export const queueRoot = "/queue";

/** A message's record; `undefined` stands for one that is torn or another's. */
export interface RecordText {
  readonly payload: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** An entry of a live message. */
export interface LiveEntry {
  readonly state: "ready" | "delayed" | "leased" | "pending";
  /** The folder below its state's; empty for a pending one. */
  readonly bucket: string;
  readonly name: string;
  readonly entry: Entry;
  readonly record: RecordText | undefined;
}

/** A dead letter. */
export interface LetterEntry {
  readonly path: string;
  readonly name: DeadName;
  readonly record: RecordText | undefined;
  readonly footer: Readonly<Record<string, unknown>>;
}

/** The newest reservation of a once key. */
export interface Reservation {
  readonly generation: number;
  /** When the key is free again, in ms. */
  readonly end: number;
  /** The id of its message. */
  readonly id: string;
  /** The message itself, whose file bears the key as a name. */
  readonly record: RecordText | undefined;
}

/** Everything in a queue directory. */
export interface Contents {
  readonly live: ReadonlyMap<string, readonly LiveEntry[]>;
  readonly dead: ReadonlyMap<string, readonly LetterEntry[]>;
  /** By the hash of the key. */
  readonly reservations: ReadonlyMap<string, Reservation>;
  /** What the broker set aside. */
  readonly damaged: readonly string[];
}

const decoder = new TextDecoder();
const records = new WeakMap<Uint8Array, Map<string, RecordText | undefined>>();
const footers = new WeakMap<Uint8Array, Map<string, ReturnType<typeof splitFooter>>>();

/** Looks something up that was made from bytes, which copies of a disk share. */
function remembered<T>(
  memory: WeakMap<Uint8Array, Map<string, T>>,
  bytes: Uint8Array,
  key: string,
  make: () => T,
): T {
  let known = memory.get(bytes);
  if (known === undefined) memory.set(bytes, known = new Map());
  if (!known.has(key)) known.set(key, make());
  return known.get(key)!;
}

function readText(data: Uint8Array, id: string, offset: number, length: number): RecordText | undefined {
  return remembered(records, data, `${id} ${offset} ${length}`, () => {
    const record = readRecord(data.subarray(offset, offset + length), id);
    return record && { payload: decoder.decode(record.payload), headers: record.headers };
  });
}

function readFooter(data: Uint8Array, offset: number, length: number): ReturnType<typeof splitFooter> {
  return remembered(footers, data, `${offset} ${length}`, () => splitFooter(data.subarray(offset, offset + length)));
}

const entries = new Map<string, Entry | undefined>();

function entryOf(name: string): Entry | undefined {
  if (!entries.has(name)) {
    if (entries.size > 20_000) entries.clear();
    entries.set(name, parseEntry(name));
  }
  return entries.get(name);
}

function addTo<T>(map: Map<string, T[]>, key: string, value: T): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

/** Reads a queue directory. */
export function readContents(disk: Disk): Contents {
  const live = new Map<string, LiveEntry[]>();
  for (const state of ["ready", "delayed", "leased"] as const) {
    for (const bucket of disk.names(`${queueRoot}/${state}`)) {
      for (const { name, data } of disk.files(`${queueRoot}/${state}/${bucket}`)) {
        const entry = entryOf(name);
        if (entry === undefined) throw new Error(`A name that means nothing: ${state}/${bucket}/${name}`);
        const record = readText(data, entry.id, entry.offset, entry.length);
        addTo(live, entry.id, { state, bucket, name, entry, record });
      }
    }
  }
  for (const { name, data, links } of disk.files(`${queueRoot}/pending`)) {
    // Without a key it is what a publisher left that died before it had reserved.
    if (links < 2) continue;
    const footer = readFooter(data, 0, data.byteLength)?.footer;
    const entry = entryOf(String(footer?.entry));
    if (entry === undefined) throw new Error(`A reserved message is torn: pending/${name}`);
    addTo(live, entry.id, {
      state: "pending",
      bucket: "",
      name,
      entry,
      record: readText(data, entry.id, 0, entry.length),
    });
  }
  return {
    live,
    dead: readDead(disk),
    reservations: readReservations(disk),
    damaged: disk.names(`${queueRoot}/damaged`),
  };
}

function readDead(disk: Disk): Map<string, LetterEntry[]> {
  const dead = new Map<string, LetterEntry[]>();
  for (const folder of disk.names(`${queueRoot}/dead`)) {
    for (const file of disk.files(`${queueRoot}/dead/${folder}`)) {
      const name = parseDead(file.name);
      const path = `${queueRoot}/dead/${folder}/${file.name}`;
      if (name === undefined) throw new Error(`A name that means nothing: ${path}`);
      const split = readFooter(file.data, name.offset, name.length);
      const record = split && readText(file.data, name.id, name.offset, split.record.byteLength);
      addTo(dead, name.id, { path, name, record, footer: split?.footer ?? {} });
    }
  }
  return dead;
}

function readReservations(disk: Disk): Map<string, Reservation> {
  const reservations = new Map<string, Reservation>();
  for (const folder of disk.names(`${queueRoot}/once`)) {
    for (const { name, data } of disk.files(`${queueRoot}/once/${folder}`)) {
      const [hash, number] = name.split("-");
      const generation = Number(number);
      if (generation < (reservations.get(hash!)?.generation ?? 0)) continue;
      const footer = readFooter(data, 0, data.byteLength)?.footer;
      const entry = entryOf(String(footer?.entry));
      if (entry === undefined) throw new Error(`A reservation is torn: once/${folder}/${name}`);
      const record = readText(data, entry.id, 0, entry.length);
      reservations.set(hash!, { generation, end: Number(footer!.end), id: entry.id, record });
    }
  }
  return reservations;
}
