/**
 * The contract: values, policy, capabilities, errors, marks, time. No I/O and no runtime's own API.
 *
 * @module
 */

export * from "./broker.ts";
export * from "./call.ts";
export * from "./capabilities/mod.ts";
export * from "./clock.ts";
export * from "./error.ts";
export * from "./failure.ts";
export * from "./headers.ts";
export * from "./ids.ts";
export * from "./instants.ts";
export * from "./limits.ts";
export * from "./marks.ts";
export * from "./policy.ts";
export * from "./priority.ts";
export * from "./publication.ts";
export * from "./reasons.ts";
export * from "./records.ts";
export * from "./retry.ts";
export * from "./sources.ts";
export * from "./values.ts";
export * from "./wake.ts";
export * from "./wrap.ts";
