/** Serves streams that the engine opens (hookloop.stream.v1.HookStreamService). */
import type { ServerDuplexStream, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import type { Catalog } from "./catalog.js";
import { HookStreamService } from "./gen/hookloop/stream/v1/stream_pb.js";
import { SessionStates } from "./session/state.js";
import { HookStream } from "./stream.js";
import type { Trigger } from "./trigger.js";

/** Passes stream messages through gRPC as bytes, because the session encodes and decodes them. */
export const BYTES = {
  requestStream: true,
  responseStream: true,
  requestSerialize: (data: Uint8Array) => asBuffer(data),
  requestDeserialize: (data: Buffer) => data,
  responseSerialize: (data: Uint8Array) => asBuffer(data),
  responseDeserialize: (data: Buffer) => data,
};

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** Keeps a server's open streams. */
export class StreamServer {
  readonly definition: ServiceDefinition = { connect: { ...BYTES, path: `/${HookStreamService.typeName}/Connect` } };
  readonly #catalog: Catalog;
  readonly #build: string;
  readonly #states = new SessionStates();
  readonly #open = new Set<HookStream>();

  constructor(catalog: Catalog, build: string) {
    this.#catalog = catalog;
    this.#build = build;
  }

  /** Returns the service's methods. */
  implementation(): UntypedServiceImplementation {
    return { connect: (call: ServerDuplexStream<Buffer, Uint8Array>) => this.#connect(call) };
  }

  /** Asks all engines for no more calls. Each stream ends when its running calls are answered. */
  drain(): void {
    this.#open.forEach((stream) => stream.drain());
  }

  /**
   * Asks Hookloop for syncs, over every open stream. Resolves to how many parents will be synced.
   * Each stream belongs to one controller, so it rejects only if all streams refuse.
   */
  async trigger(trigger: Trigger): Promise<number> {
    const open = [...this.#open].filter(({ session }) => session !== undefined);
    if (open.length === 0) {
      throw new Error("trigger: no stream is open");
    }
    const results = await Promise.allSettled(open.map((stream) => stream.trigger(trigger)));
    const accepted = results.filter((result) => result.status === "fulfilled");
    if (accepted.length === 0) {
      throw (results[0] as PromiseRejectedResult).reason;
    }
    return accepted.reduce((sum, { value }) => sum + value, 0);
  }

  #connect(call: ServerDuplexStream<Buffer, Uint8Array>): void {
    const stream = new HookStream(this.#catalog, this.#states, {
      send: (message) => call.write(message),
      end: (failure) =>
        (failure ? call.emit("error", { code: failure.code, details: failure.message }) : call.end()),
    }, { build: this.#build });
    this.#open.add(stream);
    const closed = (): void => {
      this.#open.delete(stream);
      stream.closed();
    };
    call.on("data", (data: Buffer) => stream.receive(data));
    call.on("end", () => stream.closing());
    call.on("cancelled", closed);
    call.on("close", closed);
  }
}
