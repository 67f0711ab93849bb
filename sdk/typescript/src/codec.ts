/**
 * Translates between the contract's messages and the requests and responses of a hook's functions.
 * It knows neither servers nor streams.
 */
import { create, type DescMethod, type DescService, type Message } from "@bufbuild/protobuf";
import { fields } from "./check.js";
import { encodeConditions, encodeEvents, encodeResults } from "./details.js";
import { InvalidRequest, InvalidResponse } from "./errors.js";
import { CompositeHookService } from "./gen/hookloop/composite/v1/composite_pb.js";
import { DecoratorHookService } from "./gen/hookloop/decorator/v1/decorator_pb.js";
import type { DesiredObject } from "./gen/hookloop/hook/v1/desired_pb.js";
import type { Object$, ObjectGroup } from "./gen/hookloop/hook/v1/object_pb.js";
import type { RelatedGroup } from "./gen/hookloop/hook/v1/related_pb.js";
import type { AnyFunction, Hook } from "./hooks.js";
import { decodeChildren, decodeObject, decodeRelated } from "./request.js";
import { encodeDesired, encodeFinalized, encodePatch, encodeResync, encodeStatus } from "./response.js";
import { encodeRules } from "./rules.js";

/** The field names in which the services of composite and decorator differ. */
export interface Shape {
  readonly service: DescService;
  readonly parent: "parent" | "object";
  readonly children: "children" | "attachments";
  readonly patches: readonly ("labels" | "annotations")[];
}

/** The shapes by the value of Hook.shape. */
export const SHAPES: Readonly<Record<Hook["shape"], Shape>> = {
  composite: { service: CompositeHookService, parent: "parent", children: "children", patches: [] },
  decorator: {
    service: DecoratorHookService, parent: "object", children: "attachments", patches: ["labels", "annotations"],
  },
};

/** An operation of a hook. Both services have a method for each. */
export type Operation = "sync" | "finalize" | "customize";

/** A request message of either service. */
export type Request = Message & {
  controller?: Object$;
  parent?: Object$;
  object?: Object$;
  children?: ObjectGroup[];
  attachments?: ObjectGroup[];
  related?: RelatedGroup[];
};

/** A response message of either service, with the fields that a stream sends as changes. */
export type Response = Message & { children?: DesiredObject[]; attachments?: DesiredObject[] };

/** A method of either service. */
export interface Method {
  readonly shape: Shape;
  readonly operation: Operation;
  readonly desc: DescMethod;
  /** The path in gRPC: "/hookloop.composite.v1.CompositeHookService/Sync". */
  readonly path: string;
}

/** Returns the methods of a service. */
export function methodsOf(shape: Shape): Method[] {
  return shape.service.methods.map((desc) => ({
    shape, operation: desc.localName as Operation, desc, path: pathOf(desc),
  }));
}

/** Returns the path of a method in gRPC. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Returns kind, namespace and name of a request's parent, for the log. */
export function parentOf({ shape }: Method, request: Request): string {
  const { kind = "", namespace = "", name = "" } = request[shape.parent] ?? {};
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

/**
 * Calls a hook's function with a request. Rejects with the function's error, or with
 * InvalidResponse.
 */
export async function callHook(
  { shape, operation, desc }: Method, fn: AnyFunction, request: Request, signal: AbortSignal,
): Promise<Response> {
  return encodeResponse(shape, operation, desc, await fn(decodeRequest(shape, operation, request), { signal }));
}

/** Returns the request that a hook's function gets. */
export function decodeRequest(shape: Shape, operation: Operation, message: Request): object {
  const controller = decodeObject(message.controller, "controller");
  const parent = decodeObject(message[shape.parent], shape.parent);
  if (operation === "customize") {
    return { controller, parent };
  }
  const namespace = message[shape.parent]!.namespace;
  return {
    controller,
    [shape.parent]: parent,
    [shape.children]: decodeChildren(message[shape.children] ?? [], namespace),
    related: decodeRelated(message.related ?? [], namespace),
    finalizing: operation === "finalize",
  };
}

/**
 * Returns the message of a function's return value. Throws InvalidResponse if it is not a response.
 */
export function encodeResponse(shape: Shape, operation: Operation, method: DescMethod, value: unknown): Response {
  if (value === undefined || value === null) {
    const expected = "expected an object; a response without children deletes them";
    throw new InvalidResponse(`the hook's function returned ${value}, ${expected}`);
  }
  if (operation === "customize") {
    const { relatedResources } = fields(value, "the response", ["relatedResources"]);
    return create(method.output, { relatedResources: encodeRules(relatedResources, "relatedResources") });
  }
  const response = fields(value, "the response", [
    "status", shape.children, "resyncAfterSeconds", "finalized", "conditions", "events", "results", "requirements",
    ...shape.patches,
  ]);
  const finalized = encodeFinalized(response["finalized"]);
  const init: Record<string, unknown> = {
    status: encodeStatus(response["status"]),
    [shape.children]: encodeDesired(shape.children, response[shape.children]),
    details: {
      resyncAfter: encodeResync(response["resyncAfterSeconds"]),
      conditions: encodeConditions(response["conditions"]),
      events: encodeEvents(response["events"]),
      results: encodeResults(response["results"]),
      requirements: encodeRules(response["requirements"], "requirements"),
    },
    ...(operation === "finalize" ? { finalized } : {}),
  };
  for (const field of shape.patches) {
    init[field] = encodePatch(field, response[field]);
  }
  return create(method.output, init);
}

/** Returns the method of a service for an operation. */
export function methodOf(shape: Shape, operation: Operation): DescMethod {
  const method = shape.service.methods.find(({ localName }) => localName === operation);
  if (!method) {
    throw new InvalidRequest(`${shape.service.typeName} has no method ${operation}`);
  }
  return method;
}
