/**
 * Every bound that all brokers share.
 *
 * @module
 */

/** Default of {@linkcode Policy.maxMessageBytes}: one MiB (1 048 576 bytes). */
export const defaultMaxMessageBytes: number = 1_048_576;

/** Default of {@linkcode Policy.maxHeaders}: 64 headers a message. */
export const defaultMaxHeaders: number = 64;

/** Default of {@linkcode Policy.maxHeaderBytes}: 8 192 bytes of UTF-8, names and values together. */
export const defaultMaxHeaderBytes: number = 8_192;

/** How long an idle consumer waits between two looks, in ms, where nothing wakes it: 100. */
export const defaultPollInterval: number = 100;

/** How long outcomes may take to be recorded after a consumer was told to stop, in ms: 5 000. */
export const defaultSettleTimeout: number = 5_000;

/** The longest duration that a policy accepts, in ms: 100 years of 365 days. */
export const maxDeadlineOffset: number = 100 * 365 * 24 * 60 * 60 * 1000;

/** The last recordable instant in ms since 1970: 2262-04-11T23:47:16.854Z, the end of signed 64-bit nanoseconds. */
export const maxInstant: number = 9_223_372_036_854;

/** The highest delivery count that is kept; counting saturates there. */
export const maxDeliveryCount: number = 2_147_483_647;

/** The longest recorded reason or cause, in Unicode code points. */
export const maxTextLength: number = 120;

/** The most codes that a dead letter's trail keeps. */
export const maxTrail: number = 16;

/** The longest table name that the SQL broker accepts, in bytes. */
export const maxSqlTableLen: number = 63;
