/** Decoded objects, so that an object that several requests share is parsed once. */
import { type CacheMeter, objectCache } from "./cachestats.js";
import type { ObservedObject } from "./gen/hookloop/hook/v1/observed_pb.js";

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
  #newer = new WeakMap<ObservedObject, T>();
  #older = new WeakMap<ObservedObject, T>();
  readonly #meter: CacheMeter;
  /** The bytes and the number of values that were added to the newer half, and to the older one. */
  #bytes = 0;
  #entries = 0;
  #before = { bytes: 0, entries: 0 };

  constructor(limit = DECODED_BYTES, meter = objectCache) {
    this.#limit = limit;
    this.#meter = meter;
  }

  /** Returns the value of a message, which make makes if necessary. */
  get(message: ObservedObject, make: (message: ObservedObject) => T): T {
    const known = this.#newer.get(message);
    const older = known ?? this.#older.get(message);
    this.#meter.looked(older !== undefined);
    if (known) {
      return known;
    }
    const value = older ?? make(message);
    const bytes = FACTOR * message.body.length;
    if (bytes > this.#limit / 2) {
      return value;
    }
    if (this.#bytes + bytes > this.#limit / 2) {
      this.#age();
    }
    this.#newer.set(message, value);
    this.#bytes += bytes;
    this.#entries++;
    this.#meter.add(bytes, 1);
    return value;
  }

  /** Makes the newer half the older one. */
  #age(): void {
    this.#meter.add(-this.#before.bytes, -this.#before.entries);
    this.#before = { bytes: this.#bytes, entries: this.#entries };
    [this.#older, this.#newer, this.#bytes, this.#entries] = [this.#newer, new WeakMap(), 0, 0];
  }
}
