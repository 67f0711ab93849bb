/** Remembers sessions: the observed sets and last responses of each subject. */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Call, type SubjectState as SubjectDigest, SubjectStateSchema,
} from "../gen/hookloop/stream/v1/stream_pb.js";
import { type CacheMeter, sessionCaches } from "../cachestats.js";
import { encodeDigest, type Hash } from "./digest.js";
import { fieldBytes } from "./fragment.js";
import type { ItemList } from "./list.js";
import { apply, type StoredObject, type Missing, type ObservedSet } from "./set.js";

/** Limits a session's state by default, in bytes of objects and responses. */
export const STATE_BYTES = 128 << 20;

/** What is remembered about one subject. */
export interface SubjectState {
  readonly subject: string;
  set: ObservedSet;
  /** Desired objects in the last response. */
  list?: ItemList;
  /** How many calls are running. A subject with running calls is not evicted. */
  calls: number;
}

/**
 * What is remembered about one session. It is kept when a stream ends, and the session's next
 * stream continues with it.
 */
export class SessionState {
  readonly #limit: number;
  readonly #meter: CacheMeter;
  /** By subject, in the order of last use. */
  readonly #subjects = new Map<string, SubjectState>();
  readonly #objects = new Map<Hash, StoredObject>();
  /** Bytes of distinct objects and lists. */
  #bytes = 0;

  constructor(limit = STATE_BYTES, meter = sessionCaches) {
    this.#limit = limit;
    this.#meter = meter;
  }

  /** How many bytes the state takes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Lists subjects and the digests of their sets, last used first, as many as fit into a size in
   * bytes. It forgets the others; the engine will send whole sets for them.
   */
  subjects(limit: number): SubjectDigest[] {
    const subjects: SubjectDigest[] = [];
    let size = 0;
    for (const { subject, set } of [...this.#subjects.values()].reverse()) {
      const held = create(SubjectStateSchema, { subject, digest: encodeDigest(set.digest) });
      const bytes = fieldBytes(toBinary(SubjectStateSchema, held).length);
      if (size + bytes > limit) {
        this.forget(subject);
        continue;
      }
      size += bytes;
      subjects.push(held);
    }
    return subjects;
  }

  /** Returns the set that a call describes, without storing it. */
  apply(call: Call): ObservedSet | Missing {
    return apply(this.#subjects.get(call.subject)?.set, call, (hash) => this.#objects.get(hash));
  }

  /** Stores a set for a subject. */
  commit(subject: string, next: ObservedSet): SubjectState {
    const known = this.#subjects.get(subject);
    this.#meter.looked(known !== undefined);
    this.#meter.add(0, known ? 0 : 1);
    const previous = known?.set;
    const state = known ?? { subject, set: next, calls: 0 };
    state.set = next;
    this.#subjects.delete(subject);
    this.#subjects.set(subject, state);
    this.#use(next, previous, +1);
    this.#use(previous, next, -1);
    return state;
  }

  /** Stores the last response about a subject, unless the subject was forgotten. */
  answered(state: SubjectState, last: ItemList): void {
    if (this.#subjects.get(state.subject) === state) {
      this.#grow(last.size - (state.list?.size ?? 0));
      state.list = last;
    }
  }

  /** Removes a subject. */
  forget(subject: string): void {
    const state = this.#subjects.get(subject);
    if (state) {
      this.#use(state.set, undefined, -1);
      this.#grow(-(state.list?.size ?? 0));
      this.#meter.add(0, -1);
      this.#subjects.delete(subject);
    }
  }

  /** Removes all subjects. */
  clear(): void {
    [...this.#subjects.keys()].forEach((subject) => this.forget(subject));
  }

  /**
   * Removes subjects, least recently used first, until the state is within its limit, and returns
   * them.
   */
  evict(): string[] {
    const names: string[] = [];
    for (const { subject, calls } of this.#subjects.values()) {
      if (this.#bytes <= this.#limit) {
        break;
      }
      if (calls === 0) {
        this.forget(subject);
        names.push(subject);
      }
    }
    return names;
  }

  /** Counts the objects in a set, except those in slots that it shares with another set. */
  #use(set: ObservedSet | undefined, other: ObservedSet | undefined, by: number): void {
    for (const [slot, content] of set?.slots ?? []) {
      if (other?.slots.get(slot) !== content) {
        content.objects.forEach((object) => this.#count(object, by));
      }
    }
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    this.#meter.add(bytes, 0);
  }

  #count(object: StoredObject, by: number): void {
    if (object.uses === 0) {
      this.#objects.set(object.hash, object);
      this.#grow(object.size);
    }
    object.uses += by;
    if (object.uses === 0) {
      this.#objects.delete(object.hash);
      this.#grow(-object.size);
    }
  }
}

/** Limits sessions that have no stream: how many, and how many bytes their states take. */
const [MAX_IDLE, MAX_IDLE_BYTES] = [64, 256 << 20];

/**
 * Keeps states by session. A state belongs to one stream at a time, or waits for the session's next
 * stream.
 */
export class SessionStates {
  readonly #limit: number | undefined;
  readonly #meter: CacheMeter;
  /** By session ID, in the order of release. */
  readonly #idle = new Map<string, SessionState>();
  /** Callbacks by session ID. Each ends a stream, which releases the state. */
  readonly #used = new Map<string, () => void>();

  constructor(limit?: number, meter = sessionCaches) {
    this.#limit = limit;
    this.#meter = meter;
  }

  /**
   * Returns a session's state, or an empty one. It belongs to the caller until release. If another
   * stream acquires it, revoke is called and must release it at once. Without an ID, the state is
   * new.
   */
  acquire(session: string, revoke: () => void): SessionState {
    if (session === "") {
      return new SessionState(this.#limit, this.#meter);
    }
    this.#used.get(session)?.();
    const state = this.#idle.get(session) ?? new SessionState(this.#limit, this.#meter);
    this.#idle.delete(session);
    this.#used.set(session, revoke);
    return state;
  }

  /** Keeps a state for the next stream of the session. */
  release(session: string, state: SessionState): void {
    if (session === "") {
      state.clear();
    }
    if (!this.#used.delete(session)) {
      return;
    }
    this.#idle.set(session, state);
    let bytes = [...this.#idle.values()].reduce((sum, idle) => sum + idle.bytes, 0);
    for (const [oldest, idle] of this.#idle) {
      if (this.#idle.size <= MAX_IDLE && bytes <= MAX_IDLE_BYTES) {
        return;
      }
      this.#idle.delete(oldest);
      bytes -= idle.bytes;
      idle.clear();
    }
  }
}
