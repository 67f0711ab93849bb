/**
 * Serves the standard health service (grpc.health.v1), which tells whether the server accepts
 * calls.
 */
import {
  status as Code, type sendUnaryData, type ServerUnaryCall, type ServerWritableStream, type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { healthService, healthStatus } from "./wellknown.js";

/** The service accepts calls. */
export const SERVING = 1;
/** The service accepts no calls. */
export const NOT_SERVING = 2;

const codec = {
  requestStream: false,
  requestSerialize: () => Buffer.alloc(0), // only a client would use it
  requestDeserialize: (data: Buffer) => ({ service: healthService(data) }),
  responseSerialize: (value: number) => Buffer.from(healthStatus(value)),
  responseDeserialize: () => 0, // only a client would use it
};

/** A grpc.health.v1.HealthCheckRequest. */
interface Request {
  readonly service: string;
}

/** Reports SERVING for these services until shutdown. */
export class Health {
  readonly definition: ServiceDefinition = {
    check: { ...codec, path: "/grpc.health.v1.Health/Check", responseStream: false },
    watch: { ...codec, path: "/grpc.health.v1.Health/Watch", responseStream: true },
  };
  readonly #services: ReadonlySet<string>;
  readonly #watches = new Set<ServerWritableStream<Request, number>>();
  #serving = true;

  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  /** Reports NOT_SERVING from now on. Open Watch calls are told and end. */
  shutdown(): void {
    this.#serving = false;
    for (const watch of this.#watches) {
      watch.write(NOT_SERVING);
      watch.end();
    }
    this.#watches.clear();
  }

  /** Returns the service's methods. */
  implementation(): UntypedServiceImplementation {
    return {
      check: (call: ServerUnaryCall<Request, number>, callback: sendUnaryData<number>) => {
        const { service } = call.request;
        if (this.#services.has(service)) {
          callback(null, this.#serving ? SERVING : NOT_SERVING);
        } else {
          callback({ code: Code.NOT_FOUND, details: this.#unknown(service) });
        }
      },
      watch: (call: ServerWritableStream<Request, number>) => this.#watch(call),
    };
  }

  #watch(call: ServerWritableStream<Request, number>): void {
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
    const known = JSON.stringify([...this.#services].sort());
    return `no service ${JSON.stringify(service)}; expected one of ${known}`;
  }
}
