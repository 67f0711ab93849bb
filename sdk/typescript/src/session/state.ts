/** What a hook holds of the questions of one session. */
import { create, toBinary } from "@bufbuild/protobuf";
import { HoldingSchema, type Call, type Holding } from "../gen/hookloop/stream/v1/stream_pb.js";
import { wire, type Hash } from "./digest.js";
import type { ItemList } from "./list.js";
import { fieldBytes } from "./fragment.js";
import { apply, type StoredObject, type Missing, type ObservedSet } from "./set.js";

/** How many bytes of objects and answers a memory holds unless its maker says otherwise. */
export const STATE_BYTES = 128 << 20;

/** What is held about one subject. */
export interface SubjectState {
  readonly subject: string;
  set: ObservedSet;
  /** The last answer. */
  list?: ItemList;
  /** How many calls are under way; a subject with any is not evicted. */
  calls: number;
}

/** The sets and the last answers of one session's subjects. It outlives streams: one goes on with what the stream before it left. */
export class SessionState {
  readonly #limit: number;
  /** By subject; the one used last stands last. */
  readonly #subjects = new Map<string, SubjectState>();
  readonly #objects = new Map<Hash, StoredObject>();
  /** Of the objects, each once, and of the lists. */
  #bytes = 0;

  constructor(limit = STATE_BYTES) {
    this.#limit = limit;
  }

  /** How many bytes are held. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * What the engine may build on, the subjects used last first, as far as it takes no more than some bytes of a message. The others are
   * forgotten, on both sides: the engine asks about them anew.
   */
  holdings(room: number): Holding[] {
    const made: Holding[] = [];
    let size = 0;
    for (const { subject, set } of [...this.#subjects.values()].reverse()) {
      const holding = create(HoldingSchema, { subject, digest: wire(set.digest) });
      const bytes = fieldBytes(toBinary(HoldingSchema, holding).length);
      if (size + bytes > room) {
        this.forget(subject);
        continue;
      }
      size += bytes;
      made.push(holding);
    }
    return made;
  }

  /** The set that a call describes; it is not remembered by that. */
  apply(call: Call): ObservedSet | Missing {
    return apply(this.#subjects.get(call.subject)?.set, call, (hash) => this.#objects.get(hash));
  }

  /** Makes a set the one that is held for a subject. */
  commit(subject: string, next: ObservedSet): SubjectState {
    const known = this.#subjects.get(subject);
    const before = known?.set;
    const about = known ?? { subject, set: next, calls: 0 };
    about.set = next;
    this.#subjects.delete(subject);
    this.#subjects.set(subject, about);
    this.#use(next, before, +1);
    this.#use(before, next, -1);
    return about;
  }

  /** Makes a list the last answer about a subject, if the subject is still held. */
  answered(about: SubjectState, last: ItemList): void {
    if (this.#subjects.get(about.subject) === about) {
      this.#bytes += last.size - (about.list?.size ?? 0);
      about.list = last;
    }
  }

  /** Drops a subject. */
  forget(subject: string): void {
    const about = this.#subjects.get(subject);
    if (about) {
      this.#use(about.set, undefined, -1);
      this.#bytes -= about.list?.size ?? 0;
      this.#subjects.delete(subject);
    }
  }

  /** Forgets what was used longest ago until the limit is kept, and names it. Subjects with calls under way stay. */
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

  /** Counts the objects of a set, except those in slots that it shares with another. */
  #use(set: ObservedSet | undefined, other: ObservedSet | undefined, by: number): void {
    for (const [slot, placed] of set?.slots ?? []) {
      if (other?.slots.get(slot) !== placed) {
        placed.objects.forEach((object) => this.#count(object, by));
      }
    }
  }

  #count(object: StoredObject, by: number): void {
    if (object.uses === 0) {
      this.#objects.set(object.hash, object);
      this.#bytes += object.size;
    }
    object.uses += by;
    if (object.uses === 0) {
      this.#objects.delete(object.hash);
      this.#bytes -= object.size;
    }
  }
}

/** How many sessions' memories are kept while they have no stream. */
const IDLE = 4;

/** SessionStates by session. One that has a stream is that stream's alone; the others wait for the next stream of the same session. */
export class SessionStates {
  readonly #limit: number | undefined;
  /** By session id; the one left last stands last. */
  readonly #idle = new Map<string, SessionState>();
  /** By session id: has the stream leave the memory. */
  readonly #used = new Map<string, () => void>();

  constructor(limit?: number) {
    this.#limit = limit;
  }

  /**
   * The memory that an earlier stream of the session left, or an empty one. It belongs to the caller until it is left; surrender, which has
   * to leave it at once, is called when another stream takes the same. Without an id a session has a memory of its own.
   */
  take(session: string, surrender: () => void): SessionState {
    if (session === "") {
      return new SessionState(this.#limit);
    }
    this.#used.get(session)?.();
    const memory = this.#idle.get(session) ?? new SessionState(this.#limit);
    this.#idle.delete(session);
    this.#used.set(session, surrender);
    return memory;
  }

  /** Keeps a memory for the next stream of the session. */
  leave(session: string, memory: SessionState): void {
    if (!this.#used.delete(session)) {
      return;
    }
    this.#idle.set(session, memory);
    for (const oldest of this.#idle.keys()) {
      if (this.#idle.size <= IDLE) {
        return;
      }
      this.#idle.delete(oldest);
    }
  }
}
