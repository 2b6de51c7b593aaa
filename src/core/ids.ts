/**
 * Message ids: monotonic ULIDs, minted by the broker's clock.
 *
 * Format: https://github.com/ulid/spec (48 bits of ms, 80 random bits, Crockford's base 32).
 *
 * @module
 */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Every pair of digits, so that the counter is rendered by two look-ups. */
let pairs: string[] | undefined;

function renderTime(instant: number): string {
  let text = "";
  let rest = instant;
  for (let digit = 0; digit < 10; digit++) {
    text = alphabet[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

function renderRandom(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += alphabet[byte & 31];
  return text;
}

/** A counter takes the last four of an id's digits. */
const counterLimit = 32 ** 4;

/**
 * Mints ids whose byte order is the order of minting, whatever the clock does. One random draw a millisecond; nothing
 * is drawn before the first id, since edge runtimes refuse random values in global scope.
 */
export class IdMint {
  #instant = -1;
  #prefix = "";
  #counter = 0;

  /** The next id; greater than every one before it, even when the clock steps back. */
  next(now: number): string {
    if (now > this.#instant) this.#restart(now);
    else if (this.#counter === counterLimit) this.#restart(this.#instant + 1);
    const counter = this.#counter++;
    // A template makes one string where a sum makes two, which JavaScriptCore both keeps as long as the id lives.
    return `${this.#prefix}${pairs![counter >>> 10]}${pairs![counter & 1023]}`;
  }

  /** An id of an instant recorded elsewhere; leaves the order of {@linkcode next} alone. */
  at(instant: number): string {
    return renderTime(instant) + renderRandom(crypto.getRandomValues(new Uint8Array(16)));
  }

  #restart(instant: number): void {
    pairs ??= Array.from({ length: 1024 }, (_, n) => alphabet[n >>> 5]! + alphabet[n & 31]!);
    const draw = crypto.getRandomValues(new Uint8Array(15));
    this.#instant = instant;
    this.#prefix = renderTime(instant) + renderRandom(draw.subarray(0, 12));
    // The counter starts in its lower half, which leaves at least 524 288 ids to every millisecond.
    this.#counter = (draw[12]! | draw[13]! << 8 | draw[14]! << 16) % (counterLimit / 2);
  }
}
