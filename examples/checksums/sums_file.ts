/**
 * The file of sums, as `sha256sum` writes and checks it.
 *
 * @module
 */

import { Buffer } from "node:buffer";
import { renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import process from "node:process";

const escapes: Readonly<Record<number, string>> = { 0x0a: "\\n", 0x0d: "\\r", 0x5c: "\\\\" };

/**
 * A line of a file of sums. A newline, carriage return or backslash in the name is escaped, and a backslash before the
 * sum says so. A lone "-" would be read as standard input, so it gets its folder.
 */
export function sumLine(sha256: string, name: Uint8Array): Buffer {
  const odd = name.some((byte) => byte in escapes);
  const spelled = odd ? Buffer.concat(Array.from(name, (byte) => Buffer.from(escapes[byte] ?? [byte]))) : name;
  const standardInput = name.length === 1 && name[0] === 0x2d;
  return Buffer.concat([
    Buffer.from(`${odd ? "\\" : ""}${sha256}  ${standardInput ? "./" : ""}`),
    spelled,
    Buffer.from("\n"),
  ]);
}

/** The whole file: one line a name, sorted by the bytes of the names. */
export function renderSums(sums: Iterable<{ readonly name: Uint8Array; readonly sha256: string }>): Buffer {
  const sorted = [...sums].sort((a, b) => Buffer.compare(a.name, b.name));
  return Buffer.concat(sorted.map(({ sha256, name }) => sumLine(sha256, name)));
}

/** Puts the file in place as a whole; a device or pipe is written to as it is. */
export function writeSums(path: string, content: Uint8Array): void {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return writeFileSync(path, content);
  const partial = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(partial, content);
    renameSync(partial, path);
  } finally {
    rmSync(partial, { force: true });
  }
}

/** A name as one line of text for a terminal: what is not printable is escaped. */
export function printableName(name: Uint8Array): string {
  let text = "";
  for (const character of new TextDecoder("utf-8", { ignoreBOM: true }).decode(name)) {
    const plain = !/[\p{C}\p{Zl}\p{Zp}\\]/u.test(character);
    text += plain ? character : `\\u{${character.codePointAt(0)!.toString(16)}}`;
  }
  return text;
}
