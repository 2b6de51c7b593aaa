/**
 * How a broker tells idle consumers of this process that there may be something to take.
 *
 * @module
 */

/**
 * A broadcast that any number of waiters can hear. Making one creates no AbortController: edge runtimes refuse that in
 * global scope, where an edge script makes its broker, so a signal exists only once somebody took it.
 */
export class WakeSource {
  #controller: AbortController | undefined;

  /** The signal of the next event. All who take it before the event share one. */
  signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  /** Wakes everybody who took a signal; the next `signal()` is a fresh one. */
  fire(): void {
    const controller = this.#controller;
    this.#controller = undefined;
    controller?.abort();
  }
}
