/** A gRPC server for hooks, for programs that have a main function of their own. serve is a whole one. */
import { Server as GrpcServer, type ServerCredentials } from "@grpc/grpc-js";
import { programHash } from "./build.js";
import { callerInterceptors, warnIfUnauthenticated } from "./auth.js";
import { SHAPES } from "./codec.js";
import { serverCredentials } from "./credentials.js";
import { HookStreamService } from "./gen/hookloop/stream/v1/stream_pb.js";
import { Health } from "./health.js";
import type { Hook } from "./hooks.js";
import { definition, implementation } from "./service.js";
import { Limiter } from "./limiter.js";
import { StreamServer } from "./streamserver.js";
import type { Trigger } from "./trigger.js";

/** On loopback, because without TLS a hook speaks plain text. */
export const DEFAULT_LISTEN = "127.0.0.1:9443";
/** How many seconds calls under way may take once the server is told to stop. */
export const DEFAULT_GRACE = 10;
/** Bytes of a question or an answer; the engine's limit. */
const MAX_MESSAGE = 16 << 20;

/** Options say how hooks are served. */
export interface ServerOptions {
  /** The address, host:port; port 0 takes a free one. */
  listen?: string;
  /** PEM files, which are looked at again every refreshSeconds, so that certificates may be rotated. Without them a hook speaks plain text. */
  tlsCert?: string;
  tlsKey?: string;
  /** PEM file with the authorities of callers' certificates: who has none of them cannot connect. It is looked at again like the others. */
  clientCa?: string;
  /** A name that a caller's certificate must have: its common name or an alternative one. */
  clientName?: string;
  /**
   * File with the tokens of callers, one in each line: a call has the header "authorization: Bearer TOKEN" with one of them. It is read anew
   * when it changes.
   */
  tokenFile?: string;
  /** 10 where it is left out. */
  refreshSeconds?: number;
  /** Names the build of the hook; a change makes the engine ask about every parent again. A hash of the program's files where it is left out. */
  buildId?: string;
}

/** Serves hooks. */
export class Server {
  readonly #server: GrpcServer;
  readonly #health: Health;
  readonly #streams: StreamServer;
  readonly #options: ServerOptions;
  readonly #credentials: ServerCredentials;

  constructor(hooks: readonly Hook[], options: ServerOptions = {}) {
    if (hooks.length === 0) {
      throw new TypeError("got no hook, expected one made by composite or decorator, or both");
    }
    const services = hooks.map((hook) => SHAPES[hook.shape].service);
    const names = services.map((service) => service.typeName);
    if (new Set(names).size < names.length) {
      throw new TypeError(`got hooks for ${names.join(", ")}, expected at most one for each service`);
    }
    this.#options = options;
    this.#server = new GrpcServer({
      "grpc.max_receive_message_length": MAX_MESSAGE, "grpc.max_send_message_length": MAX_MESSAGE, "grpc.so_reuseport": 0,
      interceptors: callerInterceptors(options),
    });
    this.#credentials = serverCredentials(options);
    this.#health = new Health([...names, HookStreamService.typeName]);
    this.#streams = new StreamServer(hooks, options.buildId || programHash());
    const slots = new Limiter();
    this.#server.addService(this.#health.definition, this.#health.implementation());
    hooks.forEach((hook, index) => this.#server.addService(definition(services[index]!), implementation(hook, slots)));
    this.#server.addService(this.#streams.definition, this.#streams.implementation());
  }

  /** Begins to serve, and resolves to the address at which the server answers. */
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

  /** Listens at the first of some hosts that can be had. */
  async #bind([host, ...others]: readonly string[], port: string): Promise<string> {
    try {
      return `${host}:${await new Promise<number>((resolve, reject) =>
        this.#server.bindAsync(`${host}${port}`, this.#credentials, (error, bound) => (error ? reject(error) : resolve(bound))))}`;
    } catch (error) {
      if (others.length === 0) {
        throw error;
      }
      return this.#bind(others, port);
    }
  }

  /** Asks every engine that has a stream open for syncs, and resolves to how many parents there will be. It fails if all of them say no. */
  trigger(trigger: Trigger): Promise<number> {
    return this.#streams.trigger(trigger);
  }

  /** Takes no new calls, and resolves when those under way have ended, at the latest after the grace period in seconds. */
  async stop(grace: number = DEFAULT_GRACE): Promise<void> {
    this.#health.shutdown();
    this.#streams.drain();
    const late = setTimeout(() => this.#server.forceShutdown(), grace * 1000);
    try {
      await new Promise<void>((resolve, reject) => this.#server.tryShutdown((error) => (error ? reject(error) : resolve())));
    } finally {
      clearTimeout(late);
    }
  }
}
