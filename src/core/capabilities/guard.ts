/**
 * How every type guard of a capability decides.
 *
 * @module
 */

/** Whether a broker has all the named methods. */
export function hasMethods(broker: unknown, ...methods: readonly string[]): boolean {
  if (typeof broker !== "object" || broker === null) return false;
  return methods.every((method) => typeof (broker as Record<string, unknown>)[method] === "function");
}
