export * from "./src/core/mod.ts";
