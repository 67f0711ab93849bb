/** Requests of the engine, and a client that sends them over loopback. */
import { create, fromBinary, toBinary, type DescMethod, type Message, type MessageInitShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { pathOf } from "../src/codec.js";
import {
  CompositeHookService, SyncRequestSchema,
} from "../src/gen/hookloop/composite/v1/composite_pb.js";
import { SyncRequestSchema as DecorateRequestSchema } from "../src/gen/hookloop/decorator/v1/decorator_pb.js";
import { type ObservedObject, ObservedObjectSchema } from "../src/gen/hookloop/hook/v1/observed_pb.js";
import type { Hook } from "../src/hooks.js";
import { Server } from "../src/server.js";

/** The first integer that a number cannot hold. */
export const BIG = 2n ** 53n + 1n;

/** Returns an observed object with a large integer. */
export function object(apiVersion: string, kind: string, namespace: string, name: string, more = ""): ObservedObject {
  const metadata = JSON.stringify(namespace ? { name, namespace } : { name });
  const fields = `"spec":{"n":${BIG}}${more && `,"more":"${more}"`}`;
  const body = `{"apiVersion":"${apiVersion}","kind":"${kind}","metadata":${metadata},${fields}}`;
  return create(ObservedObjectSchema, { apiVersion, kind, namespace, name, body: new TextEncoder().encode(body) });
}

/**
 * Returns a parent in the namespace shop, with two Pods, one of them in another namespace, no
 * Deployment, and four related groups.
 */
export function syncRequest(): MessageInitShape<typeof SyncRequestSchema> {
  return {
    controller: object("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "hello"),
    parent: object("example.com/v1", "Greeting", "shop", "hi"),
    children: [
      {
        apiVersion: "v1",
        kind: "Pod",
        objects: [object("v1", "Pod", "other", "far"), object("v1", "Pod", "shop", "near")],
      },
      { apiVersion: "apps/v1", kind: "Deployment" },
    ],
    related: [
      {
        apiVersion: "v1",
        kind: "Namespace",
        resource: "namespaces",
        result: { case: "items", value: { objects: [object("v1", "Namespace", "", "shop")] } },
      },
      {
        apiVersion: "v1",
        kind: "Namespace",
        resource: "namespaces",
        name: "spaces",
        result: { case: "items", value: { objects: [] } },
      },
      {
        apiVersion: "cert-manager.io/v1",
        resource: "certificates",
        result: { case: "notFound", value: { message: "no certificates" } },
      },
      {
        apiVersion: "v1",
        kind: "Secret",
        resource: "secrets",
        result: { case: "error", value: { code: 7, message: "not allowed" } },
      },
    ],
  };
}

/** Returns a request with an object to decorate. */
export function decoratorRequest(): MessageInitShape<typeof DecorateRequestSchema> {
  return {
    controller: object("metacontroller.k8s.io/v1alpha1", "DecoratorController", "", "hello"),
    object: object("v1", "ConfigMap", "shop", "hi"),
  };
}

/** Runs a test with a server on loopback and a client. */
export async function serving(
  hooks: readonly Hook[],
  run: (client: Client, server: Server) => Promise<void>,
): Promise<void> {
  const server = new Server(hooks, { listen: "127.0.0.1:0" });
  const client = new Client(await server.start(), credentials.createInsecure());
  try {
    await run(client, server);
  } finally {
    client.close();
    await server.stop(0);
  }
}

/** Makes a unary call. */
export function unaryCall(
  client: Client,
  method: DescMethod,
  request: object,
  deadline?: number,
  signal?: AbortSignal,
): Promise<Message> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      pathOf(method),
      (message: Message) => Buffer.from(toBinary(method.input, message)),
      (data: Buffer) => fromBinary(method.output, data),
      create(method.input, request as Record<string, unknown>),
      new Metadata(),
      deadline ? { deadline } : {},
      (error: ServiceError | null, response?: Message) => (error ? reject(error) : resolve(response!)),
    );
    signal?.addEventListener("abort", () => call.cancel());
  });
}

/** Calls a composite hook's sync. */
export function callSync(client: Client, request: object = syncRequest()): Promise<Message> {
  return unaryCall(client, CompositeHookService.method.sync, request);
}
