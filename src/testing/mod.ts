/**
 * What tests of a queue need: the conformance cases for a broker of your own, and a clock that a test moves.
 *
 * @module
 */

export { ManualClock } from "./manual_clock.ts";
