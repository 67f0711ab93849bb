/** Connects to the engine's gateway. */
import { readFile } from "node:fs/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ChannelCredentials, Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import { GatewayService, TriggerRequestSchema, TriggerResponseSchema } from "./gen/hookloop/stream/v1/gateway_pb.js";
import { TriggerError, triggerMessage, type Trigger } from "./trigger.js";

/** How many milliseconds a unary call to the gateway may take. */
const CALL_TIMEOUT = 30_000;

/**
 * Keepalive finds a gateway that no longer responds. Each channel gets a connection of its own, so
 * that another channel's failure cannot end it.
 */
const CHANNEL = {
  "grpc.use_local_subchannel_pool": 1,
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 2_000,
};

/**
 * Says where a hook dials in, and with which credentials. Each connection reads the files again, so
 * that you can rotate them.
 */
export interface Gateway {
  /** host:port. */
  address: string;
  /**
   * PEM file with the authorities that may sign the gateway's certificate. Defaults to the
   * system's.
   */
  caFile?: string;
  /** The name in the gateway's certificate. Defaults to the host in the address. */
  serverName?: string;
  /** File with a ServiceAccount token that was issued for the gateway's audience. */
  tokenFile?: string;
  /** PEM file with a client certificate, which can be used instead of a token. */
  clientCert?: string;
  /** PEM file with the client certificate's key. */
  clientKey?: string;
}

/** A connection, and metadata to send with each call. */
export interface Connection {
  client: Client;
  metadata: Metadata;
}

/** Opens a connection. Rejects if a file cannot be read. */
export async function connection(options: Gateway): Promise<Connection> {
  const { address, caFile, serverName, tokenFile, clientCert, clientKey } = options;
  if (!clientCert !== !clientKey) {
    throw new TypeError("gateway: one of client certificate and key is missing; expected both files, or neither");
  }
  const files = [caFile, clientKey, clientCert].map((file) => (file ? readFile(file) : null));
  const [ca, key, cert] = await Promise.all(files);
  const metadata = new Metadata();
  if (tokenFile) {
    metadata.set("authorization", `Bearer ${(await readFile(tokenFile, "utf8")).trim()}`);
  }
  const names = serverName
    ? { "grpc.ssl_target_name_override": serverName, "grpc.default_authority": serverName } : {};
  const client = new Client(address, ChannelCredentials.createSsl(ca, key, cert), { ...names, ...CHANNEL });
  return { client, metadata };
}

/**
 * Asks Hookloop to sync parents of the controllers that refer to a worker. This makes a single call
 * and needs no attachment. Resolves to how many parents Hookloop will sync; rejects with
 * TriggerError if the gateway refuses.
 */
export async function trigger(gateway: Gateway, worker: string, trigger: Trigger = {}): Promise<number> {
  const { client, metadata } = await connection(gateway);
  const request = create(TriggerRequestSchema, { worker, trigger: triggerMessage(trigger) });
  try {
    return await new Promise((resolve, reject) => client.makeUnaryRequest(
      `/${GatewayService.typeName}/Trigger`,
      (message: typeof request) => Buffer.from(toBinary(TriggerRequestSchema, message)),
      (data: Buffer) => fromBinary(TriggerResponseSchema, data),
      request, metadata, { deadline: Date.now() + CALL_TIMEOUT },
      (error: ServiceError | null, response) => (response ? resolve(response.parents) : reject(triggerError(error)))));
  } finally {
    client.close();
  }
}

function triggerError(error: ServiceError | null): Error {
  return error ? new TriggerError(error.code, error.details) : new Error("trigger: the gateway sent no response");
}
