/**
 * Time: the instants that brokers read and the timers that consumers wait on.
 *
 * @module
 */

/** Where instants come from. Brokers only read time; they never wait. */
export interface TimeSource {
  /** The current instant in ms since 1970. */
  now(): number;
}

/** Where instants and timers come from. Give your own to drive leases and delays in a test. */
export interface Clock extends TimeSource {
  /**
   * Calls back once after `delay` ms, however long that is.
   *
   * @returns Cancels the call; harmless once it was made.
   */
  setTimer(delay: number, callback: () => void): () => void;
}

/** The longest delay that platform timers hold, in ms. */
const longestTimer = 2_147_483_647;

/**
 * The platform's clock. The global `Date` and `setTimeout` are looked up at every call, so that fake timers installed
 * later work. Delays beyond what a platform timer can hold are waited for in pieces.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(delay, callback) {
    let remaining = delay;
    let timer: ReturnType<typeof setTimeout>;
    const wait = () => {
      const piece = Math.min(remaining, longestTimer);
      remaining -= piece;
      timer = setTimeout(remaining > 0 ? wait : callback, piece);
    };
    wait();
    return () => clearTimeout(timer);
  },
};
