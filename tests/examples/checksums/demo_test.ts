import assert from "node:assert/strict";
import { chmodSync, linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import process from "node:process";
import { openQueue } from "../../../examples/checksums/queue.ts";
import { test } from "../../support/test.ts";
import { type DemoResult, runDemo, summed } from "./demo.ts";
import { bytes, makeFile, runIn, withFolder } from "./folder.ts";

/** Two folders: one to be summed, one for the queue. */
function withFolders(body: (folder: string, temporary: string) => Promise<void>): Promise<void> {
  return withFolder((top) => {
    mkdirSync(`${top}/folder`);
    return body(`${top}/folder`, `${top}/temporary`);
  });
}

/** What sha256sum itself says about a folder. */
function sumsOf(folder: string): string {
  const find = "find . \\( -name .git -o -name node_modules \\) -prune -o -type f ! -path ./SUMS -printf '%P\\0'";
  return runIn(folder, "sh", "-c", `export LC_ALL=C; ${find} | sort -z | xargs -0 -r sha256sum --`);
}

function assertPlantedAndKilled(result: DemoResult): void {
  assert.equal(result.code, 0, result.stdout + result.stderr);
  assert.match(result.stdout, /^Worker 1 \(pid \d+\) is dead: SIGKILL/m);
  assert.match(result.stdout, /^Worker 4 \(pid \d+\) starts$/m);
  assert.match(result.stdout, /^Dead letter \(planted\): "no such file", ENOENT: the file does not exist/m);
  assert.ok(summed(result, "redeliveries") >= 1, "The killed worker held a lease");
}

test("the demo sums every regular file, whatever its name, although a worker is killed", () =>
  withFolders(async (folder) => {
    const names = [
      "plain",
      "a\nb",
      "c\rd",
      "e\\f",
      "\xff\xfe",
      "g\\\nh",
      " lead",
      "-dash",
      "sub/x",
      "sub/\xe9/y",
      "sub/.git/no",
    ];
    for (const name of names) makeFile(folder, bytes(name), `content of ${name}`);
    for (let n = 0; n < 100; n++) writeFileSync(`${folder}/sub/${n}`, `${n}`);
    mkdirSync(`${folder}/node_modules`);
    writeFileSync(`${folder}/node_modules/no`, "");
    symlinkSync("plain", `${folder}/link`);
    runIn(folder, "mkfifo", "pipe");
    // Neither an earlier output nor the queue itself may be summed.
    writeFileSync(`${folder}/SUMS`, "old");
    const result = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary: `${folder}/tmp` });

    assertPlantedAndKilled(result);
    assert.equal(readFileSync(`${folder}/SUMS`, "latin1"), sumsOf(folder));
    runIn(folder, "sha256sum", "--strict", "-c", "SUMS");
    assert.equal(summed(result, "files"), 110);
    assert.equal(summed(result, "dead letters"), 1);
    assert.deepEqual(readdirSync(`${folder}/tmp`), [], "The queue is removed");
  }));

test("the demo copes with no file and with one", () =>
  withFolders(async (folder, temporary) => {
    const none = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary });
    assertPlantedAndKilled(none);
    assert.equal(summed(none, "files"), 0);
    assert.equal(readFileSync(`${folder}/SUMS`, "utf8"), "");

    writeFileSync(`${folder}/no such file`, "");
    const one = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary });
    assert.match(one.stdout, /^Dead letter \(planted\): "no such file!", ENOENT/m);
    assert.equal(readFileSync(`${folder}/SUMS`, "latin1"), sumsOf(folder));
    assert.deepEqual(readdirSync(temporary), []);
  }));

test("the demo refuses what it cannot do with exit code 2, and leaves nothing behind", () =>
  withFolders(async (folder, temporary) => {
    writeFileSync(`${folder}/file`, "");
    const refusals: [RegExp, ...string[]][] = [
      [/^Cannot sum the folder: ".*\/nowhere" does not exist\n$/, `${folder}/nowhere`],
      [/^Cannot sum the folder: ".*\/file" is not a folder\n$/, `${folder}/file`],
      [/^Cannot sum 2 folders, expected one\n/, folder, folder],
      [/Usage: /, folder, "--outt", "SUMS"],
      [/^Cannot write the sums: the folder ".*\/nowhere" does not exist\n$/, folder, "--out", `${folder}/nowhere/SUMS`],
      [/^Cannot write the sums: ".*" is a folder\n$/, folder, "--out", folder],
    ];
    for (const [message, ...args] of refusals) {
      const { code, stderr } = await runDemo({ args, temporary });
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
    }
    assert.deepEqual(readdirSync(temporary), []);
    assert.deepEqual(readdirSync(folder), ["file"]);
  }));

test("a file and a folder that may not be read become dead letters", () =>
  withFolders(async (folder, temporary) => {
    // Root may read everything unless that right is taken away.
    const bound = process.getuid?.() === 0;
    mkdirSync(`${folder}/closed`);
    writeFileSync(`${folder}/closed/inner`, "");
    for (const name of ["readable", "secret"]) writeFileSync(`${folder}/${name}`, name);
    mkdirSync(temporary);
    chmodSync(`${folder}/secret`, 0o000);
    chmodSync(`${folder}/closed`, 0o000);
    const result = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary, bound });
    chmodSync(`${folder}/closed`, 0o700);

    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.match(result.stdout, /^Dead letter: "secret", EACCES: the file may not be read/m);
    assert.match(result.stdout, /^Dead letter: "closed\/", EACCES/m);
    assert.equal(summed(result, "dead letters"), 3);
    assert.match(readFileSync(`${folder}/SUMS`, "utf8"), /^[0-9a-f]{64} {2}readable\n$/);
  }));

test("any worker may be killed, not only the one that is meant to be", () =>
  withFolders(async (folder, temporary) => {
    for (let n = 0; n < 500; n++) writeFileSync(`${folder}/${n}`, `${n}`);
    let killed = 0;
    const onLine = (line: string) => {
      const pid = /^Worker [235] \(pid (\d+)\) starts$/.exec(line)?.[1];
      if (pid === undefined) return;
      killed++;
      process.kill(Number(pid), "SIGKILL");
    };
    const result = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary, onLine });
    assert.equal(result.code, 0, result.stdout + result.stderr);
    assert.equal(killed, 3);
    assert.equal(readFileSync(`${folder}/SUMS`, "latin1"), sumsOf(folder));
  }));

test("a job that somebody takes away is called lost, with exit code 1", () =>
  withFolders(async (folder, temporary) => {
    for (let n = 0; n < 500; n++) writeFileSync(`${folder}/${n}`, `${n}`);
    let stolen: Promise<string> | undefined;
    const steal = async () => {
      await using jobs = await openQueue(`${temporary}/${readdirSync(temporary)[0]}`, "jobs");
      for (;;) {
        const [delivery] = await jobs.receive(1);
        if (delivery === undefined) continue;
        await jobs.ack(delivery.lease.receipt);
        return new TextDecoder().decode(delivery.message.payload);
      }
    };
    const onLine = (line: string) => {
      if (line.startsWith("Worker 1 ") && line.endsWith("starts")) stolen = steal();
    };
    const result = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary, onLine });
    assert.equal(result.code, 1, result.stdout);
    assert.equal(result.stderr, `Lost: "${await stolen}"\n`);
  }));

for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) {
  test(`the demo ends and cleans up on ${signal}`, () =>
    withFolders(async (folder, temporary) => {
      for (let n = 0; n < 500; n++) writeFileSync(`${folder}/${n}`, `${n}`);
      const pids: number[] = [];
      const result = await runDemo({
        args: [folder, "--out", `${folder}/SUMS`],
        temporary,
        onLine: (line, kill) => {
          const pid = /\(pid (\d+)\) (?:publishes|starts)/.exec(line)?.[1];
          if (pid !== undefined) pids.push(Number(pid));
          if (/^Worker 3 .* starts$/.test(line)) kill(signal);
        },
      });
      assert.equal(result.code, code, result.stdout + result.stderr);
      assert.deepEqual(readdirSync(temporary), []);
      assert.ok(!readdirSync(folder).includes("SUMS"));
      assert.ok(pids.length >= 4);
      for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
    }));
}

test("the demo sums 20,000 files", () =>
  withFolders(async (folder, temporary) => {
    writeFileSync(`${folder}/0`, "small");
    for (let n = 1; n < 20_000; n++) linkSync(`${folder}/0`, `${folder}/${n}`);
    const result = await runDemo({ args: [folder, "--out", `${folder}/SUMS`], temporary });
    assertPlantedAndKilled(result);
    assert.equal(summed(result, "files"), 20_000);
    runIn(folder, "sha256sum", "--quiet", "--strict", "-c", "SUMS");
  }));
