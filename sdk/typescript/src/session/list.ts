/** Describes a list of desired objects by how it differs from another one. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PieceSchema } from "../gen/hookloop/stream/v1/stream_pb.js";
import { hashOf, linkPart, add, type Digest, type Hash } from "./digest.js";

type Piece = MessageInitShape<typeof PieceSchema>;

/** A desired object, serialized. */
interface Item {
  readonly hash: Hash;
  /** What the item adds to the list's digest. It depends on the previous item. */
  readonly link: Digest;
  readonly raw: Uint8Array;
}

/** A list of serialized desired objects. It is immutable. digest is the sum of the links. */
export interface ItemList {
  readonly items: readonly Item[];
  readonly digest: Digest;
  /** How many bytes the items take. */
  readonly size: number;
}

const EMPTY: ItemList = { items: [], digest: 0n, size: 0 };

/** Returns a list and the pieces that describe it: runs of the previous list, and new items. */
export function difference(
  previous: ItemList | undefined, raws: readonly Uint8Array[],
): { list: ItemList; pieces: Piece[] } {
  const old = (previous ?? EMPTY).items;
  const shortest = Math.min(old.length, raws.length);
  let head = 0;
  while (head < shortest && same(old[head]!, raws[head]!)) {
    head++;
  }
  let tail = 0;
  while (tail < shortest - head && same(old[old.length - 1 - tail]!, raws[raws.length - 1 - tail]!)) {
    tail++;
  }
  const writer = new Writer(old);
  writer.keep(0, head);
  writer.middle(head, old.length - tail, raws.slice(head, raws.length - tail));
  writer.keep(old.length - tail, tail);
  return writer.done();
}

function same(item: Item, raw: Uint8Array): boolean {
  return Buffer.compare(item.raw, raw) === 0;
}

/** Builds a list together with its pieces. */
class Writer {
  readonly #old: readonly Item[];
  readonly #items: Item[] = [];
  readonly #pieces: Piece[] = [];
  #digest: Digest = 0n;
  #size = 0;
  /** The run that is still open. */
  #run = { first: 0, count: 0 };

  constructor(old: readonly Item[]) {
    this.#old = old;
  }

  /** Extends the open run or starts another one. */
  keep(first: number, count: number): void {
    if (count === 0) {
      return;
    }
    for (let at = first; at < first + count; at++) {
      const item = this.#old[at]!;
      const follows = this.#previous() === this.#old[at - 1]?.hash;
      this.#add(follows ? item : { ...item, link: linkPart(this.#previous(), item.hash) });
    }
    if (this.#run.count > 0 && this.#run.first + this.#run.count !== first) {
      this.#flush();
    }
    const open = this.#run;
    this.#run = open.count === 0 ? { first, count } : { first: open.first, count: open.count + count };
  }

  /** Adds the items between the common head and the common tail, which may have moved. */
  middle(first: number, end: number, raws: readonly Uint8Array[]): void {
    const places = new Map<Hash, number>();
    for (let at = first; at < end; at++) {
      places.set(this.#old[at]!.hash, at);
    }
    for (const raw of raws) {
      const hash = hashOf(raw);
      const at = places.get(hash);
      if (at !== undefined) {
        this.keep(at, 1);
        continue;
      }
      this.#flush();
      this.#add({ hash, link: linkPart(this.#previous(), hash), raw });
      this.#pieces.push({ content: { case: "insert", value: raw } });
    }
  }

  done(): { list: ItemList; pieces: Piece[] } {
    this.#flush();
    return { list: { items: this.#items, digest: this.#digest, size: this.#size }, pieces: this.#pieces };
  }

  /** Returns the hash of the last item. */
  #previous(): Hash | undefined {
    return this.#items.at(-1)?.hash;
  }

  #add(item: Item): void {
    this.#items.push(item);
    this.#digest = add(this.#digest, item.link);
    this.#size += item.raw.length;
  }

  #flush(): void {
    if (this.#run.count > 0) {
      this.#pieces.push({ content: { case: "keep", value: this.#run } });
      this.#run = { first: 0, count: 0 };
    }
  }
}
