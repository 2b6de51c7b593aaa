/**
 * Hearing of work without asking for it.
 *
 * @module
 */

import type { Wake } from "../values.ts";
import { hasMethods } from "./guard.ts";

/** Can tell when to look again. */
export interface Waker {
  /**
   * A signal of the next event and the time until something becomes receivable by itself. Does no I/O. A hint only: it
   * may find nothing, and work may come without it.
   */
  wake(): Wake;
}

/** What a broker reports about itself while it works; none of it is an error of a call. */
export type BrokerEvent =
  /**
   * Watching is not to be had (limits reached, a file system without it); the poll takes over. `why` says in words what is
   * the matter and what to raise.
   */
  | { readonly kind: "watchFailed"; readonly error: unknown; readonly why?: string }
  /** An entry or folder that an outsider could have planted was passed over. */
  | { readonly kind: "entrySkipped"; readonly path: string; readonly why: string };

/** What `watch` takes. */
export interface WatchOptions {
  /** Ends the watch as disposing it does. */
  readonly signal?: AbortSignal;
  /** Told when watching fails; a throwing listener disturbs nothing. */
  readonly onEvent?: (event: BrokerEvent) => void;
}

/** Can hear of events of other processes. */
export interface Watcher {
  /**
   * While it is held, events of other processes abort this process's `wake()` signals. However many hold one, a broker
   * watches once: opened for the first, closed with the last. Where watching fails an event says so and polling remains.
   */
  watch(options?: WatchOptions): AsyncDisposable;
}

/** Whether a broker can tell when to look again. */
export function isWaker<B>(broker: B): broker is B & Waker {
  return hasMethods(broker, "wake");
}

/** Whether a broker can hear of events of other processes. */
export function isWatcher<B>(broker: B): broker is B & Watcher {
  return hasMethods(broker, "watch");
}
