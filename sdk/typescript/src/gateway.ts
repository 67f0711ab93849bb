/** How the engine's gateway is reached, which hooks dial. */
import { readFile } from "node:fs/promises";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ChannelCredentials, Client, Metadata, type ServiceError } from "@grpc/grpc-js";
import { GatewayService, TriggerRequestSchema, TriggerResponseSchema } from "./gen/hookloop/stream/v1/gateway_pb.js";
import { TriggerError, triggerMessage, type Trigger } from "./trigger.js";

/** How long one question to the gateway may take, in milliseconds. */
const DEADLINE = 30_000;

/** The stream is the sign of life on both sides: a silent gateway is noticed, and nobody else's failed connection is ours. */
const CHANNEL = { "grpc.use_local_subchannel_pool": 1, "grpc.keepalive_time_ms": 10_000, "grpc.keepalive_timeout_ms": 2_000 };

/** Where the gateway is, and who calls. A token or a client's certificate says the latter. Files are read anew for each connection. */
export interface GatewayOptions {
  /** host:port. */
  address: string;
  /** PEM file with the certificates that the gateway's may be signed by; without one, those of the system. */
  caFile?: string;
  /** The name in the gateway's certificate, where it is not the host of the address. */
  serverName?: string;
  /** File with the token of a ServiceAccount, of the gateway's audience. */
  tokenFile?: string;
  /** PEM files of a client's certificate and its key. */
  clientCert?: string;
  clientKey?: string;
}

/** A connection that is not shared with anyone, and what its calls say about the caller. */
export interface Connection {
  client: Client;
  metadata: Metadata;
}

/** Makes a connection. Files that cannot be read are an error. */
export async function connection(options: GatewayOptions): Promise<Connection> {
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
  const names = serverName ? { "grpc.ssl_target_name_override": serverName, "grpc.default_authority": serverName } : {};
  const client = new Client(address, ChannelCredentials.createSsl(ca, key, cert), { ...names, ...CHANNEL });
  return { client, metadata };
}

/** Asks the gateway for syncs of parents whose controllers refer to a worker, without a session; resolves to how many there will be. */
export async function trigger(gateway: GatewayOptions, worker: string, what: Trigger = {}): Promise<number> {
  const { client, metadata } = await connection(gateway);
  const request = create(TriggerRequestSchema, { worker, trigger: triggerMessage(what) });
  try {
    return await new Promise((resolve, reject) => client.makeUnaryRequest(
      `/${GatewayService.typeName}/Trigger`,
      (message: typeof request) => Buffer.from(toBinary(TriggerRequestSchema, message)),
      (data: Buffer) => fromBinary(TriggerResponseSchema, data),
      request, metadata, { deadline: Date.now() + DEADLINE },
      (error: ServiceError | null, response) => (response ? resolve(response.parents) : reject(refusal(error)))));
  } finally {
    client.close();
  }
}

function refusal(error: ServiceError | null): Error {
  return error ? new TriggerError(error.code, error.details) : new Error("trigger: the gateway has said nothing");
}
