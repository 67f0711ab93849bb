/** Runs a gRPC server for hooks, for programs with their own main function. */
import { lstatSync, unlinkSync } from "node:fs";
import { connect } from "node:net";
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

/** A loopback address, because anyone who can reach a server without TLS can call it. */
export const DEFAULT_LISTEN = "127.0.0.1:9443";
/** Limits a request and a response in bytes. The engine uses the same limit. */
const MAX_MESSAGE = 16 << 20;

/** Stands before the path of a unix socket. */
const UNIX = "unix://";

/** Configures a Server. Without TLS files it serves plain text. */
export interface ServerOptions extends Options {
  /**
   * host:port, where port 0 picks a free port, or a unix socket, unix:///run/hooks/hello.sock, for an
   * engine in the same Pod. A socket that a killed process has left behind is replaced, and one in use
   * is an error. Defaults to 127.0.0.1:9443.
   */
  listen?: string;
  /** PEM file with the server's certificate. All PEM files are read again when they change. */
  tlsCert?: string;
  /** PEM file with the certificate's key. */
  tlsKey?: string;
  /**
   * PEM file with certificate authorities. Clients must then present a certificate that one of them
   * signed.
   */
  clientCa?: string;
  /**
   * The client certificate must contain this common name or alternative name. It can only be used
   * with clientCa.
   */
  clientName?: string;
  /**
   * File with one token on each line. Clients must then send the header "authorization: Bearer
   * TOKEN". The file is read again when it changes.
   */
  tokenFile?: string;
  /** How many seconds pass between two checks of the PEM files. Defaults to 10. */
  refreshSeconds?: number;
}

/** Serves hooks over gRPC. Call start to listen, and stop to end it. */
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

  /** Starts to serve. Resolves to the address that the server listens on. */
  async start(): Promise<string> {
    const listen = this.#options.listen ?? DEFAULT_LISTEN;
    if (listen.startsWith(UNIX)) {
      await removeStale(listen.slice(UNIX.length));
      await this.#bindOne(listen);
      return listen; // the permissions of the folder decide who can call
    }
    const colon = listen.lastIndexOf(":");
    if (colon < 0) {
      throw new TypeError(`listen is ${JSON.stringify(listen)}, expected host:port or unix:///path`);
    }
    const hosts = colon === 0 ? ["[::]", "0.0.0.0"] : [listen.slice(0, colon)]; // without a host, all addresses
    const address = await this.#bind(hosts, listen.slice(colon));
    if (!this.#options.clientCa && !this.#options.tokenFile) {
      warnIfUnauthenticated(address);
    }
    return address;
  }

  /** Listens on the first of these hosts that works. */
  async #bind([host, ...others]: readonly string[], port: string): Promise<string> {
    try {
      return `${host}:${await this.#bindOne(`${host}${port}`)}`;
    } catch (error) {
      if (others.length === 0) {
        throw error;
      }
      return this.#bind(others, port);
    }
  }

  /** Listens on an address, and resolves to its port. */
  #bindOne(address: string): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#server.bindAsync(address, this.#credentials,
        (error, bound) => (error ? reject(error) : resolve(bound))));
  }

  /**
   * Asks Hookloop to sync parents, over every open stream. Resolves to how many it will sync.
   * Rejects if every engine refuses, or if no stream is open.
   */
  trigger(trigger: Trigger): Promise<number> {
    return this.#streams.trigger(trigger);
  }

  /**
   * Stops accepting calls, and resolves when the running ones have ended. After the grace period
   * (seconds), remaining calls are cancelled.
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

/**
 * Removes a socket that no process serves. A killed process leaves its socket behind, and the next
 * one could not listen there.
 */
async function removeStale(path: string): Promise<void> {
  if (!path.startsWith("/")) {
    throw new TypeError(`listen is ${JSON.stringify(UNIX + path)}, expected an absolute path as in unix:///path`);
  }
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSocket()) {
    return; // listening reports any other file
  }
  const refused = await new Promise<boolean>((resolve) => {
    const client = connect(path);
    client.once("connect", () => {
      client.destroy();
      resolve(false);
    });
    client.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
  if (refused) {
    unlinkSync(path);
  }
}
