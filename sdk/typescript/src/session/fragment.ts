/** Messages that are too large for one piece. */
import { create, toBinary } from "@bufbuild/protobuf";
import { HookMessageSchema, type Fragment, type HookMessage } from "../gen/hookloop/stream/v1/stream_pb.js";
import { ProtocolError } from "./error.js";

/** Bounds the data of a fragment; a message that is not larger travels in one piece. */
export const FRAGMENT_BYTES = 1 << 20;

/** A message as it travels: whole, or in fragments. */
export function pieces(message: HookMessage): Uint8Array[] {
  const data = toBinary(HookMessageSchema, message);
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

/** Puts fragments together. Memory grows with the data that has come, not with what the peer says is still to come. */
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
