/**
 * What stands in a message's file: one record, checked against the id in its name when it is read.
 *
 * A record: 12 bytes (`Q`, version, two zero bytes, length of the headers, length of the payload, both 32 bits
 * little-endian), the id in 26 bytes, the headers as JSON (nothing for none), the payload. A file of one message's own
 * may end in a footer: JSON, its length in 32 bits little-endian, and four bytes `QEND`.
 *
 * @module
 */

import { noHeaders } from "../../core/headers.ts";
import type { MessageHeaders } from "../../core/values.ts";

const preamble = 12;
const idLength = 26;
const version = 1;
const footerMark = 0x444e4551; // "QEND" read as a little-endian number
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What a record holds. */
export interface StoredRecord {
  readonly headers: MessageHeaders;
  readonly payload: Uint8Array;
}

/** The bytes of a message's headers as a record holds them. */
export function encodeHeaders(headers: MessageHeaders): Uint8Array {
  return headers === noHeaders ? new Uint8Array(0) : encoder.encode(JSON.stringify(headers));
}

/** How many bytes a record takes. */
export function recordLength(headers: Uint8Array, payload: Uint8Array): number {
  return preamble + idLength + headers.byteLength + payload.byteLength;
}

/** Writes a record into a buffer; returns where it ends. */
export function writeRecord(
  target: Uint8Array,
  offset: number,
  id: string,
  headers: Uint8Array,
  payload: Uint8Array,
): number {
  const view = new DataView(target.buffer, target.byteOffset + offset, preamble);
  view.setUint8(0, 0x51);
  view.setUint8(1, version);
  view.setUint16(2, 0);
  view.setUint32(4, headers.byteLength, true);
  view.setUint32(8, payload.byteLength, true);
  let at = offset + preamble;
  for (let index = 0; index < idLength; index++) target[at + index] = id.charCodeAt(index);
  at += idLength;
  target.set(headers, at);
  at += headers.byteLength;
  target.set(payload, at);
  return at + payload.byteLength;
}

/** Reads a record; `undefined` when the bytes are not the whole record of that id. The payload is a view. */
export function readRecord(bytes: Uint8Array, id: string): StoredRecord | undefined {
  if (bytes.byteLength < preamble + idLength) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, preamble);
  if (view.getUint8(0) !== 0x51 || view.getUint8(1) !== version) return undefined;
  const headerLength = view.getUint32(4, true);
  const payloadLength = view.getUint32(8, true);
  if (bytes.byteLength !== preamble + idLength + headerLength + payloadLength) return undefined;
  for (let index = 0; index < idLength; index++) {
    if (bytes[preamble + index] !== id.charCodeAt(index)) return undefined;
  }
  const payloadAt = preamble + idLength + headerLength;
  const headers = headerLength === 0 ? noHeaders : decodeHeaders(bytes.subarray(preamble + idLength, payloadAt));
  return headers === undefined ? undefined : { headers, payload: bytes.subarray(payloadAt) };
}

function decodeHeaders(bytes: Uint8Array): MessageHeaders | undefined {
  const parsed = parseJson(bytes);
  if (typeof parsed !== "object" || parsed === null) return undefined;
  const headers: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(parsed)) {
    if (typeof value !== "string") return undefined;
    headers[name] = value;
  }
  return Object.freeze(headers);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch {
    return undefined;
  }
}

/** A whole file of one message: its record and a footer. */
export function encodeWithFooter(id: string, headers: Uint8Array, payload: Uint8Array, footer: unknown): Uint8Array {
  const json = encoder.encode(JSON.stringify(footer));
  const length = recordLength(headers, payload);
  const bytes = new Uint8Array(length + json.byteLength + 8);
  writeRecord(bytes, 0, id, headers, payload);
  bytes.set(json, length);
  const view = new DataView(bytes.buffer, length + json.byteLength);
  view.setUint32(0, json.byteLength, true);
  view.setUint32(4, footerMark, true);
  return bytes;
}

/** Splits a file of one message into its record's bytes and its footer; `undefined` when it has no whole footer. */
export function splitFooter(bytes: Uint8Array): { record: Uint8Array; footer: Record<string, unknown> } | undefined {
  if (bytes.byteLength < 8) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + bytes.byteLength - 8);
  if (view.getUint32(4, true) !== footerMark) return undefined;
  const start = bytes.byteLength - 8 - view.getUint32(0, true);
  if (start < 0) return undefined;
  const footer = parseJson(bytes.subarray(start, bytes.byteLength - 8));
  if (typeof footer !== "object" || footer === null) return undefined;
  return { record: bytes.subarray(0, start), footer: footer as Record<string, unknown> };
}
