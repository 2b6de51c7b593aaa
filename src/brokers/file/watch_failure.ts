/**
 * What to tell a person about a watch that is not to be had.
 *
 * @module
 */

import { isError } from "../../core/error.ts";
import { systemCode } from "./operations.ts";

/** The watch was opened and never told of a change. */
export class DeafWatch extends Error {
  override readonly name: string = "DeafWatch";

  constructor() {
    super("The watch hears nothing");
  }
}

/** What is the matter with a watch, and what to raise or change; consumers poll meanwhile. */
export function explainWatchFailure(error: unknown): string {
  return `Cannot watch for events of other processes, so consumers poll: ${explain(error)}`;
}

function explain(error: unknown): string {
  if (error instanceof DeafWatch) return "this file system tells of no changes, as network shares and some mounts do";
  const code = systemCode(error);
  // Deno gives no code for this one.
  if (code === "ENOSPC" || (isError(error) && /watch limit/.test(error.message))) {
    return "this user's inotify watches are used up, raise the system setting fs.inotify.max_user_watches";
  }
  if (code === "EMFILE" || code === "ENFILE") {
    return "this user's inotify instances are used up, raise the system setting fs.inotify.max_user_instances, " +
      "or this process's descriptors, raise ulimit -n";
  }
  return `the system refused${code === "" ? "" : ` with ${code}`}`;
}
