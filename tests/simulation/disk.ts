/**
 * A disk that can lose power, and processes that can die: what is flushed is kept apart from what is not.
 *
 * The model is that of a journalling file system. A rename, link or unlink happens whole or not at all. What was not
 * flushed may be lost, operations on different names independently, but never so that an operation is kept without
 * those it builds on: the one that made its source name, those that emptied a folder it removed. Data that was not
 * flushed may be absent or torn. A folder whose own entry is lost is lost with all it holds, flushed or not. A process
 * that dies leaves everything as it was.
 *
 * @module
 */

import { createHash } from "node:crypto";
import type { FileOperations, FileStatus } from "../../src/brokers/file/operations.ts";
import type { Random } from "./random.ts";

interface FileNode {
  readonly kind: "file";
  /** Replaced by every write and never changed in place, so that copies of the disk share it. */
  data: Uint8Array;
  /** What of the data is on the device; `undefined` while nothing is. */
  flushed: Uint8Array | undefined;
  links: number;
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
  // Refusals are a part of how the broker works, and a stack would cost more than all the rest.
  throw Object.assign(Object.create(Error.prototype) as Error, { message: `${code}: ${path}`, code, path });
}

const numbers = new WeakMap<Uint8Array, number>();
let lastNumber = 0;

/** A number that stands for bytes, which nobody changes in place. */
function numberOf(bytes: Uint8Array): number {
  let number = numbers.get(bytes);
  if (number === undefined) numbers.set(bytes, number = bytes.byteLength === 0 ? 0 : ++lastNumber);
  return number;
}

const hashes = new Map<string, string>();

/** The SHA-256 of a text, which many programs ask for the same few texts. */
export function sha256(text: string): string {
  let hash = hashes.get(text);
  if (hash === undefined) hashes.set(text, hash = createHash("sha256").update(text).digest("hex"));
  return hash;
}

/** What a step of a process that was killed throws. */
export class ProcessDied extends Error {
  override readonly name = "ProcessDied";
}

/** A file with the path under which it was found. */
export interface FoundFile {
  readonly name: string;
  /** The same array in every copy of the disk as long as nobody wrote to the file. */
  readonly data: Uint8Array;
  /** How many names it has. */
  readonly links: number;
}

/** A disk and everything on it. */
export class Disk {
  /** The file system's own clock, in ms. */
  now = 1_000_000;
  /** Called before every step that changes something or flushes, for whoever crashes or breaks what runs on it. */
  beforeStep: ((process: FileOperations) => void) | undefined;
  /** Where flushes and pauses wait until the scheduler lets them go on; `undefined` lets them go on at once. */
  park: ((what: string) => Promise<void>) | undefined;
  #root: DirectoryNode = this.#directory(0);
  #pending: PendingOperation[] = [];
  #lastChange = new Map<string, PendingOperation>();
  #sequence = 0;
  #directories = 1;
  /** Whether what is not flushed is kept apart; a disk that will not lose power saves the trouble. */
  readonly #tracked: boolean;
  /** Processes of an earlier generation are dead. */
  #generation = 0;
  /** How many steps were made. */
  #steps = 0;

  constructor(tracked = true) {
    this.#tracked = tracked;
  }

  /** Ends every process, as SIGKILL does: what they did stays done, and they do nothing more. */
  kill(): void {
    this.#generation++;
  }

  /** Puts what lies at a path on the device within one step, which no real flush can; nothing where nothing lies. */
  flushNow(path: string): void {
    const node = this.#look(path);
    if (node !== undefined) this.#flush(node, new Set(this.#pending), node.kind === "file" ? node.data : undefined);
  }

  /** The names in a directory; none where there is no directory. */
  names(path: string): string[] {
    const node = this.#look(path);
    return node?.kind === "directory" ? [...node.entries.keys()] : [];
  }

  /** The files in a directory; none where there is no directory. */
  files(path: string): FoundFile[] {
    const node = this.#look(path);
    const found: FoundFile[] = [];
    if (node?.kind !== "directory") return found;
    for (const [name, file] of node.entries) {
      if (file.kind === "file") found.push({ name, data: file.data, links: file.links });
    }
    return found;
  }

  /** Two disks with the same print hold the same names and data. */
  print(): string {
    let print = "";
    const add = (directory: DirectoryNode) => {
      for (const [name, node] of directory.entries) {
        print += name;
        if (node.kind === "file") print += ` ${numberOf(node.data)}\n`;
        else {
          print += "/\n";
          add(node);
          print += "\n";
        }
      }
    };
    add(this.#root);
    return print;
  }

  /** The file operations of one process on this disk. */
  process(): FileOperations {
    const born = this.#generation;
    const descriptors = new Map<number, Node>();
    let nextDescriptor = 3;
    const open = (node: Node) => {
      descriptors.set(nextDescriptor, node);
      return nextDescriptor++;
    };
    const nodeOf = (descriptor: number) => descriptors.get(descriptor) ?? fail("EBADF", String(descriptor));
    const step = (name: string) => {
      if (born === this.#generation) this.beforeStep?.(operations);
      if (born !== this.#generation) throw new ProcessDied(`Died before ${name}`);
      this.#steps++;
    };
    /** Changes names in one step, unless the plan throws; another process may go ahead before the step. */
    const change = (name: string, plan: () => readonly NameChange[], needs?: () => readonly PendingOperation[]) => {
      if (plan().length === 0) return;
      step(name);
      const changes = plan();
      if (changes.length > 0) this.#do(changes, needs?.());
    };
    const vacancy = (path: string) => {
      const place = this.#parent(path);
      return place.directory.entries.has(place.name) ? fail("EEXIST", path) : place;
    };
    const operations: FileOperations = {
      makeDirectory: (path) =>
        change("makeDirectory", () => [{ ...vacancy(path), to: this.#directory(this.#directories++) }]),
      removeDirectory: (path) => {
        const find = () => {
          const place = this.#parent(path);
          const node = place.directory.entries.get(place.name) ?? fail("ENOENT", path);
          if (node.kind !== "directory") return fail("ENOTDIR", path);
          return node.entries.size > 0 ? fail("ENOTEMPTY", path) : { place, node };
        };
        change(
          "removeDirectory",
          () => [{ ...find().place, to: undefined }],
          () => {
            const { node } = find();
            return this.#pending.filter(({ changes }) => changes.some(({ directory }) => directory === node));
          },
        );
      },
      list: (path) => {
        const node = this.#find(path);
        return node.kind === "directory" ? [...node.entries.keys()] : fail("ENOTDIR", path);
      },
      rename: (from, to) =>
        change("rename", () => {
          const source = this.#parent(from);
          const node = source.directory.entries.get(source.name) ?? fail("ENOENT", from);
          const target = this.#parent(to);
          // Two names of one file: the call succeeds and does nothing.
          if (target.directory.entries.get(target.name) === node) return [];
          return [{ ...source, to: undefined }, { ...target, to: node }];
        }),
      link: (existing, name) =>
        change("link", () => {
          const node = this.#find(existing);
          return [{ ...vacancy(name), to: node }];
        }),
      unlink: (path) =>
        change("unlink", () => {
          const place = this.#parent(path);
          return place.directory.entries.has(place.name) ? [{ ...place, to: undefined }] : fail("ENOENT", path);
        }),
      create: (path) => {
        const node: FileNode = {
          kind: "file",
          data: new Uint8Array(0),
          flushed: undefined,
          links: 0,
          changedAt: this.now,
        };
        change("create", () => [{ ...vacancy(path), to: node }]);
        return open(node);
      },
      open: (path) => open(this.#find(path)),
      write: (descriptor, bytes) => {
        step("write");
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
        if (this.park !== undefined) await this.park("flush");
        step("flush");
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
      // A step takes a millisecond by the clock that nobody sets.
      uptime: () => this.now + this.#steps,
      sha256,
    };
    return operations;
  }

  /** The disk as it is, for a look at what would be if every process died now; it cannot lose power. */
  copy(): Disk {
    return this.#copy(new Disk(false), (directory) => directory.entries, (file) => file.data);
  }

  /**
   * The disk as it may be after the power was cut now: everything flushed, and an allowed part of what was not.
   *
   * @param kept The chance that an operation that was not flushed survives, 0 to 1.
   * @param tracked Whether the new disk can lose power again.
   */
  cutPower(random: Random, kept: number, tracked = false): Disk {
    const pending = new Set(this.#pending);
    const survives = new Set<PendingOperation>();
    for (const operation of this.#pending) {
      if (operation.needs.every((need) => survives.has(need) || !pending.has(need)) && random.next() < kept) {
        survives.add(operation);
      }
    }
    const changed = new Map<DirectoryNode, Map<string, Node>>();
    for (const operation of survives) {
      for (const change of operation.changes) {
        let entries = changed.get(change.directory);
        if (entries === undefined) changed.set(change.directory, entries = new Map(change.directory.flushed));
        applyChange(entries, change);
      }
    }
    return this.#copy(
      new Disk(tracked),
      (directory) => changed.get(directory) ?? directory.flushed,
      (file) => dataAfter(file, random),
    );
  }

  /** A copy with the entries and data that it is told. */
  #copy(
    after: Disk,
    entriesOf: (directory: DirectoryNode) => ReadonlyMap<string, Node>,
    dataOf: (file: FileNode) => Uint8Array,
  ): Disk {
    after.now = this.now;
    after.#directories = this.#directories;
    const files = new Map<FileNode, FileNode>();
    const copyDirectory = (node: DirectoryNode): DirectoryNode => {
      const made = after.#directory(node.id);
      made.changedAt = node.changedAt;
      for (const [name, child] of entriesOf(node)) {
        made.entries.set(name, child.kind === "directory" ? copyDirectory(child) : copyFile(child));
      }
      return after.#tracked ? { ...made, flushed: new Map(made.entries) } : made;
    };
    const copyFile = (node: FileNode): FileNode => {
      let made = files.get(node);
      if (made === undefined) {
        const data = dataOf(node);
        files.set(node, made = { kind: "file", data, flushed: data, links: 0, changedAt: node.changedAt });
      }
      made.links++;
      return made;
    };
    after.#root = copyDirectory(this.#root);
    return after;
  }

  #directory(id: number): DirectoryNode {
    return { kind: "directory", id, entries: new Map(), flushed: new Map(), changedAt: this.now };
  }

  #look(path: string): Node | undefined {
    let node: Node = this.#root;
    for (let start = 1; start < path.length;) {
      let end = path.indexOf("/", start);
      if (end < 0) end = path.length;
      const child: Node | undefined = node.kind === "directory" ? node.entries.get(path.slice(start, end)) : undefined;
      if (child === undefined) return undefined;
      node = child;
      start = end + 1;
    }
    return node;
  }

  #find(path: string): Node {
    return this.#look(path) ?? fail("ENOENT", path);
  }

  #parent(path: string): { directory: DirectoryNode; name: string } {
    const slash = path.lastIndexOf("/");
    const directory = this.#find(path.slice(0, slash));
    if (directory.kind !== "directory") return fail("ENOTDIR", path);
    return { directory, name: path.slice(slash + 1) };
  }

  #do(changes: readonly NameChange[], alsoNeeds: readonly PendingOperation[] = []): void {
    for (const change of changes) this.#change(change);
    if (!this.#tracked) return;
    const needs = new Set(alsoNeeds);
    for (const { directory, name } of changes) {
      const last = this.#lastChange.get(keyOf(directory, name));
      if (last !== undefined) needs.add(last);
    }
    const operation: PendingOperation = { sequence: this.#sequence++, changes, needs: [...needs] };
    for (const { directory, name } of changes) this.#lastChange.set(keyOf(directory, name), operation);
    this.#pending.push(operation);
  }

  #change({ directory, name, to }: NameChange): void {
    const before = directory.entries.get(name);
    if (before?.kind === "file") {
      before.links--;
      before.changedAt = this.now;
    }
    if (to?.kind === "file") to.links++;
    directory.changedAt = this.now;
    if (to !== undefined) to.changedAt = this.now;
    applyChange(directory.entries, { directory, name, to });
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
    const links = node.kind === "file" ? node.links : 2;
    const size = node.kind === "file" ? node.data.byteLength : 0;
    return { kind: node.kind, mode: node.kind === "file" ? 0o600 : 0o700, links, size, changedAt: node.changedAt };
  }
}

function keyOf(directory: DirectoryNode, name: string): string {
  return `${directory.id}/${name}`;
}

function applyChange(entries: Map<string, Node>, { name, to }: NameChange): void {
  if (to === undefined) entries.delete(name);
  else entries.set(name, to);
}

/** A file's data after a power cut: what was flushed, or of what was not, all, nothing, a part, or zeroes in its place. */
function dataAfter(file: FileNode, random: Random): Uint8Array {
  if (file.flushed === file.data) return file.data;
  const torn = Math.floor(random.next() * file.data.byteLength);
  switch (random.below(4)) {
    case 0:
      return file.data;
    case 1:
      return file.data.slice().fill(0, torn);
    case 2:
      return file.data.slice(0, Math.max(torn, file.flushed?.byteLength ?? 0));
    default:
      return file.flushed ?? new Uint8Array(0);
  }
}
