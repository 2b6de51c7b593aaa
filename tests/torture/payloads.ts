/**
 * Payloads that say by themselves what they are and whether they are whole.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { Message, MessageHeaders } from "../../src/core/values.ts";
import type { Random } from "../simulation/random.ts";
import type { Attempted } from "./ledger.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A payload with what is noted of it. */
export interface MadePayload {
  readonly payload: Uint8Array;
  readonly headers: MessageHeaders;
  readonly attempted: Attempted;
}

function hashOf(payload: Uint8Array): string {
  return createHash("sha256").update(payload).digest("hex").slice(0, 16);
}

/** Makes the payload of an attempt: mostly small, now and then larger than what is transferred at one go. */
export function makePayload(random: Random, key: string, priority: number, once?: string): MadePayload {
  const size = random.chance(0.004) ? 300_000 : random.below(random.chance(0.1) ? 5_000 : 200);
  const payload = encoder.encode(`${key}\n${String.fromCharCode(97 + random.below(26)).repeat(size)}`);
  const hash = hashOf(payload);
  return {
    payload,
    headers: { key, hash, ...(once === undefined ? {} : { once }) },
    attempted: { key, hash, priority, ...(once === undefined ? {} : { once }) },
  };
}

/** What a message was published as, and what is wrong with it by itself. */
export function readPayload({ payload, headers }: Message, priority: number): Attempted & { readonly wrong?: string } {
  const text = decoder.decode(payload.subarray(0, 100));
  const key = text.slice(0, Math.max(0, text.indexOf("\n")));
  const hash = hashOf(payload);
  const wrong = headers.key !== key ? "the headers are another's" : headers.hash !== hash ? "it is torn" : undefined;
  return {
    key,
    hash,
    priority,
    ...(headers.once === undefined ? {} : { once: headers.once }),
    ...(wrong === undefined ? {} : { wrong }),
  };
}
