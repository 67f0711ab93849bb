/** Serves the hook's side of streams (hookloop.stream.v1.HookStreamService), which the engine opens. */
import type { ServerDuplexStream, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { HookStream } from "./stream.js";
import { HookStreamService } from "./gen/hookloop/stream/v1/stream_pb.js";
import type { Hook } from "./hooks.js";
import { SessionStates } from "./session/state.js";
import type { Trigger } from "./trigger.js";

/** Messages of streams are bytes for gRPC: the session reads and writes them. */
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

/** The streams that a server has open. */
export class StreamServer {
  readonly definition: ServiceDefinition = { connect: { ...BYTES, path: `/${HookStreamService.typeName}/Connect` } };
  readonly #hooks: readonly Hook[];
  readonly #build: string;
  readonly #memories = new SessionStates();
  readonly #open = new Set<HookStream>();

  constructor(hooks: readonly Hook[], build: string) {
    this.#hooks = hooks;
    this.#build = build;
  }

  /** The methods. */
  implementation(): UntypedServiceImplementation {
    return { connect: (call: ServerDuplexStream<Buffer, Uint8Array>) => this.#connect(call) };
  }

  /** Asks for no more questions; each stream ends when those under way are answered. */
  drain(): void {
    this.#open.forEach((conversation) => conversation.drain());
  }

  /**
   * Asks every engine that has a stream open for syncs, and resolves to how many parents there will be. Each stream serves one controller:
   * that some say no, while others do not, is no failure.
   */
  async trigger(trigger: Trigger): Promise<number> {
    const open = [...this.#open].filter(({ session }) => session !== undefined);
    if (open.length === 0) {
      throw new Error("trigger: no stream is open");
    }
    const answers = await Promise.allSettled(open.map((conversation) => conversation.trigger(trigger)));
    const taken = answers.filter((answer) => answer.status === "fulfilled");
    if (taken.length === 0) {
      throw (answers[0] as PromiseRejectedResult).reason;
    }
    return taken.reduce((sum, { value }) => sum + value, 0);
  }

  #connect(call: ServerDuplexStream<Buffer, Uint8Array>): void {
    const conversation = new HookStream(this.#hooks, this.#memories, {
      send: (message) => call.write(message),
      end: (failure) => (failure ? call.emit("error", { code: failure.code, details: failure.message }) : call.end()),
    }, { build: this.#build });
    this.#open.add(conversation);
    const closed = (): void => {
      this.#open.delete(conversation);
      conversation.closed();
    };
    call.on("data", (data: Buffer) => conversation.receive(data));
    call.on("end", () => conversation.closing());
    call.on("cancelled", closed);
    call.on("close", closed);
  }
}
