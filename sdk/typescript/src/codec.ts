/**
 * Converts messages into requests for a hook's functions, and their responses into messages. It
 * knows neither servers nor streams.
 */
import { create, type DescMethod, type DescService, type Message } from "@bufbuild/protobuf";
import { fields, type Members } from "./check.js";
import { encodeConditions, encodeEvents, encodeResults } from "./details.js";
import { InvalidRequest, InvalidResponse } from "./errors.js";
import { check, used } from "./features.js";
import { CompositeHookService } from "./gen/hookloop/composite/v1/composite_pb.js";
import { DecoratorHookService } from "./gen/hookloop/decorator/v1/decorator_pb.js";
import type { DesiredObject } from "./gen/hookloop/hook/v1/desired_pb.js";
import { type RequestMeta, ResponseMetaSchema } from "./gen/hookloop/hook/v1/meta_pb.js";
import type { ObjectGroup, ObservedObject } from "./gen/hookloop/hook/v1/observed_pb.js";
import type { RelatedGroup, RelatedResourceRule } from "./gen/hookloop/hook/v1/related_pb.js";
import type { ResponseDetails } from "./gen/hookloop/hook/v1/response_pb.js";
import { MapHookService } from "./gen/hookloop/map/v1/map_pb.js";
import type { AnyFunction, Hook, Operation } from "./hooks.js";
import { decodeChildren, decodeObject, decodeRelated } from "./request.js";
import {
  encodeDesired, encodeFinalized, encodeKept, encodePatch, encodeResync, encodeStatus,
} from "./response.js";
import { encodeRules } from "./rules.js";

/** Fields of all responses except those to customize. */
const COMMON_FIELDS = ["resyncAfterSeconds", "events", "results", "requirements"];

/** Describes how the services differ. */
export interface Shape {
  readonly service: DescService;
  readonly parent: "parent" | "object";
  readonly children: "children" | "attachments" | "outputs";
  readonly patches: readonly ("labels" | "annotations")[];
  /** Fields of responses to sync, finalize and map, without children and patches. */
  readonly fields: readonly string[];
  /** The slot of the first group of children. */
  readonly firstSlot: number;
}

const SYNC_FIELDS = ["status", "conditions", "finalized", ...COMMON_FIELDS];

/** Shapes by the value of Hook.shape. */
export const SHAPES: Readonly<Record<Hook["shape"], Shape>> = {
  composite: {
    service: CompositeHookService, parent: "parent", children: "children", patches: [],
    fields: SYNC_FIELDS, firstSlot: 2,
  },
  decorator: {
    service: DecoratorHookService, parent: "object", children: "attachments", patches: ["labels", "annotations"],
    fields: SYNC_FIELDS, firstSlot: 2,
  },
  map: {
    service: MapHookService, parent: "parent", children: "outputs", patches: [],
    fields: ["finalized", ...COMMON_FIELDS], firstSlot: 4,
  },
};

/** A request message for any service. */
export type Request = Message & {
  meta?: RequestMeta;
  controller?: ObservedObject;
  parent?: ObservedObject;
  object?: ObservedObject;
  mapKey?: string;
  input?: ObservedObject;
  children?: ObjectGroup[];
  attachments?: ObjectGroup[];
  outputs?: ObjectGroup[];
  related?: RelatedGroup[];
};

/** A response message from any service, including fields that a stream sends as changes. */
export type Response = Message & {
  children?: DesiredObject[]; attachments?: DesiredObject[]; outputs?: DesiredObject[];
  details?: ResponseDetails; relatedResources?: RelatedResourceRule[];
};

/** A method of a service. */
export interface Method {
  readonly shape: Shape;
  readonly operation: Operation;
  readonly desc: DescMethod;
  /** Its path in gRPC: "/hookloop.composite.v1.CompositeHookService/Sync". */
  readonly path: string;
}

/** Returns a service's methods. */
export function methodsOf(shape: Shape): Method[] {
  return shape.service.methods.map((desc) => ({
    shape, operation: desc.localName as Operation, desc, path: pathOf(desc),
  }));
}

/** Returns a method's path in gRPC. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Returns the parent's kind, namespace and name for the log. */
export function parentOf({ shape }: Method, request: Request): string {
  const { kind = "", namespace = "", name = "" } = request[shape.parent] ?? {};
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

/**
 * Calls a hook's function for a request. Rejects with the function's error, or with
 * InvalidResponse.
 */
export async function callHook(
  { shape, operation, desc }: Method, fn: AnyFunction, request: Request, signal: AbortSignal,
): Promise<Response> {
  const value = await fn(decodeRequest(shape, operation, request), { signal });
  const response = encodeResponse(shape, operation, desc, value);
  const features = used({
    desired: response[shape.children], details: response.details, rules: response.relatedResources,
  });
  check(features, request.meta);
  return features.length === 0 ? response : Object.assign(response, { meta: create(ResponseMetaSchema, { features }) });
}

/** Returns whether requests to a method contain an input. */
export function hasInput(shape: Shape, operation: Operation): boolean {
  return shape === SHAPES.map && (operation === "map" || operation === "finalize");
}

/** Returns a request in the form that a hook's function receives. */
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
    ...(shape === SHAPES.map ? { mapKey: message.mapKey } : {}),
    ...(hasInput(shape, operation) ? { input: decodeInput(operation, message) } : {}),
    [shape.children]: decodeChildren(message[shape.children] ?? [], namespace),
    related: decodeRelated(message.related ?? [], namespace),
    ...(operation === "tombstone" ? {} : { finalizing: operation === "finalize" }),
  };
}

/** Returns the input. It is null in a request to finalize an input that is gone. */
function decodeInput(operation: Operation, { input }: Request): object | null {
  return operation === "finalize" && !input ? null : decodeObject(input, "input");
}

/** Encodes what a function returned. Throws InvalidResponse if it is not a response. */
export function encodeResponse(shape: Shape, operation: Operation, method: DescMethod, value: unknown): Response {
  if (value === undefined || value === null) {
    const expected = "expected an object; a response without children deletes them";
    throw new InvalidResponse(`the hook's function returned ${value}, ${expected}`);
  }
  if (operation === "customize") {
    const { relatedResources } = fields(value, "the response", ["relatedResources"]);
    return create(method.output, { relatedResources: encodeRules(relatedResources, "relatedResources") });
  }
  const known = operation === "tombstone" ? COMMON_FIELDS : shape.fields;
  const response = fields(value, "the response", [...known, shape.children, ...shape.patches]);
  if (shape === SHAPES.map && response["outputs"] === undefined) {
    throw new InvalidResponse("outputs: is missing; expected an array of objects, which may be empty");
  }
  const finalized = encodeFinalized(response["finalized"]);
  const encodeObjects = operation === "tombstone" ? encodeKept : encodeDesired;
  const status = encodeStatus(response["status"]);
  const init: Record<string, unknown> = {
    ...(status ? { status } : {}),
    [shape.children]: encodeObjects(shape.children, response[shape.children]),
    details: encodeDetails(response),
    ...(operation === "finalize" ? { finalized } : {}),
  };
  for (const field of shape.patches) {
    init[field] = encodePatch(field, response[field]);
  }
  return create(method.output, init);
}

function encodeDetails(response: Members): object {
  return {
    resyncAfter: encodeResync(response["resyncAfterSeconds"]),
    conditions: encodeConditions(response["conditions"]),
    events: encodeEvents(response["events"]),
    results: encodeResults(response["results"]),
    requirements: encodeRules(response["requirements"], "requirements"),
  };
}

/** Returns a service's method for an operation. */
export function methodOf(shape: Shape, operation: Operation): DescMethod {
  const method = shape.service.methods.find(({ localName }) => localName === operation);
  if (!method) {
    throw new InvalidRequest(`${shape.service.typeName} has no method ${operation}`);
  }
  return method;
}
