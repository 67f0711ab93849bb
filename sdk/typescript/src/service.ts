/** Serves hooks as the unary services of the contract. */
import { fromBinary, toBinary, type DescService, type Message } from "@bufbuild/protobuf";
import { status as Code, type handleUnaryCall, type ServiceDefinition, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { ask, methodsOf, pathOf, SHAPES, type Method, type Question } from "./contract.js";
import type { AnyFunction, Hook } from "./hooks.js";
import { report, serverError, statusOf } from "./status.js";
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

/** The methods of a hook's service. */
export function implementation(hook: Hook): UntypedServiceImplementation {
  const methods = methodsOf(SHAPES[hook.shape]);
  return Object.fromEntries(methods.map((method) => [method.op, unary(method, hook.functions[method.op])]));
}

function unary(method: Method, fn: AnyFunction | undefined): handleUnaryCall<Question, Message> {
  return (call, callback) => {
    if (!fn) {
      callback({ code: Code.UNIMPLEMENTED, details: `this hook has no ${method.op} function` });
      return;
    }
    const gone = new AbortController();
    call.once("cancelled", () => gone.abort());
    traced(method.path.slice(1), call.metadata.getMap(), () => ask(method, fn, call.request, gone.signal)).then(
      (message) => callback(null, message),
      (error: unknown) => {
        report(method.path, error);
        callback(serverError(statusOf(error)));
      },
    );
  };
}
