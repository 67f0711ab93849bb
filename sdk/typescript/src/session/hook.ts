/**
 * Implements the hook's side of a stream (proto package hookloop.stream.v1).
 *
 * A HookSession rebuilds whole requests from changes, and sends only the changes of a response.
 * Pass each message from the engine to receive, and send what outbox returns:
 *
 *     receive ─→ HookSession ─→ call
 *      outbox ←─ HookSession ←─ answer, fail
 *
 * Messages may be lost, because digests identify the content of sets and lists. If the engine
 * assumes a set that the hook does not have, the digests differ, the hook replies with a Nack, and
 * the engine sends the whole set. There is no connection and no clock here, and nothing waits.
 */
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import type { Method, Request, Response } from "../codec.js";
import { InvalidRequest } from "../errors.js";
import { DesiredObjectSchema } from "../gen/hookloop/hook/v1/desired_pb.js";
import {
  type AnswerSchema, type AttachSchema, type Call, Capability, type DesiredSchema, type EngineMessage,
  EngineMessageSchema,
  type Hello, HookMessageSchema, type TriggerResult, type TriggerSchema, WelcomeSchema,
} from "../gen/hookloop/stream/v1/stream_pb.js";
import { type Status, StatusSchema } from "../gen/google/rpc/status_pb.js";
import { encodeDigest, equals } from "./digest.js";
import { ProtocolError, VersionMismatch } from "./error.js";
import { Assembler, FRAGMENT_BYTES, fragmentsOf, lengthBytes } from "./fragment.js";
import { difference, type ItemList } from "./list.js";
import type { SessionState, SubjectState } from "./state.js";
import { METHODS, rebuild } from "./method.js";
import { Missing } from "./set.js";

/** The protocol's version. */
export const VERSION = 1;
/** Optional features that a hook supports. */
const CAPABILITIES = [
  Capability.CHANGES, Capability.OBJECT_HASHES, Capability.FRAGMENTS, Capability.RESUME,
];
/** Codes of google.rpc.Code. */
const [RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL] = [8, 12, 13];

/** Configures the hook's side of a stream. */
export interface SessionSettings {
  /**
   * Identifies the hook's build. When it changes, Hookloop calls the hook again for all parents.
   */
  build?: string;
  /** Paths of the methods that the hook implements. */
  methods?: readonly string[];
  /** How many calls may run. Defaults to 64. */
  calls?: number;
  /** How many bytes the running calls may take. Defaults to 64 MiB. */
  callBytes?: number;
  /** How many bytes a message from the engine may have. Defaults to 64 MiB. */
  messageBytes?: number;
  /** Returns the state for a session. It is called once, when the Hello arrives. */
  state: (session: string) => SessionState;
}

/** A call for a hook's function. Do not change its messages, because several requests use them. */
export interface HookCall {
  readonly id: bigint;
  readonly method: Method;
  readonly request: Request;
  /** The timeout in milliseconds; undefined means no limit. */
  readonly timeout: number | undefined;
  readonly trace: Readonly<Record<string, string>>;
}

/** What a message from the engine has caused. */
export type Received =
  | { readonly kind: "nothing" }
  /** The session is open. Use its ID to resume it on another stream. */
  | { readonly kind: "open"; readonly session: string; readonly state: SessionState }
  /** A call, which must be answered with answer or fail. */
  | { readonly kind: "call"; readonly call: HookCall }
  /** The engine has cancelled a call. It still needs an answer. */
  | { readonly kind: "cancelled"; readonly call: HookCall }
  /** The engine sends no more calls. The stream may end when the running calls are answered. */
  | { readonly kind: "drain" }
  | { readonly kind: "triggerResult"; readonly result: TriggerResult }
  /** The engine is about to end the stream. */
  | { readonly kind: "goAway"; readonly status: Status };

const NOTHING: Received = { kind: "nothing" };

/** A running call. */
interface Pending {
  readonly call: HookCall;
  /** What is remembered about the call's subject; undefined if the call has no subject. */
  readonly subject: SubjectState | undefined;
  /** Identifies the desired list that the engine has. */
  readonly desiredDigest: Uint8Array;
}

/** Handles the hook's side of one stream. */
export class HookSession {
  readonly #settings: Required<SessionSettings>;
  readonly #pending = new Map<bigint, Pending>();
  readonly #in: Assembler;
  #state: SessionState | undefined; // undefined before the Hello
  #hello: Hello | undefined;
  #maxMessageBytes = 0; // of the largest message that can be sent; 0 without a limit
  #lastId = 0n; // the ID of the last call
  #out: Uint8Array[] = [];
  #engineHas: ReadonlySet<Capability> = new Set(); // the capabilities in Hello
  #draining = false;

  constructor(settings: SessionSettings) {
    this.#settings = {
      build: "", methods: [], calls: 64, callBytes: 64 << 20, messageBytes: 64 << 20, ...settings,
    };
    this.#in = new Assembler(this.#settings.messageBytes);
  }

  /** Whether calls still need an answer. */
  get busy(): boolean {
    return this.#pending.size > 0;
  }

  /** Sends an Attach. It must be the first message on a stream that the hook opens. */
  attach(value: MessageInitShape<typeof AttachSchema>): void {
    this.#send({ case: "attach", value });
  }

  /**
   * Handles a message from the engine. After a ProtocolError the stream cannot be used any longer.
   */
  receive(data: Uint8Array): Received {
    let message = read(data).message;
    if (message.case === "fragment") {
      const whole = this.#in.add(message.value);
      if (!whole) {
        return NOTHING;
      }
      message = read(whole).message;
    } else if (this.#in.busy) {
      throw new ProtocolError(`got ${message.case ?? "a message of an unknown kind"} between fragments`);
    }
    return this.#state && message.case !== "hello" ? this.#handle(message, this.#state) : this.#open(message);
  }

  #open(message: EngineMessage["message"]): Received {
    if (message.case !== "hello") {
      throw new ProtocolError("the first message is not a Hello");
    }
    if (this.#state) {
      throw new ProtocolError("got a second Hello");
    }
    const hello: Hello = message.value;
    if (!hello.versions.includes(VERSION)) {
      const versions = hello.versions.join(", ") || "none";
      throw new VersionMismatch(`the engine has versions ${versions} of the protocol, this hook has ${VERSION}`);
    }
    const { build, methods, calls, callBytes, messageBytes } = this.#settings;
    this.#hello = hello;
    this.#engineHas = new Set(hello.capabilities);
    const state = this.#settings.state(hello.sessionId);
    if (!this.#engineHas.has(Capability.RESUME)) {
      state.clear();
    }
    this.#state = state;
    this.#maxMessageBytes = Number(hello.maxMessageBytes);
    if (!this.#engineHas.has(Capability.FRAGMENTS)) { // the engine accepts one piece
      this.#maxMessageBytes = Math.min(this.#maxMessageBytes || FRAGMENT_BYTES, FRAGMENT_BYTES);
    }
    const welcome = create(WelcomeSchema, {
      version: VERSION,
      buildId: build,
      capabilities: CAPABILITIES,
      methods: [...methods],
      maxMessageBytes: BigInt(messageBytes),
      window: { calls, bytes: BigInt(callBytes) },
    });
    const overhead = 1 + lengthBytes(this.#maxMessageBytes) + toBinary(WelcomeSchema, welcome).length;
    welcome.subjects = state.subjects(this.#maxMessageBytes > 0 ? this.#maxMessageBytes - overhead : Infinity);
    this.#send({ case: "welcome", value: welcome });
    return { kind: "open", session: hello.sessionId, state };
  }

  #handle(message: EngineMessage["message"], state: SessionState): Received {
    switch (message.case) {
      case "call":
        return this.#call(message.value, state);
      case "cancel":
        return this.#cancelled(message.value.callId);
      case "forget":
        message.value.subjects.forEach((subject) => state.forget(subject));
        return NOTHING;
      case "drain":
        return { kind: "drain" };
      case "triggerResult":
        return { kind: "triggerResult", result: message.value };
      case "goAway":
        return { kind: "goAway", status: message.value.status ?? create(StatusSchema) };
      case "fragment":
        throw new ProtocolError("got a fragment within fragments");
      default:
        return NOTHING;
    }
  }

  #cancelled(id: bigint): Received {
    const pending = this.#pending.get(id);
    return pending ? { kind: "cancelled", call: pending.call } : NOTHING;
  }

  /** Rebuilds a call's request. If the hook lacks a set or an object, it sends a Nack. */
  #call(message: Call, state: SessionState): Received {
    if (message.id <= this.#lastId) {
      return NOTHING;
    }
    this.#lastId = message.id;
    const method = METHODS.get(message.method);
    if (!method) {
      const text = `this hook has no method ${message.method}`;
      this.#answer(message.id, { case: "error", value: { code: UNIMPLEMENTED, message: text } });
      return NOTHING;
    }
    const set = state.apply(message);
    if (set instanceof Missing) {
      state.forget(message.subject);
      this.#answer(message.id, { case: "nack", value: set.nack() });
      return NOTHING;
    }
    const subject = message.subject === "" ? undefined : state.commit(message.subject, set);
    let request;
    try {
      request = rebuild(method, message.envelope, set);
    } catch (error) { // the set stays, because the engine assumes it
      if (!(error instanceof InvalidRequest)) {
        throw error;
      }
      this.#answer(message.id, { case: "error", value: { code: INTERNAL, message: error.message } });
      this.#evict(state);
      return NOTHING;
    }
    if (request.meta && this.#hello) { // what Hello has for all requests
      request.meta.engineVersion = this.#hello.buildId;
      request.meta.features = this.#hello.features;
    }
    const call: HookCall = {
      id: message.id, method, request, timeout: milliseconds(message.timeout), trace: message.traceContext,
    };
    this.#pending.set(call.id, { call, subject, desiredDigest: message.desiredDigest });
    if (subject) {
      subject.calls++;
      this.#evict(state);
    }
    return { kind: "call", call };
  }

  /**
   * Answers a call, and sends only changes of the desired list. A call that was answered before is
   * ignored.
   */
  answer(id: bigint, response: Response): void {
    const pending = this.#pending.get(id);
    if (!pending || !this.#state) {
      return;
    }
    const { desired, list } = compare(pending, response);
    const message = serialized({ case: "answer", value: { callId: id, outcome: { case: "desired", value: desired } } });
    if (this.#maxMessageBytes > 0 && message.length > this.#maxMessageBytes) {
      const text = `the answer has ${message.length} bytes, which is larger than max (${this.#maxMessageBytes})`;
      this.fail(id, { code: RESOURCE_EXHAUSTED, message: text });
      return;
    }
    if (pending.subject) {
      this.#state.answered(pending.subject, list);
    }
    this.#end(pending);
    this.#sendBytes(message);
    this.#evict(this.#state);
  }

  /** Answers a call with an error. A call that was answered before is ignored. */
  fail(id: bigint, status: MessageInitShape<typeof StatusSchema>): void {
    const pending = this.#pending.get(id);
    if (pending) {
      this.#end(pending);
      this.#answer(id, { case: "error", value: status });
    }
  }

  /** Asks the engine for no more calls. It does nothing before the Hello, or when called again. */
  drain(): void {
    if (this.#state && !this.#draining) {
      this.#draining = true;
      this.#send({ case: "drain", value: {} });
    }
  }

  /** Asks the engine for syncs. */
  trigger(value: MessageInitShape<typeof TriggerSchema>): void {
    this.#send({ case: "trigger", value });
  }

  /**
   * Must be called when the stream has ended. It drops all calls, so that another stream can use
   * the state.
   */
  lost(): void {
    [...this.#pending.values()].forEach((pending) => this.#end(pending));
    if (!this.#engineHas.has(Capability.RESUME)) {
      this.#state?.clear();
    }
    this.#out = [];
  }

  /** Returns serialized messages to send, in order, and removes them. */
  outbox(): Uint8Array[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #end({ call, subject }: Pending): void {
    this.#pending.delete(call.id);
    if (subject) {
      subject.calls--;
    }
  }

  #evict(state: SessionState): void {
    const subjects = state.evict();
    if (subjects.length > 0) {
      this.#send({ case: "forget", value: { subjects } });
    }
  }

  #answer(callId: bigint, outcome: NonNullable<MessageInitShape<typeof AnswerSchema>["outcome"]>): void {
    this.#send({ case: "answer", value: { callId, outcome } });
  }

  #send(message: MessageInit): void {
    this.#sendBytes(serialized(message));
  }

  /** Queues a message. A large one is cut into fragments if the engine can assemble them. */
  #sendBytes(data: Uint8Array): void {
    this.#out.push(...(this.#engineHas.has(Capability.FRAGMENTS) ? fragmentsOf(data) : [data]));
  }
}

type MessageInit = NonNullable<MessageInitShape<typeof HookMessageSchema>["message"]>;

function serialized(message: MessageInit): Uint8Array {
  return toBinary(HookMessageSchema, create(HookMessageSchema, { message }));
}

/** Returns a response as changes to the list that the engine has, and the whole list. */
function compare(
  { call, subject, desiredDigest }: Pending, response: Response,
): { desired: MessageInitShape<typeof DesiredSchema>; list: ItemList } {
  const { envelope, raws } = split(call.method, response);
  const previous = subject?.list && equals(subject.list.digest, desiredDigest) ? subject.list : undefined;
  const { list, pieces } = difference(previous, raws);
  const base = previous ? desiredDigest : new Uint8Array();
  return { desired: { base, pieces, digest: encodeDigest(list.digest), envelope }, list };
}

/** Returns a response without desired objects, and the desired objects, all serialized. */
function split({ shape, desc }: Method, response: Response): { envelope: Uint8Array; raws: Uint8Array[] } {
  const objects = response[shape.children];
  if (!objects) {
    return { envelope: toBinary(desc.output, response), raws: [] };
  }
  response[shape.children] = [];
  const envelope = toBinary(desc.output, response);
  response[shape.children] = objects;
  return { envelope, raws: objects.map((object) => toBinary(DesiredObjectSchema, object)) };
}

function read(data: Uint8Array): EngineMessage {
  try {
    return fromBinary(EngineMessageSchema, data);
  } catch (error) {
    throw new ProtocolError(`got bytes that are not a hookloop.stream.v1.EngineMessage: ${(error as Error).message}`);
  }
}

function milliseconds(timeout: Call["timeout"]): number | undefined {
  return timeout && Number(timeout.seconds) * 1000 + timeout.nanos / 1e6;
}
