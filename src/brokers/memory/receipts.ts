/**
 * The names of leases.
 *
 * @module
 */

import type { Receipt } from "../../core/mod.ts";

/*
 * A receipt is, in base 32: 12 digits of the broker's nonce, 10 of the lease's number, and the tail of the place where
 * the lease is kept: 4 digits drawn at random and 2, 4 or 6 that name the place. Only the whole receipt, compared with
 * the one that was issued, opens a lease; the random digits keep a holder from counting up to its neighbour's.
 */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const nonceLength = 12;
const numberLength = 10;
const placeStart = nonceLength + numberLength + 4;

/** How many leases share a prefix, and how many tails a draw of randomness. */
const blockSize = 1024;

/** Every pair of digits by its value; made at first use, so that loading the module costs nothing. */
const pairs: string[] = [];

function makePairs(): void {
  for (const first of alphabet) for (const second of alphabet) pairs.push(first + second);
}

const digitValues: Int8Array = new Int8Array(128).fill(-1);
for (let value = 0; value < alphabet.length; value++) digitValues[alphabet.charCodeAt(value)] = value;

/** Mints the receipts of one broker. Draws nothing before the first: edge runtimes refuse that in global scope. */
export class ReceiptMint {
  #nonce: string | undefined;
  #issued = 0;
  #prefix = "";
  #entropy: Uint16Array<ArrayBuffer> = new Uint16Array(0);
  #drawn = 0;

  /** A fresh receipt of the lease that is kept where the tail says. */
  mint(tail: string): Receipt {
    const inBlock = this.#issued & (blockSize - 1);
    if (inBlock === 0) this.#prefix = this.#prefixOf(this.#issued / blockSize);
    this.#issued++;
    return `${this.#prefix}${pairs[inBlock]}${tail}` as Receipt;
  }

  /** A tail for a place, a whole number below 2^30. */
  tailOf(place: number): string {
    if (pairs.length === 0) makePairs();
    const random = pairs[this.#draw() & 1023]! + pairs[this.#draw() & 1023];
    if (place < 1024) return random + pairs[place];
    if (place < 1024 ** 2) return random + pairs[place >>> 10] + pairs[place & 1023];
    return random + pairs[place >>> 20] + pairs[place >>> 10 & 1023] + pairs[place & 1023];
  }

  /** Where the lease of a receipt would be kept; -1 for a text that cannot be one. */
  placeOf(receipt: string): number {
    const length = receipt.length;
    if (length < placeStart + 2 || length > placeStart + 6) return -1;
    let place = 0;
    for (let at = placeStart; at < length; at++) {
      const digit = digitValues[receipt.charCodeAt(at)] ?? -1;
      if (digit < 0) return -1;
      place = place << 5 | digit;
    }
    return place;
  }

  /** Whether a receipt has the form of one that this broker issued. */
  hasIssued(receipt: string): boolean {
    if (this.#nonce === undefined || !receipt.startsWith(this.#nonce)) return false;
    if (receipt.length % 2 !== 0 || this.placeOf(receipt) < 0) return false;
    let number = 0;
    for (let at = nonceLength; at < placeStart; at++) {
      const digit = digitValues[receipt.charCodeAt(at)] ?? -1;
      if (digit < 0) return false;
      if (at < nonceLength + numberLength) number = number * 32 + digit;
    }
    return number < this.#issued;
  }

  #draw(): number {
    if (this.#drawn === this.#entropy.length) {
      // The first draw is small, since most brokers hold few leases at a time.
      this.#entropy = crypto.getRandomValues(new Uint16Array(this.#drawn === 0 ? 32 : blockSize));
      this.#drawn = 0;
    }
    return this.#entropy[this.#drawn++]!;
  }

  #prefixOf(block: number): string {
    if (this.#nonce === undefined) {
      this.#nonce = "";
      for (const byte of crypto.getRandomValues(new Uint8Array(nonceLength))) this.#nonce += alphabet[byte & 31];
    }
    let number = "";
    for (let digit = 0, rest = block; digit < numberLength - 2; digit++, rest = Math.floor(rest / 32)) {
      number = alphabet[rest % 32] + number;
    }
    return this.#nonce + number;
  }
}
