/**
 * The engine's side of a stream: it sends changes, and assembles responses. It has its own
 * implementation of digests.
 */
import { createHash } from "node:crypto";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  SyncRequestSchema, type SyncResponse,
  SyncResponseSchema,
} from "../src/gen/hookloop/composite/v1/composite_pb.js";
import { DesiredObjectSchema } from "../src/gen/hookloop/hook/v1/desired_pb.js";
import { type ObservedObject, ObservedObjectSchema } from "../src/gen/hookloop/hook/v1/observed_pb.js";
import {
  type Answer, type CallSchema, Capability, EngineMessageSchema, type HookMessage, HookMessageSchema, type PieceSchema,
} from "../src/gen/hookloop/stream/v1/stream_pb.js";

export const SYNC = "/hookloop.composite.v1.CompositeHookService/Sync";

/** All optional features. */
export const CAPABILITIES = [
  Capability.CHANGES, Capability.OBJECT_HASHES, Capability.FRAGMENTS, Capability.RESUME,
];

/** An entry of a set. */
export interface Entry {
  slot: number;
  object: ObservedObject;
}

type Message = NonNullable<MessageInitShape<typeof EngineMessageSchema>["message"]>;

function sha(...parts: Uint8Array[]): Buffer {
  return createHash("sha256").update(Buffer.concat(parts)).digest().subarray(0, 16);
}

function sum(parts: Buffer[]): Buffer {
  const total = parts.reduce((before, part) => before + BigInt(`0x${Buffer.from(part).reverse().toString("hex")}`), 0n);
  return Buffer.from(BigInt.asUintN(128, total).toString(16).padStart(32, "0"), "hex").reverse();
}

function setDigest(entries: readonly Entry[]): Buffer {
  return sum(entries.map(({ slot, object }) => sha(Buffer.from(Uint32Array.of(slot).buffer), sha(bytes(object)))));
}

function listDigest(items: readonly Uint8Array[]): Buffer {
  return sum(items.map((item, index) => sha(index > 0 ? sha(items[index - 1]!) : Buffer.alloc(16), sha(item))));
}

function bytes(object: ObservedObject): Uint8Array {
  return toBinary(ObservedObjectSchema, object);
}

function nameOf({ slot, object }: Entry): string {
  return `${slot} ${object.namespace}/${object.name}`;
}

/** Returns a serialized message of the engine. */
export function serialize(message: Message): Uint8Array {
  return toBinary(EngineMessageSchema, create(EngineMessageSchema, { message }));
}

/** Returns a message of the engine in fragments of a size in bytes. */
export function fragments(message: Message, size: number): Uint8Array[] {
  const data = serialize(message);
  const totalBytes = BigInt(data.length);
  return Array.from({ length: Math.ceil(data.length / size) }, (_, index) =>
    serialize({
      case: "fragment",
      value: { index, totalBytes, data: data.subarray(index * size, (index + 1) * size) },
    }),
  );
}

/** The state of one hook that the engine assumes. */
export class Engine {
  readonly #sets = new Map<string, readonly Entry[]>();
  readonly #lists = new Map<string, readonly Uint8Array[]>();
  #id = 0n;
  #parts: Uint8Array[] = [];

  constructor(readonly session = "s") {}

  hello(maxMessageBytes = 64n << 20n): Message {
    return {
      case: "hello",
      value: {
        versions: [1], sessionId: this.session, buildId: "engine", maxMessageBytes, capabilities: CAPABILITIES,
      },
    };
  }

  /**
   * Returns a sync of a subject as changes since the last one. Objects of any set are referred to
   * by hash.
   */
  call(
    subject: string,
    entries: readonly Entry[],
    more: MessageInitShape<typeof CallSchema> = {},
  ): Message & { case: "call" } {
    const before = this.#sets.get(subject);
    const known = new Map(
      [...this.#sets.values()].flat().map(({ object }) => [sha(bytes(object)).toString("hex"), true]),
    );
    const kept = new Map((before ?? []).map((entry) => [nameOf(entry), sha(bytes(entry.object)).toString("hex")]));
    const removed = (before ?? [])
      .filter((entry) => !entries.some((one) => nameOf(one) === nameOf(entry)))
      .map(({ slot, object: { namespace, name } }) => ({ slot, namespace, name }));
    const upserts = entries
      .filter((entry) => kept.get(nameOf(entry)) !== sha(bytes(entry.object)).toString("hex"))
      .map(({ slot, object }) => {
        const data = bytes(object);
        return {
          slot,
          content: known.has(sha(data).toString("hex"))
            ? { case: "hash" as const, value: sha(data) }
            : { case: "object" as const, value: data },
        };
      });
    const list = this.#lists.get(subject);
    this.#sets.set(subject, entries);
    return {
      case: "call",
      value: {
        id: ++this.#id,
        method: SYNC,
        subject,
        base: before ? setDigest(before) : new Uint8Array(),
        removed,
        upserts,
        digest: setDigest(entries),
        envelope: envelope(),
        desiredDigest: list ? listDigest(list) : new Uint8Array(),
        ...more,
      } as MessageInitShape<typeof CallSchema>,
    };
  }

  /** Forgets a subject, so that the next call has the whole set. */
  forget(subject: string): void {
    this.#sets.delete(subject);
    this.#lists.delete(subject);
  }

  /** Returns a message of the hook, or undefined until its last fragment. */
  read(data: Uint8Array): HookMessage["message"] | undefined {
    const { message } = fromBinary(HookMessageSchema, data);
    if (message.case !== "fragment") {
      return message;
    }
    this.#parts.push(message.value.data);
    if (this.#parts.reduce((size, part) => size + part.length, 0) < Number(message.value.totalBytes)) {
      return undefined;
    }
    const whole = fromBinary(HookMessageSchema, Buffer.concat(this.#parts)).message;
    this.#parts = [];
    return whole;
  }

  /** Returns the whole response to a call. Throws if the answer refers to an unknown list. */
  response(subject: string, answer: Answer): SyncResponse {
    if (answer.outcome.case !== "desired") {
      throw new Error(`got ${answer.outcome.case}: ${JSON.stringify(answer.outcome.value)}`);
    }
    const { base, pieces, digest, envelope } = answer.outcome.value;
    const before = this.#lists.get(subject) ?? [];
    if (base.length > 0 && !listDigest(before).equals(base)) {
      throw new Error("the base is not the engine's list");
    }
    const list = pieces.flatMap((piece: MessageInitShape<typeof PieceSchema>) => itemsOf(piece, before));
    if (!listDigest(list).equals(digest)) {
      throw new Error("the list has another digest");
    }
    this.#lists.set(subject, list);
    const whole = fromBinary(SyncResponseSchema, envelope);
    whole.children = list.map((item) => fromBinary(DesiredObjectSchema, item));
    return whole;
  }
}

function itemsOf(
  { content }: MessageInitShape<typeof PieceSchema>,
  before: readonly Uint8Array[],
): readonly Uint8Array[] {
  if (content?.case === "insert") {
    return [content.value!];
  }
  const { first = 0, count = 0 } = content?.value as { first?: number; count?: number };
  if (count < 1 || first + count > before.length) {
    throw new Error(`keeps ${count} from ${first} of ${before.length}`);
  }
  return before.slice(first, first + count);
}

/** Returns a sync request without objects, with one kind of children and one related resource. */
function envelope(): Uint8Array {
  return toBinary(
    SyncRequestSchema,
    create(SyncRequestSchema, {
      children: [{ apiVersion: "v1", kind: "Pod" }],
      related: [{ apiVersion: "v1", kind: "Secret", resource: "secrets", result: { case: "items", value: {} } }],
    }),
  );
}
