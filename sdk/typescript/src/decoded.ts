/** Caches parsed objects, so that an object in several requests is parsed once. */
import { type CacheMeter, objectCache } from "./cachestats.js";
import type { ObservedObject } from "./gen/hookloop/hook/v1/observed_pb.js";

/** How much memory a parsed object takes, as a multiple of its JSON. This is an estimate. */
const FACTOR = 4;

/** Limits the memory for parsed objects in a process, in bytes. */
export const DECODED_BYTES = 256 << 20;

/**
 * Caches values by message, up to a limit in bytes. A value is dropped with its message, or when it
 * was not used for a while: values are added to a newer half; when that is full, it becomes the
 * older half, and the previous older half is dropped. A dropped value is simply made again. Values
 * that are used in turns are made once as long as they fit into half of the limit; a single value
 * that is larger is made each time.
 */
export class Decoded<T extends object> {
  readonly #limit: number;
  #newer = new WeakMap<ObservedObject, T>();
  #older = new WeakMap<ObservedObject, T>();
  readonly #meter: CacheMeter;
  /** Bytes and number of the values that were added to the newer half, and to the older one. */
  #bytes = 0;
  #entries = 0;
  #before = { bytes: 0, entries: 0 };

  constructor(limit = DECODED_BYTES, meter = objectCache) {
    this.#limit = limit;
    this.#meter = meter;
  }

  /** Returns the value for a message, and calls make if it is not cached. */
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

  /** Turns the newer half into the older half. */
  #age(): void {
    this.#meter.add(-this.#before.bytes, -this.#before.entries);
    this.#before = { bytes: this.#bytes, entries: this.#entries };
    [this.#older, this.#newer, this.#bytes, this.#entries] = [this.#newer, new WeakMap(), 0, 0];
  }
}
