/** Desired lists, and how one differs from another. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PieceSchema } from "../gen/hookloop/stream/v1/stream_pb.js";
import { hashOf, linkPart, plus, type Digest, type Hash } from "./digest.js";

type Piece = MessageInitShape<typeof PieceSchema>;

/** One desired object, serialized. */
interface Item {
  readonly hash: Hash;
  /** The part of the list's digest, which the item before has a share in. */
  readonly link: Digest;
  readonly raw: Uint8Array;
}

/** A desired list, serialized. It is not changed once it is made. Invariant: digest is the sum of the links. */
export interface ItemList {
  readonly items: readonly Item[];
  readonly digest: Digest;
  /** Bytes of the items. */
  readonly size: number;
}

const EMPTY: ItemList = { items: [], digest: 0n, size: 0 };

/** A list, and the pieces that say it: runs of the list before, and new items. */
export function difference(before: ItemList | undefined, raws: readonly Uint8Array[]): { list: ItemList; pieces: Piece[] } {
  const old = (before ?? EMPTY).items;
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

/** Makes a list and its pieces. */
class Writer {
  readonly #old: readonly Item[];
  readonly #items: Item[] = [];
  readonly #pieces: Piece[] = [];
  #digest: Digest = 0n;
  #size = 0;
  /** The run that is not written yet. */
  #run = { first: 0, count: 0 };

  constructor(old: readonly Item[]) {
    this.#old = old;
  }

  /** Goes on with a run, or begins one. */
  keep(first: number, count: number): void {
    if (count === 0) {
      return;
    }
    for (let at = first; at < first + count; at++) {
      const item = this.#old[at]!;
      const follows = this.#before() === this.#old[at - 1]?.hash;
      this.#add(follows ? item : { ...item, link: linkPart(this.#before(), item.hash) });
    }
    if (this.#run.count > 0 && this.#run.first + this.#run.count !== first) {
      this.#flush();
    }
    this.#run = this.#run.count === 0 ? { first, count } : { first: this.#run.first, count: this.#run.count + count };
  }

  /** Writes what lies between the common beginning and the common end: items may have moved. */
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
      this.#add({ hash, link: linkPart(this.#before(), hash), raw });
      this.#pieces.push({ content: { case: "insert", value: raw } });
    }
  }

  done(): { list: ItemList; pieces: Piece[] } {
    this.#flush();
    return { list: { items: this.#items, digest: this.#digest, size: this.#size }, pieces: this.#pieces };
  }

  /** The hash of the last item; a link depends on it and on the item's own. */
  #before(): Hash | undefined {
    return this.#items.at(-1)?.hash;
  }

  #add(item: Item): void {
    this.#items.push(item);
    this.#digest = plus(this.#digest, item.link);
    this.#size += item.raw.length;
  }

  #flush(): void {
    if (this.#run.count > 0) {
      this.#pieces.push({ content: { case: "keep", value: this.#run } });
      this.#run = { first: 0, count: 0 };
    }
  }
}
