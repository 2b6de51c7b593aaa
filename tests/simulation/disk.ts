/**
 * A disk that can lose power: what is flushed is kept apart from what is not.
 *
 * The model is that of a journalling file system. A rename, link or unlink happens whole or not at all. What was not
 * flushed may be lost, operations on different names independently, but never so that an operation is kept without
 * those it builds on: the one that made its source name, those that emptied a folder it removed. Data that was not
 * flushed may be absent or torn. A folder whose own entry is lost is lost with all it holds, flushed or not.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { FileOperations, FileStatus } from "../../src/brokers/file/operations.ts";
import type { Random } from "./random.ts";

interface FileNode {
  readonly kind: "file";
  readonly id: number;
  data: Uint8Array;
  /** What of the data is on the device; `undefined` while nothing is. */
  flushed: Uint8Array | undefined;
  changedAt: number;
}

interface DirectoryNode {
  readonly kind: "directory";
  readonly id: number;
  readonly entries: Map<string, Node>;
  /** What is on the device of the entries. */
  readonly flushed: Map<string, Node>;
  changedAt: number;
}

type Node = FileNode | DirectoryNode;

/** One name that an operation sets (`to` a node) or removes. */
interface NameChange {
  readonly directory: DirectoryNode;
  readonly name: string;
  readonly to: Node | undefined;
}

/** An operation that is not on the device yet. */
interface PendingOperation {
  readonly sequence: number;
  readonly changes: readonly NameChange[];
  /** The pending operations that it builds on. */
  readonly needs: readonly PendingOperation[];
}

function fail(code: string, path: string): never {
  throw Object.assign(new Error(`${code}: ${path}`), { code, path });
}

/** A disk and everything on it. */
export class Disk {
  /** The file system's own clock, in ms. */
  now = 1_000_000;
  /** Called before every step with its name, for tests that break the broker on purpose or crash it. */
  beforeStep: ((step: string, path: string) => void) | undefined;
  /** Where flushes and pauses wait until the scheduler lets them go on; `undefined` lets them go on at once. */
  park: ((what: string) => Promise<void>) | undefined;
  #root: DirectoryNode = this.#directory(0);
  #pending: PendingOperation[] = [];
  #lastChange = new Map<string, PendingOperation>();
  #sequence = 0;
  #nodes = 1;

  /** The file operations of one process on this disk. */
  process(): FileOperations {
    const descriptors = new Map<number, Node>();
    let nextDescriptor = 3;
    const open = (node: Node) => {
      descriptors.set(nextDescriptor, node);
      return nextDescriptor++;
    };
    const nodeOf = (descriptor: number) => descriptors.get(descriptor) ?? fail("EBADF", String(descriptor));
    const step = (name: string, path: string) => this.beforeStep?.(name, path);
    return {
      makeDirectory: (path) => {
        step("makeDirectory", path);
        const { directory, name } = this.#parent(path);
        if (directory.entries.has(name)) fail("EEXIST", path);
        this.#do([{ directory, name, to: this.#directory(this.#nodes++) }]);
      },
      removeDirectory: (path) => {
        step("removeDirectory", path);
        const { directory, name } = this.#parent(path);
        const node = directory.entries.get(name) ?? fail("ENOENT", path);
        if (node.kind !== "directory") return fail("ENOTDIR", path);
        if (node.entries.size > 0) fail("ENOTEMPTY", path);
        const emptied = this.#pending.filter(({ changes }) => changes.some((change) => change.directory === node));
        this.#do([{ directory, name, to: undefined }], emptied);
      },
      list: (path) => {
        const node = this.#find(path);
        return node.kind === "directory" ? [...node.entries.keys()] : fail("ENOTDIR", path);
      },
      rename: (from, to) => {
        step("rename", to);
        const source = this.#parent(from);
        const node = source.directory.entries.get(source.name) ?? fail("ENOENT", from);
        const target = this.#parent(to);
        // Two names of one file: the call succeeds and does nothing.
        if (target.directory.entries.get(target.name) === node) return;
        this.#do([{ ...source, to: undefined }, { ...target, to: node }]);
      },
      link: (existing, name) => {
        step("link", name);
        const node = this.#find(existing);
        const target = this.#parent(name);
        if (target.directory.entries.has(target.name)) fail("EEXIST", name);
        this.#do([{ ...target, to: node }]);
      },
      unlink: (path) => {
        step("unlink", path);
        const { directory, name } = this.#parent(path);
        if (!directory.entries.has(name)) fail("ENOENT", path);
        this.#do([{ directory, name, to: undefined }]);
      },
      create: (path) => {
        step("create", path);
        const { directory, name } = this.#parent(path);
        if (directory.entries.has(name)) fail("EEXIST", path);
        const node: FileNode = {
          kind: "file",
          id: this.#nodes++,
          data: new Uint8Array(0),
          flushed: undefined,
          changedAt: this.now,
        };
        this.#do([{ directory, name, to: node }]);
        return open(node);
      },
      open: (path) => open(this.#find(path)),
      write: (descriptor, bytes) => {
        step("write", String(descriptor));
        const node = nodeOf(descriptor) as FileNode;
        const data = new Uint8Array(node.data.byteLength + bytes.byteLength);
        data.set(node.data);
        data.set(bytes, node.data.byteLength);
        node.data = data;
      },
      read: (descriptor, position, length) => {
        const node = nodeOf(descriptor) as FileNode;
        return node.data.slice(position, position + length);
      },
      flush: async (descriptor) => {
        const node = nodeOf(descriptor);
        // What comes after its beginning is not part of a flush.
        const begun = new Set(this.#pending);
        const data = node.kind === "file" ? node.data : undefined;
        await this.park?.("flush");
        step("flush", node.kind);
        this.#flush(node, begun, data);
      },
      close: (descriptor) => void descriptors.delete(descriptor),
      status: (path) => this.#status(this.#find(path)),
      statusOf: (descriptor) => this.#status(nodeOf(descriptor)),
      isPermitted: () => true,
      resolve: (path) => path,
      touch: (path) => void (this.#find(path).changedAt = this.now),
      watch: () => () => {},
      pause: () => this.park?.("pause") ?? Promise.resolve(),
      uptime: () => this.now,
      sha256: (text) => createHash("sha256").update(text).digest("hex"),
    };
  }

  /**
   * The disk as it may be after the power was cut now: everything flushed, and an allowed part of what was not.
   *
   * @param kept The chance that an operation that was not flushed survives, 0 to 1.
   */
  cutPower(random: Random, kept: number): Disk {
    const pending = new Set(this.#pending);
    const survives = new Set<PendingOperation>();
    for (const operation of this.#pending) {
      if (operation.needs.every((need) => survives.has(need) || !pending.has(need)) && random.next() < kept) {
        survives.add(operation);
      }
    }
    const after = new Disk();
    after.now = this.now + 1;
    const copies = new Map<Node, Node>();
    const copy = (node: Node): Node => {
      const known = copies.get(node);
      if (known !== undefined) return known;
      const made = node.kind === "file" ? copyFile(node, random) : after.#directory(node.id);
      copies.set(node, made);
      if (node.kind === "directory" && made.kind === "directory") {
        for (const [name, child] of this.#entriesAfter(node, survives)) {
          const copied = copy(child);
          made.entries.set(name, copied);
          made.flushed.set(name, copied);
        }
      }
      return made;
    };
    after.#root = copy(this.#root) as DirectoryNode;
    after.#nodes = this.#nodes;
    return after;
  }

  #entriesAfter(directory: DirectoryNode, survives: ReadonlySet<PendingOperation>): Map<string, Node> {
    const entries = new Map(directory.flushed);
    for (const operation of survives) {
      for (const change of operation.changes) if (change.directory === directory) applyChange(entries, change);
    }
    return entries;
  }

  #directory(id: number): DirectoryNode {
    return { kind: "directory", id, entries: new Map(), flushed: new Map(), changedAt: this.now };
  }

  #find(path: string): Node {
    let node: Node = this.#root;
    for (const name of path.split("/")) {
      if (name === "") continue;
      const child: Node | undefined = node.kind === "directory" ? node.entries.get(name) : undefined;
      if (child === undefined) return fail("ENOENT", path);
      node = child;
    }
    return node;
  }

  #parent(path: string): { directory: DirectoryNode; name: string } {
    const slash = path.lastIndexOf("/");
    const directory = this.#find(path.slice(0, slash));
    if (directory.kind !== "directory") return fail("ENOTDIR", path);
    return { directory, name: path.slice(slash + 1) };
  }

  #do(changes: readonly NameChange[], alsoNeeds: readonly PendingOperation[] = []): void {
    const needs = new Set(alsoNeeds);
    for (const { directory, name } of changes) {
      const last = this.#lastChange.get(keyOf(directory, name));
      if (last !== undefined) needs.add(last);
    }
    const operation: PendingOperation = { sequence: this.#sequence++, changes, needs: [...needs] };
    for (const change of changes) {
      applyChange(change.directory.entries, change);
      this.#lastChange.set(keyOf(change.directory, change.name), operation);
      change.directory.changedAt = this.now;
      if (change.to !== undefined) change.to.changedAt = this.now;
    }
    this.#pending.push(operation);
  }

  #flush(node: Node, begun: ReadonlySet<PendingOperation>, data: Uint8Array | undefined): void {
    if (node.kind === "file") {
      node.flushed = data;
      return;
    }
    const pending = new Set(this.#pending);
    const flushed = new Set<PendingOperation>();
    const include = (operation: PendingOperation) => {
      if (flushed.has(operation) || !pending.has(operation)) return;
      flushed.add(operation);
      operation.needs.forEach(include);
    };
    for (const operation of begun) {
      if (operation.changes.some(({ directory }) => directory === node)) include(operation);
    }
    for (const operation of [...flushed].sort((a, b) => a.sequence - b.sequence)) {
      for (const change of operation.changes) {
        applyChange(change.directory.flushed, change);
        const key = keyOf(change.directory, change.name);
        if (this.#lastChange.get(key) === operation) this.#lastChange.delete(key);
      }
    }
    this.#pending = this.#pending.filter((operation) => !flushed.has(operation));
  }

  #status(node: Node): FileStatus {
    const links = node.kind === "file" ? this.#countLinks(node, this.#root) : 2;
    const size = node.kind === "file" ? node.data.byteLength : 0;
    return { kind: node.kind, mode: node.kind === "file" ? 0o600 : 0o700, links, size, changedAt: node.changedAt };
  }

  #countLinks(file: FileNode, directory: DirectoryNode): number {
    let links = 0;
    for (const node of directory.entries.values()) {
      if (node === file) links++;
      else if (node.kind === "directory") links += this.#countLinks(file, node);
    }
    return links;
  }
}

function keyOf(directory: DirectoryNode, name: string): string {
  return `${directory.id}/${name}`;
}

function applyChange(entries: Map<string, Node>, { name, to }: NameChange): void {
  if (to === undefined) entries.delete(name);
  else entries.set(name, to);
}

/** A file after a power cut: what was flushed of it, or of what was not, something, nothing or a torn half. */
function copyFile(file: FileNode, random: Random): FileNode {
  let data = file.flushed;
  if (data !== file.data) {
    const luck = random.next();
    if (luck < 1 / 3) data = file.data;
    else if (luck < 2 / 3) {
      data = file.data.slice();
      data.fill(0, Math.floor(random.next() * data.byteLength));
    } else data ??= new Uint8Array(0);
  }
  return {
    kind: "file",
    id: file.id,
    data: data ?? new Uint8Array(0),
    flushed: data ?? new Uint8Array(0),
    changedAt: file.changedAt,
  };
}
