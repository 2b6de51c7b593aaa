import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { printableName, renderSums, sumLine, writeSums } from "../../../examples/checksums/sums_file.ts";
import { test } from "../../support/test.ts";
import { bytes, makeFile, runIn, withFolder } from "./folder.ts";

const sha256 = "0".repeat(64);

test("renderSums() writes what sha256sum writes, and sha256sum -c accepts it", () =>
  withFolder((folder) => {
    const names = [
      "plain",
      "a\nb",
      "c\rd",
      "e\\f",
      "\xff\xfe",
      "g\\\nh",
      " lead",
      "trail ",
      "tab\t",
      "*star",
      "-dash",
      "-",
      "sub/x",
    ];
    for (const name of names) makeFile(folder, bytes(name), `content of ${name.length}`);
    const sorted = names.filter((name) => name !== "-").sort();
    const theirs = sorted.map((name) => {
      const escaped = Array.from(bytes(name), (byte) => `\\0${byte.toString(8).padStart(3, "0")}`).join("");
      return runIn(folder, "sh", "-c", `name=$(printf '%b' "$1"; printf x); sha256sum -- "\${name%x}"`, "sh", escaped);
    });
    const sums = sorted.map((name, index) => ({ name: bytes(name), sha256: /[0-9a-f]{64}/.exec(theirs[index]!)![0] }));
    assert.equal(renderSums(sums.toReversed()).toString("latin1"), theirs.join(""));

    // A lone "-" means standard input to sha256sum, so there ours differs.
    const dash = /[0-9a-f]{64}/.exec(runIn(folder, "sha256sum", "./-"))![0];
    writeFileSync(`${folder}/sums`, renderSums([...sums, { name: bytes("-"), sha256: dash }]));
    assert.match(runIn(folder, "sha256sum", "-c", "sums"), /^\.\/-: OK$/m);
  }));

test("sumLine() escapes newline, carriage return and backslash", () => {
  assert.equal(sumLine(sha256, bytes("a")).toString(), `${sha256}  a\n`);
  assert.equal(sumLine(sha256, bytes("a\n\r\\")).toString(), `\\${sha256}  a\\n\\r\\\\\n`);
  assert.equal(sumLine(sha256, bytes("-")).toString(), `${sha256}  ./-\n`);
});

test("writeSums() replaces a file and leaves nothing beside it", () =>
  withFolder((folder) => {
    writeFileSync(`${folder}/SHA256SUMS`, "old");
    writeSums(`${folder}/SHA256SUMS`, bytes("new"));
    assert.equal(readFileSync(`${folder}/SHA256SUMS`, "utf8"), "new");
    assert.deepEqual(readdirSync(folder), ["SHA256SUMS"]);
  }));

test("printableName() shows no control character", () => {
  assert.equal(printableName(bytes("plain \xc3\xa9")), "plain é");
  assert.equal(printableName(bytes("\x1b[2J\n\\")), "\\u{1b}[2J\\u{a}\\u{5c}");
});
