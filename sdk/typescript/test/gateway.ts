/** A gateway for tests. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Server as GrpcServer, ServerCredentials, status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  GatewayService, TriggerRequestSchema, TriggerResponseSchema,
} from "../src/gen/hookloop/stream/v1/gateway_pb.js";
import { BYTES } from "../src/streamserver.js";
import { Engine } from "./engine.js";
import { Line, type Sent } from "./line.js";

/** A gateway in a test. */
export class Gateway {
  readonly #server = new GrpcServer();
  readonly #lines: Line[] = [];
  readonly tokens: unknown[] = [];
  #wake: () => void = () => undefined;
  port = 0;
  /** Statuses for the next attempts. */
  refusals: { code: Code; details: string }[] = [];

  constructor(readonly engine: Engine) {}

  async start(cert: string, key: string): Promise<void> {
    const attachMethod = { path: `/${GatewayService.typeName}/Attach`, ...BYTES };
    const triggerMethod = {
      path: `/${GatewayService.typeName}/Trigger`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (_: unknown) => Buffer.alloc(0),
      requestDeserialize: (data: Buffer) => fromBinary(TriggerRequestSchema, data),
      responseSerialize: (value: number) =>
        Buffer.from(toBinary(TriggerResponseSchema, create(TriggerResponseSchema, { parents: value }))),
      responseDeserialize: () => 0,
    };
    this.#server.addService(
      { attach: attachMethod, trigger: triggerMethod },
      {
        attach: (call: ServerDuplexStream<Buffer, Uint8Array>) => this.#attach(call),
        trigger: (call: any, done: any) =>
          call.request.worker === "w"
            ? done(null, 7)
            : done({ code: Code.PERMISSION_DENIED, details: `may not serve ${call.request.worker}` }),
      },
    );
    const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
    this.port = await new Promise((resolve, reject) =>
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createSsl(null, [pair]), (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    );
  }

  #attach(call: ServerDuplexStream<Buffer, Uint8Array>): void {
    this.tokens.push(call.metadata.get("authorization")[0]);
    const refusal = this.refusals.shift();
    if (refusal) {
      call.emit("error", refusal);
      return;
    }
    this.#lines.push(new Line(this.engine, call));
    this.#wake();
  }

  /** Resolves to the next stream and its Attach message. */
  async accept(): Promise<{ line: Line; attached: Extract<Sent, { case: "attach" }>["value"] }> {
    while (this.#lines.length === 0) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const line = this.#lines.shift()!;
    return { line, attached: await line.next("attach") };
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}
