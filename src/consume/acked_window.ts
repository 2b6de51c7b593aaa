/**
 * The memory of what was handled a moment ago.
 *
 * @module
 */

import type { Delivery } from "../core/values.ts";

/**
 * Remembers the ids of the last messages that were handled in this process, so that one whose acknowledgement got lost
 * is not handled again. Shared by all workers of a consumer; nothing survives it.
 */
export class AckedWindow {
  readonly #size: number;
  readonly #ids = new Set<string>();

  constructor(size: number) {
    this.#size = size;
  }

  /** Whether this delivery's message was handled before. A first delivery is a fresh life, so its id is forgotten. */
  holds(delivery: Delivery): boolean {
    if (this.#size === 0) return false;
    if (delivery.deliveries > 1) return this.#ids.has(delivery.message.id);
    this.#ids.delete(delivery.message.id);
    return false;
  }

  /** Remembers an id; the oldest one beyond the size is forgotten. */
  remember(id: string): void {
    if (this.#size === 0) return;
    this.#ids.delete(id);
    this.#ids.add(id);
    if (this.#ids.size > this.#size) this.#ids.delete(this.#ids.values().next().value!);
  }
}
