/** Messages that are too large for one piece. */
import { create, toBinary } from "@bufbuild/protobuf";
import { HookMessageSchema, type Fragment } from "../gen/hookloop/stream/v1/stream_pb.js";
import { ProtocolError } from "./error.js";

/** Bounds the data of a fragment; a message that is not larger travels in one piece. */
export const FRAGMENT_BYTES = 1 << 20;

/** How many bytes a message of some size takes as a field of another, with a tag of one byte and its length. */
export function fieldBytes(size: number): number {
  return 1 + lengthBytes(size) + size;
}

/** How many bytes a length takes. */
export function lengthBytes(size: number): number {
  return size < 1 << 7 ? 1 : size < 1 << 14 ? 2 : size < 1 << 21 ? 3 : size < 1 << 28 ? 4 : 5;
}

/** A serialized HookMessage as it travels: whole, or in fragments. */
export function pieces(data: Uint8Array): Uint8Array[] {
  if (data.length <= FRAGMENT_BYTES) {
    return [data];
  }
  const made: Uint8Array[] = [];
  const total = BigInt(data.length);
  for (let start = 0; start < data.length; start += FRAGMENT_BYTES) {
    const value = { index: made.length, total, data: data.subarray(start, start + FRAGMENT_BYTES) };
    made.push(toBinary(HookMessageSchema, create(HookMessageSchema, { message: { case: "fragment", value } })));
  }
  return made;
}

/** Puts fragments together. SessionState grows with the data that has come, not with what the peer says is still to come. */
export class Assembler {
  readonly #limit: number;
  #total = 0;
  #size = 0;
  #parts: Uint8Array[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Whether a message is incomplete, in which case nothing but its next fragment may come. */
  get busy(): boolean {
    return this.#parts.length > 0;
  }

  /** The message with its last fragment, nothing before that. */
  add({ index, total, data }: Fragment): Uint8Array | undefined {
    if (!this.busy) {
      this.#total = Number(total);
    }
    const next = this.#parts.length;
    const most = Math.min(FRAGMENT_BYTES, this.#total - this.#size);
    if (this.#total > this.#limit) {
      throw new ProtocolError(`a message of ${total} bytes is larger than the maximum of ${this.#limit}`);
    }
    if (index !== next || Number(total) !== this.#total) {
      throw new ProtocolError(`fragment ${index} of ${total} bytes, expected fragment ${next} of ${this.#total} bytes`);
    }
    if (data.length === 0 || data.length > most) {
      throw new ProtocolError(`fragment ${next} has ${data.length} bytes, expected 1 to ${most}`);
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
