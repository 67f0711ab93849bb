/** Holds the observed objects of requests about one subject, and applies changes to them. */
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import { type ObservedObject, ObservedObjectSchema } from "../gen/hookloop/hook/v1/observed_pb.js";
import {
  type Call, type Key, Nack_Reason as Reason, type NackSchema, type Upsert,
} from "../gen/hookloop/stream/v1/stream_pb.js";
import { add, entryPart, equals, hashOf, readHash, subtract, type Digest, type Hash } from "./digest.js";
import { ProtocolError } from "./error.js";

/** An object in a session's state. Several sets may use it. */
export interface StoredObject {
  readonly message: ObservedObject;
  readonly hash: Hash;
  readonly size: number;
  /** How many entries use this object. When it is not used any longer, it is dropped. */
  uses: number;
}

/** The objects in one slot, sorted by name. It is immutable; requests share the messages. */
interface SlotObjects {
  readonly objects: readonly StoredObject[];
  readonly messages: readonly ObservedObject[];
}

/** A set of observed objects. It is immutable. No slot is empty, and digest covers all entries. */
export interface ObservedSet {
  readonly slots: ReadonlyMap<number, SlotObjects>;
  readonly digest: Digest;
}

/** Codes of google.rpc.Code. */
const [FAILED_PRECONDITION, DATA_LOSS] = [9, 15];

/** Is thrown if a call refers to a set or an object that the hook does not have. */
export class Missing {
  constructor(readonly reason: Reason, readonly message: string) {}

  /** Returns the answer to the call. */
  nack(): MessageInitShape<typeof NackSchema> {
    const code = this.reason === Reason.DIGEST_MISMATCH ? DATA_LOSS : FAILED_PRECONDITION;
    return { reason: this.reason, status: { code, message: this.message } };
  }
}

/**
 * Returns the set that a call describes: the base with the call's changes. find returns an object
 * from any set.
 */
export function apply(
  base: ObservedSet | undefined, call: Call, find: (hash: Hash) => StoredObject | undefined,
): ObservedSet | Missing {
  if (call.base.length > 0 && !base) {
    return new Missing(Reason.UNKNOWN_BASE, "the hook has no set for this subject");
  }
  if (call.base.length > 0 && !equals(base!.digest, call.base)) {
    return new Missing(Reason.UNKNOWN_BASE, "the set for this subject has another digest");
  }
  const edit = new Edit(call.base.length > 0 ? base : undefined);
  call.removed.forEach((key) => edit.remove(key));
  const sent = new Map<Hash, StoredObject>();
  for (const upsert of call.upserts) {
    const object = objectOf(upsert, (hash) => sent.get(hash) ?? find(hash));
    if (!object) {
      return new Missing(Reason.UNKNOWN_OBJECT, "the hook has no object with this hash");
    }
    sent.set(object.hash, object);
    edit.put(upsert.slot, object);
  }
  const next = edit.done();
  return equals(next.digest, call.digest)
    ? next : new Missing(Reason.DIGEST_MISMATCH, "after the changes the set has another digest");
}

/** Returns the object for an upsert, which contains the object itself or its hash. */
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

/** Decodes a copy of the bytes. Without it, the object would keep the whole message in memory. */
function readObject(data: Uint8Array): ObservedObject {
  try {
    return fromBinary(ObservedObjectSchema, Uint8Array.from(data));
  } catch (error) {
    throw new ProtocolError(`an upsert's object is not a hookloop.hook.v1.ObservedObject: ${(error as Error).message}`);
  }
}

/** Builds a set from a base. Slots that do not change are shared. */
class Edit {
  readonly #slots: Map<number, SlotObjects>;
  readonly #touched = new Map<number, StoredObject[]>();
  #digest: Digest;

  constructor(base?: ObservedSet) {
    this.#slots = new Map(base?.slots);
    this.#digest = base?.digest ?? 0n;
  }

  /** Removes an entry. If there is no such entry, the digests will not match. */
  remove(key: Key): void {
    const objects = this.#own(key.slot);
    const { at, found } = search(objects, key);
    if (found) {
      this.#digest = subtract(this.#digest, entryPart(key.slot, objects[at]!.hash));
      objects.splice(at, 1);
    }
  }

  /** Adds an entry, or replaces the entry with the same key. */
  put(slot: number, object: StoredObject): void {
    const objects = this.#own(slot);
    const last = objects.at(-1);
    const append = !last || order(last.message, object.message) < 0;
    const { at, found } = append ? { at: objects.length, found: false } : search(objects, object.message);
    if (found) {
      this.#digest = subtract(this.#digest, entryPart(slot, objects[at]!.hash));
    }
    objects.splice(at, found ? 1 : 0, object);
    this.#digest = add(this.#digest, entryPart(slot, object.hash));
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

  /** Returns a copy of a slot's objects that may be changed. */
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

/** Compares strings by their UTF-8 bytes. */
function bytewise(a: string, b: string): number {
  for (let at = 0; at < a.length && at < b.length; at++) {
    if (a[at] !== b[at]) {
      return rank(a.charCodeAt(at)) - rank(b.charCodeAt(at));
    }
  }
  return a.length - b.length;
}

/** Ranks surrogates last, because they encode the highest code points. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
