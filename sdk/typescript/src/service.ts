/** Serves hooks as the unary services of the contract. */
import { fromBinary, toBinary, type DescService, type Message } from "@bufbuild/protobuf";
import { status as Code, type handleUnaryCall, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { ask, methodsOf, parentOf, pathOf, SHAPES, type Method, type Question } from "./codec.js";
import type { AnyFunction, Hook } from "./hooks.js";
import type { Limiter } from "./limiter.js";
import { logCancelled, logFailure, unaryError, statusOf } from "./status.js";
import { traced } from "./tracing.js";

/** A gRPC service as grpc-js defines them, from the description that is generated. */
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

/** The methods of a hook's service. Functions run while there are slots. */
export function implementation(hook: Hook, slots: Limiter): UntypedServiceImplementation {
  const methods = methodsOf(SHAPES[hook.shape]);
  return Object.fromEntries(methods.map((method) => [method.op, unary(method, hook.functions[method.op], slots)]));
}

function unary(method: Method, fn: AnyFunction | undefined, slots: Limiter): handleUnaryCall<Question, Message> {
  return (call, callback) => {
    if (!fn) {
      callback({ code: Code.UNIMPLEMENTED, details: `this hook has no ${method.op} function` });
      return;
    }
    const gone = new AbortController();
    const parent = parentOf(method, call.request);
    let ended = false;
    call.once("cancelled", () => {
      if (!ended) {
        logCancelled(method.path, parent, "its time is over, or the engine has cancelled it");
      }
      gone.abort();
    });
    const run = async (): Promise<Message> => {
      if (!await slots.take(gone.signal)) {
        throw new Error("the call was given up before its function began");
      }
      try {
        return await traced(method.path.slice(1), call.metadata.getMap(), () => ask(method, fn, call.request, gone.signal));
      } finally {
        slots.free();
        ended = true;
      }
    };
    run().then(
      (message) => callback(null, message),
      (error: unknown) => {
        if (!gone.signal.aborted) {
          logFailure(method.path, parent, error);
        }
        callback(unaryError(statusOf(error)));
      },
    );
  };
}
