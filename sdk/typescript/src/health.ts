/** The standard health service (grpc.health.v1): whether the server takes questions. */
import { status as Code, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { healthService, healthStatus } from "./wellknown.js";

export const SERVING = 1;
export const NOT_SERVING = 2;

const codec = {
  requestStream: false,
  requestSerialize: () => Buffer.alloc(0), // only a client would use it
  requestDeserialize: (data: Buffer) => ({ service: healthService(data) }),
  responseSerialize: (value: number) => Buffer.from(healthStatus(value)),
  responseDeserialize: () => 0, // only a client would use it
};

/** A grpc.health.v1.HealthCheckRequest. */
interface Question {
  readonly service: string;
}

/** Says SERVING for some services until it is told to shut down. */
export class Health {
  readonly definition: ServiceDefinition = {
    check: { ...codec, path: "/grpc.health.v1.Health/Check", responseStream: false },
    watch: { ...codec, path: "/grpc.health.v1.Health/Watch", responseStream: true },
  };
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<ServerWritableStream<Question, number>>();
  #serving = true;

  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  /** Says NOT_SERVING from now on, to those who watch too; their calls end. */
  shutdown(): void {
    this.#serving = false;
    for (const watch of this.#watches) {
      watch.write(NOT_SERVING);
      watch.end();
    }
    this.#watches.clear();
  }

  /** The methods. */
  implementation(): UntypedServiceImplementation {
    return {
      check: (call: ServerUnaryCall<Question, number>, callback: sendUnaryData<number>) => {
        const { service } = call.request;
        if (this.#services.has(service)) {
          callback(null, this.#serving ? SERVING : NOT_SERVING);
        } else {
          callback({ code: Code.NOT_FOUND, details: this.#unknown(service) });
        }
      },
      watch: (call: ServerWritableStream<Question, number>) => this.#watch(call),
    };
  }

  #watch(call: ServerWritableStream<Question, number>): void {
    const { service } = call.request;
    if (!this.#services.has(service)) {
      call.emit("error", { code: Code.NOT_FOUND, details: this.#unknown(service) });
      return;
    }
    call.write(this.#serving ? SERVING : NOT_SERVING);
    if (!this.#serving) {
      call.end();
      return;
    }
    this.#watches.add(call);
    call.once("cancelled", () => this.#watches.delete(call));
  }

  #unknown(service: string): string {
    return `no service ${JSON.stringify(service)}; expected one of ${JSON.stringify([...this.#services].sort())}`;
  }
}
