/**
 * Letting the event loop turn.
 *
 * @module
 */

/**
 * Where there is one, since messages may starve timers: Bun runs a due one after some ten messages, Deno at times after
 * none. Taken at the start, so that whoever fakes it later holds nothing up.
 */
const { setImmediate } = globalThis as { setImmediate?: (callback: () => void) => unknown };

/** Lets timers and I/O of the process run before it resolves. It is no timer: a clock that stands still does not hold it. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (setImmediate !== undefined) return void setImmediate(resolve);
    if (typeof MessageChannel === "undefined") return void setTimeout(resolve, 0);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      port2.close();
      resolve();
    };
    port2.postMessage(0);
  });
}
