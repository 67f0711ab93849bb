/**
 * The hook's side of one stream (package hookloop.stream.v1 of proto): questions are put together from what changed, and of answers only
 * what is new is sent.
 *
 * It is pure: no connection, no clock, and it never waits. Messages go in, messages and work come out:
 *
 *     receive ─→ Hook ─→ work
 *      outbox ←─ Hook ←─ answer, refuse
 *
 * Loss is safe, because sets and lists are named by the digests of their content. The engine believes that the hook has what it sent; where
 * that is not so the digest says it, the hook asks again (Nack), and the engine sends everything.
 */
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import type { Method, Question, Response } from "../codec.js";
import { InvalidRequest } from "../errors.js";
import { DesiredObjectSchema } from "../gen/hookloop/hook/v1/object_pb.js";
import {
  EngineMessageSchema, HookMessageSchema, WelcomeSchema, type AnswerSchema, type AttachSchema, type Call, type DesiredSchema, type EngineMessage,
  type Hello, type Status, type StatusSchema, type Triggered, type TriggerSchema,
} from "../gen/hookloop/stream/v1/stream_pb.js";
import { is, wire } from "./digest.js";
import { ProtocolError, VersionMismatch } from "./error.js";
import { Assembler, lengthBytes, pieces } from "./fragment.js";
import { difference, type ItemList } from "./list.js";
import type { SessionState, SubjectState } from "./state.js";
import { METHODS, rebuild } from "./method.js";
import { Missing } from "./set.js";

/** The version of the protocol. */
export const VERSION = 1;
/** Of google.rpc.Code; the machine has no other use for gRPC. */
const [RESOURCE_EXHAUSTED, UNIMPLEMENTED, INTERNAL] = [8, 12, 13];

/** How a hook's side behaves. */
export interface SessionSettings {
  /** Names the hook's build; a change makes the engine ask about every parent again. */
  build?: string;
  /** The full names of the methods that the hook answers. */
  methods?: readonly string[];
  /** Bound what may be under way: 64 calls and 64 MiB of them where they are left out. */
  calls?: number;
  callBytes?: number;
  /** Bounds a message of the engine; 64 MiB where it is left out. */
  messageBytes?: number;
  /** Finds what is held for a session id. It is called once, when the Hello comes. */
  memory: (session: string) => SessionState;
}

/** One question. Its messages are shared with other questions: they are not changed by anyone. */
export interface Work {
  readonly id: bigint;
  readonly method: Method;
  readonly question: Question;
  /** How long the answer may take, in milliseconds; undefined says nothing. */
  readonly timeout: number | undefined;
  readonly trace: Readonly<Record<string, string>>;
}

/** What a message of the engine leads to. */
export type Received =
  | { readonly kind: "nothing" }
  /** The session has begun, under the id with which it goes on after a loss. */
  | { readonly kind: "open"; readonly session: string; readonly memory: SessionState }
  /** A question to answer, by answer or refuse. */
  | { readonly kind: "work"; readonly work: Work }
  /** An answer is no longer wanted. It is given still. */
  | { readonly kind: "cancelled"; readonly work: Work }
  /** No more work comes: the stream may end when all is answered. */
  | { readonly kind: "drain" }
  | { readonly kind: "triggered"; readonly triggered: Triggered }
  /** Why the engine is about to end the stream. */
  | { readonly kind: "farewell"; readonly status: Status };

const NOTHING: Received = { kind: "nothing" };

/** What is known of work under way. */
interface Pending {
  readonly work: Work;
  /** Undefined: nothing is remembered. */
  readonly about: SubjectState | undefined;
  readonly holds: Uint8Array;
}

/** The hook's side of one stream. */
export class Hook {
  readonly #settings: Required<SessionSettings>;
  readonly #pending = new Map<bigint, Pending>();
  readonly #in: Assembler;
  #memory: SessionState | undefined; // undefined before the Hello
  #accepts = 0; // the largest message that the engine takes; 0 says nothing
  #last = 0n; // the id of the last call
  #out: Uint8Array[] = [];
  #draining = false;

  constructor(settings: SessionSettings) {
    this.#settings = { build: "", methods: [], calls: 64, callBytes: 64 << 20, messageBytes: 64 << 20, ...settings };
    this.#in = new Assembler(this.#settings.messageBytes);
  }

  /** Whether there is work to answer. */
  get busy(): boolean {
    return this.#pending.size > 0;
  }

  /** Says who dials in; it is the first message of a stream that the hook opens. */
  attach(value: MessageInitShape<typeof AttachSchema>): void {
    this.#send({ case: "attach", value });
  }

  /** Takes a message of the engine. Where a ProtocolError is thrown, the stream is of no more use. */
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
    return this.#memory && message.case !== "hello" ? this.#take(message, this.#memory) : this.#open(message);
  }

  #open(message: EngineMessage["message"]): Received {
    if (message.case !== "hello") {
      throw new ProtocolError("the stream begins without a Hello");
    }
    if (this.#memory) {
      throw new ProtocolError("got a second Hello");
    }
    const hello: Hello = message.value;
    if (!hello.versions.includes(VERSION)) {
      throw new VersionMismatch(`the engine speaks versions ${hello.versions.join(", ") || "none"} of the protocol, this hook speaks ${VERSION}`);
    }
    const { build, methods, calls, callBytes, messageBytes } = this.#settings;
    const memory = this.#settings.memory(hello.sessionId);
    this.#memory = memory;
    this.#accepts = Number(hello.maxMessageBytes);
    const welcome = create(WelcomeSchema, {
      version: VERSION, buildId: build, capabilities: [...methods], maxMessageBytes: BigInt(messageBytes), window: { calls, bytes: BigInt(callBytes) },
    });
    const around = 1 + lengthBytes(this.#accepts) + toBinary(WelcomeSchema, welcome).length;
    welcome.holdings = memory.holdings(this.#accepts > 0 ? this.#accepts - around : Infinity);
    this.#send({ case: "welcome", value: welcome });
    return { kind: "open", session: hello.sessionId, memory };
  }

  #take(message: EngineMessage["message"], memory: SessionState): Received {
    switch (message.case) {
      case "call":
        return this.#call(message.value, memory);
      case "cancel":
        return this.#cancelled(message.value.callId);
      case "forget":
        message.value.subjects.forEach((subject) => memory.forget(subject));
        return NOTHING;
      case "drain":
        return { kind: "drain" };
      case "triggered":
        return { kind: "triggered", triggered: message.value };
      case "farewell":
        return { kind: "farewell", status: message.value };
      case "fragment":
        throw new ProtocolError("got a fragment within fragments");
      default:
        return NOTHING;
    }
  }

  #cancelled(id: bigint): Received {
    const pending = this.#pending.get(id);
    return pending ? { kind: "cancelled", work: pending.work } : NOTHING;
  }

  /** Puts a question together. What is missing for that is asked for by a Nack. */
  #call(call: Call, memory: SessionState): Received {
    if (call.id <= this.#last) {
      return NOTHING;
    }
    this.#last = call.id;
    const method = METHODS.get(call.method);
    if (!method) {
      this.#answer(call.id, { case: "error", value: { code: UNIMPLEMENTED, message: `this hook does not know the method ${call.method}` } });
      return NOTHING;
    }
    const set = memory.apply(call);
    if (set instanceof Missing) {
      memory.forget(call.subject);
      this.#answer(call.id, { case: "nack", value: { reason: set.reason, message: set.message } });
      return NOTHING;
    }
    const about = call.subject === "" ? undefined : memory.commit(call.subject, set);
    let question;
    try {
      question = rebuild(method, call.request, set);
    } catch (error) { // the set is held all the same
      if (!(error instanceof InvalidRequest)) {
        throw error;
      }
      this.#answer(call.id, { case: "error", value: { code: INTERNAL, message: error.message } });
      this.#evict(memory);
      return NOTHING;
    }
    const work = { id: call.id, method, question, timeout: milliseconds(call.timeout), trace: call.traceContext };
    this.#pending.set(work.id, { work, about, holds: call.holds });
    if (about) {
      about.calls++;
      this.#evict(memory);
    }
    return { kind: "work", work };
  }

  /** Answers work, of which only what is new is sent. Work that is answered already is left alone. */
  answer(id: bigint, response: Response): void {
    const pending = this.#pending.get(id);
    if (!pending || !this.#memory) {
      return;
    }
    const { desired, list } = compare(pending, response);
    const message = serialized({ case: "answer", value: { callId: id, outcome: { case: "desired", value: desired } } });
    if (this.#accepts > 0 && message.length > this.#accepts) {
      this.refuse(id, { code: RESOURCE_EXHAUSTED, message: `the answer has ${message.length} bytes, which is larger than max (${this.#accepts})` });
      return;
    }
    if (pending.about) {
      this.#memory.answered(pending.about, list);
    }
    this.#end(pending);
    this.#out.push(...pieces(message));
    this.#evict(this.#memory);
  }

  /** Answers work with a failure. Work that is answered already is left alone. */
  refuse(id: bigint, status: MessageInitShape<typeof StatusSchema>): void {
    const pending = this.#pending.get(id);
    if (pending) {
      this.#end(pending);
      this.#answer(id, { case: "error", value: status });
    }
  }

  /** Asks for no more work. It does nothing before the Hello, or the second time. */
  drain(): void {
    if (this.#memory && !this.#draining) {
      this.#draining = true;
      this.#send({ case: "drain", value: {} });
    }
  }

  /** Asks for syncs. */
  trigger(value: MessageInitShape<typeof TriggerSchema>): void {
    this.#send({ case: "trigger", value });
  }

  /** Is to be called when the stream has ended: it gives up all work, so that the memory may go to another stream. */
  lost(): void {
    [...this.#pending.values()].forEach((pending) => this.#end(pending));
    this.#out = [];
  }

  /** Takes the messages to send, serialized, in order. */
  outbox(): Uint8Array[] {
    const out = this.#out;
    this.#out = [];
    return out;
  }

  #end({ work, about }: Pending): void {
    this.#pending.delete(work.id);
    if (about) {
      about.calls--;
    }
  }

  #evict(memory: SessionState): void {
    const subjects = memory.evict();
    if (subjects.length > 0) {
      this.#send({ case: "forget", value: { subjects } });
    }
  }

  #answer(callId: bigint, outcome: NonNullable<MessageInitShape<typeof AnswerSchema>["outcome"]>): void {
    this.#send({ case: "answer", value: { callId, outcome } });
  }

  #send(message: MessageInit): void {
    this.#out.push(...pieces(serialized(message)));
  }
}

type MessageInit = NonNullable<MessageInitShape<typeof HookMessageSchema>["message"]>;

function serialized(message: MessageInit): Uint8Array {
  return toBinary(HookMessageSchema, create(HookMessageSchema, { message }));
}

/** An answer's difference from the list that the engine holds, and its whole list. */
function compare({ work, about, holds }: Pending, response: Response): { desired: MessageInitShape<typeof DesiredSchema>; list: ItemList } {
  const { shell, raws } = split(work.method, response);
  const before = about?.list && is(about.list.digest, holds) ? about.list : undefined;
  const { list, pieces: changes } = difference(before, raws);
  return { desired: { base: before ? holds : new Uint8Array(), pieces: changes, digest: wire(list.digest), response: shell }, list };
}

/** A response without its desired objects, and these, serialized. The response is as before afterwards. */
function split({ shape, desc }: Method, response: Response): { shell: Uint8Array; raws: Uint8Array[] } {
  const objects = response[shape.children];
  if (!objects) {
    return { shell: toBinary(desc.output, response), raws: [] };
  }
  response[shape.children] = [];
  const shell = toBinary(desc.output, response);
  response[shape.children] = objects;
  return { shell, raws: objects.map((object) => toBinary(DesiredObjectSchema, object)) };
}

function read(data: Uint8Array): EngineMessage {
  try {
    return fromBinary(EngineMessageSchema, data);
  } catch (error) {
    throw new ProtocolError(`got bytes that are no hookloop.stream.v1.EngineMessage: ${(error as Error).message}`);
  }
}

function milliseconds(timeout: Call["timeout"]): number | undefined {
  return timeout && Number(timeout.seconds) * 1000 + timeout.nanos / 1e6;
}
