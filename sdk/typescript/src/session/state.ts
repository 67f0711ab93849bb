/** The state of a session: the observed sets and the last responses of its subjects. */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type Call, type SubjectState as SubjectDigest, SubjectStateSchema,
} from "../gen/hookloop/stream/v1/stream_pb.js";
import { type CacheMeter, sessionCaches } from "../cachestats.js";
import { encodeDigest, type Hash } from "./digest.js";
import { fieldBytes } from "./fragment.js";
import type { ItemList } from "./list.js";
import { apply, type StoredObject, type Missing, type ObservedSet } from "./set.js";

/** The default limit of a session's state in bytes of objects and responses. */
export const STATE_BYTES = 128 << 20;

/** The state of one subject. */
export interface SubjectState {
  readonly subject: string;
  set: ObservedSet;
  /** The desired objects of the last response. */
  list?: ItemList;
  /** The number of running calls. A subject with running calls is not evicted. */
  calls: number;
}

/**
 * The state of one session. It survives streams: the next stream of the session continues with it.
 */
export class SessionState {
  readonly #limit: number;
  readonly #meter: CacheMeter;
  /** By subject, in the order of last use. */
  readonly #subjects = new Map<string, SubjectState>();
  readonly #objects = new Map<Hash, StoredObject>();
  /** The size of the distinct objects and of the lists. */
  #bytes = 0;

  constructor(limit = STATE_BYTES, meter = sessionCaches) {
    this.#limit = limit;
    this.#meter = meter;
  }

  /** The size of the state in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns the subjects and the digests of their sets, in reverse order of use, up to a size in
   * bytes. It forgets the other subjects; the engine sends complete sets for them.
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

  /** Returns the set of a call, without storing it. */
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

  /** Stores the last response of a subject, unless the subject was forgotten. */
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
   * Removes the least recently used subjects until the state is within its limit, and returns them.
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

  /** Counts the objects of a set, without those in slots that it shares with another set. */
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

/** The limits of sessions without a stream: their number, and the size of their states in bytes. */
const [MAX_IDLE, MAX_IDLE_BYTES] = [64, 256 << 20];

/**
 * States by session. A state belongs to one stream at a time, or waits for the session's next
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
   * Returns the state of a session, or an empty one. The caller owns it until release. If another
   * stream acquires it, revoke is called and must release it immediately. Without an ID, the
   * state is new.
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
