/**
 * Headers of a message: what is accepted and their normal form.
 *
 * @module
 */

import { QueueError } from "./error.ts";
import type { NormalizedPolicy } from "./policy.ts";
import type { MessageHeaders } from "./values.ts";

/** The headers of a message that has none. */
export const noHeaders: MessageHeaders = Object.freeze(Object.create(null));

const visibleAscii = /^[\x21-\x7e]+$/;
const encoder = new TextEncoder();

function refuse(problem: string): never {
  throw new QueueError("QUEUE_MISCONFIGURED", `Cannot accept the headers: ${problem}`, {
    fields: { field: "headers", problem },
  });
}

function tooLarge(what: string, size: number, max: number): never {
  throw new QueueError("MESSAGE_TOO_LARGE", `Cannot accept the headers: ${size} ${what}, expected at most ${max}`, {
    fields: { field: "headers", size, max },
  });
}

/**
 * Checks headers against the policy and brings them to their normal form: names in lower case, no prototype, frozen.
 * Names are visible ASCII, compared in lower case; values are well-formed strings.
 *
 * @throws {QueueError} `QUEUE_MISCONFIGURED` for an ill-formed name or value or two names that differ only in case,
 * `MESSAGE_TOO_LARGE` beyond `policy.maxHeaders` or `policy.maxHeaderBytes`; `fields.field` is `"headers"`.
 */
export function normalizeHeaders(
  headers: Readonly<Record<string, string>> | undefined,
  policy: Pick<NormalizedPolicy, "maxHeaders" | "maxHeaderBytes">,
): MessageHeaders {
  if (headers === undefined) return noHeaders;
  if (typeof headers !== "object" || headers === null) refuse(`got ${typeof headers}, expected an object of strings`);
  const names = Object.keys(headers);
  if (names.length === 0) return noHeaders;
  if (names.length > policy.maxHeaders) tooLarge("headers", names.length, policy.maxHeaders);
  const normal: Record<string, string> = Object.create(null);
  let bytes = 0;
  for (const given of names) {
    if (!visibleAscii.test(given)) refuse(`a name of ${given.length} characters is not visible ASCII`);
    const name = given.toLowerCase();
    if (name in normal) refuse(`"${name}" is given twice, expected names that differ by more than case`);
    const value = headers[given];
    if (typeof value !== "string" || !value.isWellFormed()) {
      refuse(
        `the value of "${name}" is ${
          typeof value === "string" ? "ill-formed" : typeof value
        }, expected a well-formed string`,
      );
    }
    normal[name] = value;
    bytes += name.length + encoder.encode(value).length;
  }
  if (bytes > policy.maxHeaderBytes) tooLarge("bytes", bytes, policy.maxHeaderBytes);
  return Object.freeze(normal);
}
