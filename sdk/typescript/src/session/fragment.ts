/** Cuts large messages into fragments, and assembles them. */
import { create, toBinary } from "@bufbuild/protobuf";
import { type Fragment, HookMessageSchema } from "../gen/hookloop/stream/v1/stream_pb.js";
import { ProtocolError } from "./error.js";

/** How much data a fragment contains at most, in bytes. Smaller messages are not cut. */
export const FRAGMENT_BYTES = 1 << 20;

/**
 * Returns how many bytes a message takes as a field in another one: a tag of one byte, the length,
 * the data.
 */
export function fieldBytes(size: number): number {
  return 1 + lengthBytes(size) + size;
}

/** Returns how many bytes a length takes. */
export function lengthBytes(size: number): number {
  return size < 1 << 7 ? 1 : size < 1 << 14 ? 2 : size < 1 << 21 ? 3 : size < 1 << 28 ? 4 : 5;
}

/** Returns a serialized HookMessage, or its fragments if it is large. */
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

/**
 * Assembles fragments. It allocates memory for data that has arrived, not for the announced total.
 */
export class Assembler {
  readonly #limit: number;
  #total = 0;
  #size = 0;
  #parts: Uint8Array[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a message is incomplete. Then only its next fragment may follow. */
  get busy(): boolean {
    return this.#parts.length > 0;
  }

  /** Adds a fragment. Returns the whole message after the last one. */
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
