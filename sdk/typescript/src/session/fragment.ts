/** Fragments of large messages. */
import { create, toBinary } from "@bufbuild/protobuf";
import { type Fragment, HookMessageSchema } from "../gen/hookloop/stream/v1/stream_pb.js";
import { ProtocolError } from "./error.js";

/** The largest data of a fragment in bytes. A smaller message is not fragmented. */
export const FRAGMENT_BYTES = 1 << 20;

/**
 * Returns the bytes of a message as a field of another one: a tag of one byte, the length, the
 * data.
 */
export function fieldBytes(size: number): number {
  return 1 + lengthBytes(size) + size;
}

/** Returns the bytes of a length prefix. */
export function lengthBytes(size: number): number {
  return size < 1 << 7 ? 1 : size < 1 << 14 ? 2 : size < 1 << 21 ? 3 : size < 1 << 28 ? 4 : 5;
}

/** Returns a serialized HookMessage itself, or its fragments. */
export function fragmentsOf(data: Uint8Array): Uint8Array[] {
  if (data.length <= FRAGMENT_BYTES) {
    return [data];
  }
  const fragments: Uint8Array[] = [];
  const totalBytes = BigInt(data.length);
  for (let start = 0; start < data.length; start += FRAGMENT_BYTES) {
    const value = { index: fragments.length, totalBytes, data: data.subarray(start, start + FRAGMENT_BYTES) };
    const message = create(HookMessageSchema, { message: { case: "fragment", value } });
    fragments.push(toBinary(HookMessageSchema, message));
  }
  return fragments;
}

/** Assembles fragments. It allocates memory for received data only, not for the announced total. */
export class Assembler {
  readonly #limit: number;
  #total = 0;
  #size = 0;
  #parts: Uint8Array[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Reports whether a message is incomplete. Then only its next fragment is valid. */
  get busy(): boolean {
    return this.#parts.length > 0;
  }

  /** Adds a fragment. Returns the whole message with its last fragment. */
  add({ index, totalBytes, data }: Fragment): Uint8Array | undefined {
    if (!this.busy) {
      this.#total = Number(totalBytes);
    }
    const next = this.#parts.length;
    const maximum = Math.min(FRAGMENT_BYTES, this.#total - this.#size);
    if (this.#total > this.#limit) {
      throw new ProtocolError(`a message of ${totalBytes} bytes is larger than the maximum of ${this.#limit}`);
    }
    if (index !== next || Number(totalBytes) !== this.#total) {
      const expected = `expected fragment ${next} of ${this.#total} bytes`;
      throw new ProtocolError(`fragment ${index} of ${totalBytes} bytes, ${expected}`);
    }
    if (data.length === 0 || data.length > maximum) {
      throw new ProtocolError(`fragment ${next} has ${data.length} bytes, expected 1 to ${maximum}`);
    }
    this.#parts.push(data);
    this.#size += data.length;
    if (this.#size < this.#total) {
      return undefined;
    }
    const whole = Buffer.concat(this.#parts);
    [this.#parts, this.#size] = [[], 0];
    return whole;
  }
}
