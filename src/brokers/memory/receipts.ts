/**
 * The names of leases.
 *
 * @module
 */

import type { Receipt } from "../../core/mod.ts";

/*
 * A receipt is, in base 32: 12 digits of the broker's nonce, 10 of the lease's number, 4 drawn at random for this lease,
 * and 2, 4 or 6 that say where the lease is kept. Only the whole receipt, compared with the one that was issued, opens
 * a lease; the random digits keep a holder from counting up to its neighbour's.
 */

const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const nonceLength = 12;
const numberLength = 10;
const placeStart = nonceLength + numberLength + 4;

/** How many leases share what is prepared in advance: a prefix and a draw of randomness. */
const blockSize = 1024;

const pairs: readonly string[] = Array.from({ length: 1024 }, (_, n) => alphabet[n >>> 5]! + alphabet[n & 31]!);
const digitValues: Int8Array = new Int8Array(128).fill(-1);
for (let value = 0; value < alphabet.length; value++) digitValues[alphabet.charCodeAt(value)] = value;

/** Mints the receipts of one broker. Draws nothing before the first: edge runtimes refuse that in global scope. */
export class ReceiptMint {
  #nonce: string | undefined;
  #issued = 0;
  #prefix = "";
  #entropy: Uint16Array<ArrayBuffer> = new Uint16Array(0);

  /** A fresh receipt of the lease that is kept at `place`, a whole number below 2^30. */
  mint(place: number): Receipt {
    const inBlock = this.#issued % blockSize;
    if (inBlock === 0) this.#prepareBlock();
    this.#issued++;
    const { [2 * inBlock]: first, [2 * inBlock + 1]: second } = this.#entropy;
    const name = this.#prefix + pairs[inBlock] + pairs[first! & 1023] + pairs[second! & 1023];
    if (place < 1024) return name + pairs[place] as Receipt;
    if (place < 1024 ** 2) return name + pairs[place >>> 10] + pairs[place & 1023] as Receipt;
    return name + pairs[place >>> 20] + pairs[place >>> 10 & 1023] + pairs[place & 1023] as Receipt;
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

  #prepareBlock(): void {
    if (this.#entropy.length === 0) this.#entropy = new Uint16Array(2 * blockSize);
    crypto.getRandomValues(this.#entropy);
    if (this.#nonce === undefined) {
      this.#nonce = "";
      for (const byte of crypto.getRandomValues(new Uint8Array(nonceLength))) this.#nonce += alphabet[byte & 31];
    }
    let number = "";
    let rest = this.#issued / blockSize;
    for (let digit = 0; digit < numberLength - 2; digit++) {
      number = alphabet[rest % 32] + number;
      rest = Math.floor(rest / 32);
    }
    this.#prefix = this.#nonce + number;
  }
}
