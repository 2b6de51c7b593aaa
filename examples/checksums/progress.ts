/**
 * What the demo shows while it runs: a bar on a terminal, plain lines elsewhere.
 *
 * @module
 */

import process from "node:process";

/** Where the work stands. */
export interface Standing {
  /** Jobs that ended, with a sum or as a dead letter. */
  readonly done: number;
  /** All jobs. */
  readonly total: number;
  /** Jobs that wait in the queue. */
  readonly waiting: number;
  /** Jobs that a worker holds, or held when it died. */
  readonly leased: number;
}

const width = 24;

/** A number with thousands set apart. */
export function group(value: number): string {
  return value.toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** One line of progress. */
export function renderStanding({ done, total, waiting, leased }: Standing): string {
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.floor(share * width);
  const bar = "#".repeat(filled) + ".".repeat(width - filled);
  const percent = `${Math.floor(share * 100)}`.padStart(3);
  return `[${bar}] ${percent} %  ${group(done)} of ${group(total)} done, ${group(waiting)} waiting, ${
    group(leased)
  } leased`;
}

/** Prints progress and what happens meanwhile. */
export class Progress {
  readonly #live: boolean = process.stdout.isTTY === true;
  #tenth = 0;
  #line = "";

  /** Shows where the work stands: redraws the bar, or prints a line a tenth of the way. */
  update(standing: Standing): void {
    const line = renderStanding(standing);
    if (line === this.#line) return;
    this.#line = line;
    if (this.#live) return this.#draw();
    const tenth = standing.total === 0 ? 10 : Math.floor((10 * standing.done) / standing.total);
    if (tenth !== this.#tenth) console.log(line);
    this.#tenth = tenth;
  }

  /** Prints a line above the bar. */
  note(line: string): void {
    if (this.#live) process.stdout.write("\r\x1b[K");
    console.log(line);
    if (this.#live) this.#draw();
  }

  /** Leaves the bar where it stands. */
  end(): void {
    if (this.#live && this.#line !== "") console.log();
    this.#line = "";
  }

  /** Draws the bar over the line the cursor stands in; a bar that wrapped could not be drawn over. */
  #draw(): void {
    process.stdout.write(`\r\x1b[K${this.#line.slice(0, (process.stdout.columns ?? 80) - 1)}`);
  }
}
