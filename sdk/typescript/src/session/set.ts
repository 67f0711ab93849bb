/** Observed sets, and how a call changes one into the next. */
import { fromBinary } from "@bufbuild/protobuf";
import { ObjectSchema, type Object$ } from "../gen/hookloop/hook/v1/object_pb.js";
import { Nack_Reason as Reason, type Call, type Key, type Upsert } from "../gen/hookloop/stream/v1/stream_pb.js";
import { entryPart, hashOf, is, minus, plus, readHash, type Digest, type Hash } from "./digest.js";
import { ProtocolError } from "./error.js";

/** An object that a hook holds. It is shared by the sets that have it. */
export interface StoredObject {
  readonly message: Object$;
  readonly hash: Hash;
  readonly size: number;
  /** How many entries of sets refer to it; an object that nobody uses is let go. */
  uses: number;
}

/** The objects of one slot in the order of their names. Neither list is changed once it is made; requests share the messages. */
interface SlotObjects {
  readonly objects: readonly StoredObject[];
  readonly messages: readonly Object$[];
}

/** An observed set. It is not changed once it is made. Invariant: no slot is empty, and digest is that of all entries. */
export interface ObservedSet {
  readonly slots: ReadonlyMap<number, SlotObjects>;
  readonly digest: Digest;
}

/** What a call refers to and the hook does not hold. */
export class Missing {
  constructor(readonly reason: Reason, readonly message: string) {}
}

/** The set that a call describes; find is what the hook holds beside the base. */
export function apply(base: ObservedSet | undefined, call: Call, find: (hash: Hash) => StoredObject | undefined): ObservedSet | Missing {
  if (call.base.length > 0 && !base) {
    return new Missing(Reason.UNKNOWN_BASE, "nothing is held for this subject");
  }
  if (call.base.length > 0 && !is(base!.digest, call.base)) {
    return new Missing(Reason.UNKNOWN_BASE, "what is held for this subject has another digest");
  }
  const edit = new Edit(call.base.length > 0 ? base : undefined);
  call.removed.forEach((key) => edit.remove(key));
  const sent = new Map<Hash, StoredObject>();
  for (const upsert of call.upserts) {
    const object = objectOf(upsert, (hash) => sent.get(hash) ?? find(hash));
    if (!object) {
      return new Missing(Reason.UNKNOWN_OBJECT, "an object is not held that is named by its hash");
    }
    sent.set(object.hash, object);
    edit.put(upsert.slot, object);
  }
  const next = edit.done();
  return is(next.digest, call.digest) ? next : new Missing(Reason.DIGEST_MISMATCH, "after the changes the set has another digest");
}

/** The object of an upsert: one that comes with the call, or one that is held. */
function objectOf({ content }: Upsert, find: (hash: Hash) => StoredObject | undefined): StoredObject | undefined {
  switch (content.case) {
    case "object": {
      const hash = hashOf(content.value);
      return find(hash) ?? { message: readObject(content.value), hash, size: content.value.length, uses: 0 };
    }
    case "hash":
      return find(readHash(content.value));
    default:
      throw new ProtocolError("an upsert has neither object nor hash, expected one of them");
  }
}

/** The object is read from bytes of its own: those that came are a part of the whole message, which it would keep alive. */
function readObject(data: Uint8Array): Object$ {
  try {
    return fromBinary(ObjectSchema, Uint8Array.from(data));
  } catch (error) {
    throw new ProtocolError(`an upsert's object is no hookloop.hook.v1.Object: ${(error as Error).message}`);
  }
}

/** A set that is being changed. Limiter that no change touches are shared with the set that it comes from. */
class Edit {
  readonly #slots: Map<number, SlotObjects>;
  readonly #touched = new Map<number, StoredObject[]>();
  #digest: Digest;

  constructor(base?: ObservedSet) {
    this.#slots = new Map(base?.slots);
    this.#digest = base?.digest ?? 0n;
  }

  /** Takes an entry out. One that is not there is left to the digest to find. */
  remove(key: Key): void {
    const objects = this.#own(key.slot);
    const { at, found } = search(objects, key);
    if (found) {
      this.#digest = minus(this.#digest, entryPart(key.slot, objects[at]!.hash));
      objects.splice(at, 1);
    }
  }

  /** Takes an entry in, in the place of the one with the same key. */
  put(slot: number, object: StoredObject): void {
    const objects = this.#own(slot);
    const last = objects.at(-1);
    const { at, found } = !last || order(last.message, object.message) < 0 ? { at: objects.length, found: false } : search(objects, object.message);
    if (found) {
      this.#digest = minus(this.#digest, entryPart(slot, objects[at]!.hash));
    }
    objects.splice(at, found ? 1 : 0, object);
    this.#digest = plus(this.#digest, entryPart(slot, object.hash));
  }

  done(): ObservedSet {
    for (const [slot, objects] of this.#touched) {
      this.#slots.delete(slot);
      if (objects.length > 0) {
        this.#slots.set(slot, { objects, messages: objects.map((object) => object.message) });
      }
    }
    return { slots: this.#slots, digest: this.#digest };
  }

  /** The objects of a slot that may be changed. */
  #own(slot: number): StoredObject[] {
    let objects = this.#touched.get(slot);
    if (!objects) {
      objects = [...(this.#slots.get(slot)?.objects ?? [])];
      this.#touched.set(slot, objects);
    }
    return objects;
  }
}

type Named = Pick<Key, "namespace" | "name">;

function search(objects: readonly StoredObject[], key: Named): { at: number; found: boolean } {
  let [low, high] = [0, objects.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (order(objects[middle]!.message, key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return { at: low, found: low < objects.length && order(objects[low]!.message, key) === 0 };
}

function order(a: Named, b: Named): number {
  return bytewise(a.namespace, b.namespace) || bytewise(a.name, b.name);
}

/** Compares strings as their UTF-8 is compared. */
function bytewise(a: string, b: string): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a[at] !== b[at]) {
      return rank(a.charCodeAt(at)) - rank(b.charCodeAt(at));
    }
  }
  return a.length - b.length;
}

/** Surrogates, which stand for what lies above all else, come last. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
