/**
 * What the types promise, checked by the compiler: this file fails to compile when one of them changes.
 */

import type { FileBroker } from "../../src/brokers/file/mod.ts";
import type { MemoryBroker } from "../../src/brokers/memory/mod.ts";
import type {
  AckPublisher,
  Broker,
  CapabilityName,
  CompleteBroker,
  DeadLetterManager,
  LeaseExtender,
  Receipt,
} from "../../src/core/mod.ts";
import type { ConsumeOptions } from "../../src/consume/mod.ts";
import { test } from "../support/test.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
type Extends<A, B> = A extends B ? true : false;
type Yes<T extends true> = T;
type No<T extends false> = T;

type _BrokerHasFourMethods = Yes<Same<keyof Broker, "publish" | "receive" | "ack" | "nack">>;
type _ACapabilityIsItsOwnMethods = Yes<Same<keyof DeadLetterManager, "replayDeadLetter" | "deleteDeadLetter">>;
type _ExtenderExtends = Yes<Same<keyof LeaseExtender, "extend">>;
type _MemoryHasEverything = Yes<Extends<MemoryBroker, CompleteBroker & AckPublisher>>;
type _FileHasAllButOne = Yes<Extends<FileBroker, CompleteBroker>>;
type _FileDoesNotClaimIt = No<Extends<FileBroker, AckPublisher>>;
type _AReceiptIsNoPlainString = No<Extends<string, Receipt>>;
type _AReceiptIsAString = Yes<Extends<Receipt, string>>;
type _IdempotenceIsStated = Yes<Same<ConsumeOptions["handlerIsIdempotent"], true>>;
type _TwentyTwoCapabilities = Yes<Extends<"Watcher", CapabilityName>>;

test("the types promise what they must", () => {
  // The compiler has checked it; the names are used here so that none is left out by mistake.
  const checked:
    | _BrokerHasFourMethods
    | _ACapabilityIsItsOwnMethods
    | _ExtenderExtends
    | _MemoryHasEverything
    | _FileHasAllButOne
    | _AReceiptIsAString
    | _IdempotenceIsStated
    | _TwentyTwoCapabilities = true;
  const refused: _FileDoesNotClaimIt | _AReceiptIsNoPlainString = false;
  if (!checked || refused) throw new Error("Not reached");
});
