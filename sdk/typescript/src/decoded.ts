/** Decoded objects, so that an object that several requests share is parsed once. */
import type { Object$ } from "./gen/hookloop/hook/v1/object_pb.js";

/** The approximate memory of a parsed object, as a multiple of its JSON. */
const FACTOR = 4;

/** The default limit of the parsed objects of a process, in bytes of approximate memory. */
export const DECODED_BYTES = 256 << 20;

/**
 * Values by message, of at most a number of bytes. A value is dropped with its message, or after a
 * while without use: once the newer half is full, it becomes the older half, and the older one is
 * dropped. A dropped value is made again. So values that are used in turns are made once if half of
 * the limit has room for all of them. A value that is larger than that is made each time.
 */
export class Decoded<T extends object> {
  readonly #limit: number;
  #newer = new WeakMap<Object$, T>();
  #older = new WeakMap<Object$, T>();
  /** The bytes that were added to the newer half. */
  #bytes = 0;

  constructor(limit = DECODED_BYTES) {
    this.#limit = limit;
  }

  /** Returns the value of a message, which make makes if necessary. */
  get(message: Object$, make: (message: Object$) => T): T {
    const known = this.#newer.get(message);
    if (known) {
      return known;
    }
    const value = this.#older.get(message) ?? make(message);
    const bytes = FACTOR * message.body.length;
    if (bytes > this.#limit / 2) {
      return value;
    }
    if (this.#bytes + bytes > this.#limit / 2) {
      [this.#older, this.#newer, this.#bytes] = [this.#newer, new WeakMap(), 0];
    }
    this.#newer.set(message, value);
    this.#bytes += bytes;
    return value;
  }
}
