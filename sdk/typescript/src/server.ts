/** A gRPC server for hooks, for programs that have a main function of their own. */
import { Server as GrpcServer, type ServerCredentials } from "@grpc/grpc-js";
import { callerInterceptors, warnIfUnauthenticated } from "./auth.js";
import { programHash } from "./build.js";
import { Catalog } from "./catalog.js";
import { serverCredentials } from "./credentials.js";
import { HookStreamService } from "./gen/hookloop/stream/v1/stream_pb.js";
import { Health } from "./health.js";
import type { Hook } from "./hooks.js";
import { Limiter } from "./limiter.js";
import { DEFAULT_GRACE_PERIOD, type Options } from "./options.js";
import { definition, implementation } from "./service.js";
import { StreamServer } from "./streamserver.js";
import type { Trigger } from "./trigger.js";

/** The loopback interface, because without TLS a hook serves plain text. */
export const DEFAULT_LISTEN = "127.0.0.1:9443";
/** The largest request or response in bytes; the engine has the same limit. */
const MAX_MESSAGE = 16 << 20;

/** Options of a server. Without TLS files it serves plain text. */
export interface ServerOptions extends Options {
  /** The address, host:port. Port 0 selects a free port. The default is 127.0.0.1:9443. */
  listen?: string;
  /** PEM file with the server's certificate. The server reloads all PEM files if they change. */
  tlsCert?: string;
  /** PEM file with the certificate's key. */
  tlsKey?: string;
  /** PEM file with the authorities of client certificates. Other clients cannot connect. */
  clientCa?: string;
  /** A common name or alternative name that a client certificate must have. It needs clientCa. */
  clientName?: string;
  /**
   * File with one token per line. A call must have the header "authorization: Bearer TOKEN" with
   * one of them. The server reloads the file if it changes.
   */
  tokenFile?: string;
  /** The seconds between two checks of the PEM files. The default is 10. */
  refreshSeconds?: number;
}

/** A gRPC server for hooks. */
export class Server {
  readonly #server: GrpcServer;
  readonly #health: Health;
  readonly #streams: StreamServer;
  readonly #options: ServerOptions;
  readonly #credentials: ServerCredentials;

  /** Throws if the hooks or the options are invalid, or if a file cannot be read. */
  constructor(hooks: readonly Hook[], options: ServerOptions = {}) {
    const catalog = new Catalog(hooks);
    const names = catalog.shapes.map(({ service }) => service.typeName);
    this.#options = options;
    this.#server = new GrpcServer({
      "grpc.max_receive_message_length": MAX_MESSAGE,
      "grpc.max_send_message_length": MAX_MESSAGE,
      "grpc.so_reuseport": 0,
      interceptors: callerInterceptors(options),
    });
    this.#credentials = serverCredentials(options);
    this.#health = new Health([...names, HookStreamService.typeName]);
    this.#streams = new StreamServer(catalog, options.buildId || programHash());
    const limiter = new Limiter();
    this.#server.addService(this.#health.definition, this.#health.implementation());
    catalog.shapes.forEach((shape) => {
      this.#server.addService(definition(shape.service), implementation(catalog, shape, limiter));
    });
    this.#server.addService(this.#streams.definition, this.#streams.implementation());
  }

  /** Starts to serve, and resolves to the address on which the server listens. */
  async start(): Promise<string> {
    const listen = this.#options.listen ?? DEFAULT_LISTEN;
    const colon = listen.lastIndexOf(":");
    if (colon < 0) {
      throw new TypeError(`listen is ${JSON.stringify(listen)}, expected host:port`);
    }
    const hosts = colon === 0 ? ["[::]", "0.0.0.0"] : [listen.slice(0, colon)]; // without a host, all addresses
    const address = await this.#bind(hosts, listen.slice(colon));
    if (!this.#options.clientCa && !this.#options.tokenFile) {
      warnIfUnauthenticated(address);
    }
    return address;
  }

  /** Listens on the first host that is available. */
  async #bind([host, ...others]: readonly string[], port: string): Promise<string> {
    try {
      return `${host}:${await new Promise<number>((resolve, reject) =>
        this.#server.bindAsync(`${host}${port}`, this.#credentials,
          (error, bound) => (error ? reject(error) : resolve(bound))))}`;
    } catch (error) {
      if (others.length === 0) {
        throw error;
      }
      return this.#bind(others, port);
    }
  }

  /**
   * Requests syncs from every engine with an open stream, and resolves to the number of parents
   * that Hookloop will sync. It rejects if all engines refuse, or if no stream is open.
   */
  trigger(trigger: Trigger): Promise<number> {
    return this.#streams.trigger(trigger);
  }

  /**
   * Accepts no new calls, and resolves when all calls have ended. After the grace period, in
   * seconds, it cancels the remaining calls.
   */
  async stop(gracePeriod = this.#options.gracePeriodSeconds ?? DEFAULT_GRACE_PERIOD): Promise<void> {
    this.#health.shutdown();
    this.#streams.drain();
    const timer = setTimeout(() => this.#server.forceShutdown(), gracePeriod * 1000);
    try {
      await new Promise<void>((resolve, reject) =>
        this.#server.tryShutdown((error) => (error ? reject(error) : resolve())));
    } finally {
      clearTimeout(timer);
    }
  }
}
