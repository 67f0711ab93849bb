/** Serves hooks over unary calls. */
import { fromBinary, toBinary, type DescService, type Message } from "@bufbuild/protobuf";
import {
  status as Code, type handleUnaryCall, type ServiceDefinition, type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Catalog } from "./catalog.js";
import { callHook, methodsOf, parentOf, pathOf, type Method, type Request, type Shape } from "./codec.js";
import type { Limiter } from "./limiter.js";
import { logCancelled, logFailure, statusOf, unaryError } from "./status.js";
import { traced } from "./tracing.js";

/** Returns the definition of a generated service for grpc-js. */
export function definition(service: DescService): ServiceDefinition {
  return Object.fromEntries(service.methods.map((method) => [method.localName, {
    path: pathOf(method),
    requestStream: method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming",
    responseStream: method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming",
    requestSerialize: (message: Message) => Buffer.from(toBinary(method.input, message)),
    requestDeserialize: (data: Buffer) => fromBinary(method.input, data),
    responseSerialize: (message: Message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (data: Buffer) => fromBinary(method.output, data),
  }]));
}

/** Returns the methods of a service. The limiter limits how many functions run at the same time. */
export function implementation(catalog: Catalog, shape: Shape, limiter: Limiter): UntypedServiceImplementation {
  return Object.fromEntries(methodsOf(shape).map((method) => [method.operation, unary(method, catalog, limiter)]));
}

function unary(method: Method, catalog: Catalog, limiter: Limiter): handleUnaryCall<Request, Message> {
  return (call, callback) => {
    let fn;
    try {
      fn = catalog.functionOf(method, call.request);
    } catch (error) {
      logFailure(method.path, parentOf(method, call.request), error);
      callback(unaryError(statusOf(error)));
      return;
    }
    if (!fn) {
      callback({ code: Code.UNIMPLEMENTED, details: `this hook has no ${method.operation} function` });
      return;
    }
    const found = fn;
    const cancelled = new AbortController();
    const parent = parentOf(method, call.request);
    let ended = false;
    call.once("cancelled", () => {
      if (!ended) {
        logCancelled(method.path, parent, "its deadline has passed, or the engine has cancelled it");
      }
      cancelled.abort();
    });
    const run = async (): Promise<Message> => {
      if (!await limiter.acquire(cancelled.signal)) {
        throw new Error("the call was cancelled before its function began");
      }
      try {
        return await traced(method.path.slice(1), call.metadata.getMap(),
          () => callHook(method, found, call.request, cancelled.signal));
      } finally {
        limiter.release();
        ended = true;
      }
    };
    run().then(
      (message) => callback(null, message),
      (error: unknown) => {
        if (!cancelled.signal.aborted) {
          logFailure(method.path, parent, error);
        }
        callback(unaryError(statusOf(error)));
      },
    );
  };
}
