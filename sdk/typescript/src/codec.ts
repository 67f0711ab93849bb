/** The contract's questions and answers, and what functions are asked and say instead. It knows neither a server nor a stream. */
import { create, type DescMethod, type DescService, type Message } from "@bufbuild/protobuf";
import { encodeConditions, encodeEvents, encodeResults } from "./extras.js";
import { fields } from "./check.js";
import { InvalidResponse, InvalidRequest } from "./errors.js";
import { CompositeHookService } from "./gen/hookloop/hook/v1/composite_pb.js";
import { DecoratorHookService } from "./gen/hookloop/hook/v1/decorator_pb.js";
import type { DesiredObject, Object$, ObjectGroup, RelatedGroup } from "./gen/hookloop/hook/v1/object_pb.js";
import type { AnyFunction, Hook } from "./hooks.js";
import { decodeChildren, decodeObject, decodeRelated } from "./request.js";
import { encodeDesired, encodeFinalized, encodePatch, encodeResync, encodeStatus } from "./response.js";
import { encodeRules } from "./rules.js";

/** What the two services differ in: the names of things. */
export interface Shape {
  readonly service: DescService;
  readonly parent: "parent" | "object";
  readonly children: "children" | "attachments";
  readonly patches: readonly ("labels" | "annotations")[];
}

export const SHAPES: Readonly<Record<Hook["shape"], Shape>> = {
  composite: { service: CompositeHookService, parent: "parent", children: "children", patches: [] },
  decorator: { service: DecoratorHookService, parent: "object", children: "attachments", patches: ["labels", "annotations"] },
};

/** The questions; both services have a method for each. */
export type Op = "sync" | "finalize" | "customize";

/** A question of either service. */
export type Question = Message & {
  controller?: Object$;
  parent?: Object$;
  object?: Object$;
  children?: ObjectGroup[];
  attachments?: ObjectGroup[];
  related?: RelatedGroup[];
};

/** An answer of either service, as far as the two have the same fields. */
export type Response = Message & { children?: DesiredObject[]; attachments?: DesiredObject[] };

/** One question that can be asked: which service has it, and as which method. */
export interface Method {
  readonly shape: Shape;
  readonly op: Op;
  readonly desc: DescMethod;
  /** As gRPC has it: "/hookloop.hook.v1.CompositeHookService/Sync". */
  readonly path: string;
}

/** The methods of a service. */
export function methodsOf(shape: Shape): Method[] {
  return shape.service.methods.map((desc) => ({ shape, op: desc.localName as Op, desc, path: pathOf(desc) }));
}

/** The path of a method. */
export function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** Names the parent of a question, for the log: its kind, namespace and name. */
export function parentOf({ shape }: Method, question: Question): string {
  const { kind = "", namespace = "", name = "" } = question[shape.parent] ?? {};
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

/** Puts a question to a hook's function; what it says must be an answer. */
export async function ask(method: Method, fn: AnyFunction, question: Question, signal: AbortSignal): Promise<Response> {
  return encode(method.shape, method.op, method.desc, await fn(decode(method.shape, method.op, question), { signal }));
}

/** A question as the hook's function gets it. */
export function decode(shape: Shape, op: Op, message: Question): object {
  const controller = decodeObject(message.controller, "controller");
  const parent = decodeObject(message[shape.parent], shape.parent);
  if (op === "customize") {
    return { controller, parent };
  }
  const namespace = message[shape.parent]!.namespace;
  return {
    controller,
    [shape.parent]: parent,
    [shape.children]: decodeChildren(message[shape.children] ?? [], namespace),
    related: decodeRelated(message.related ?? [], namespace),
    finalizing: op === "finalize",
  };
}

/** An answer as the contract has it, or InvalidResponse. */
export function encode(shape: Shape, op: Op, method: DescMethod, said: unknown): Response {
  if (said === undefined || said === null) {
    throw new InvalidResponse(`the hook's function returned ${said}, expected an object; an answer without children deletes them`);
  }
  if (op === "customize") {
    return create(method.output, { relatedResources: encodeRules(fields(said, "the answer", ["relatedResources"])["relatedResources"], "relatedResources") });
  }
  const allowed = ["status", shape.children, "resyncAfterSeconds", "finalized", "conditions", "events", "results", "requirements", ...shape.patches];
  const told = fields(said, "the answer", allowed);
  const finalized = encodeFinalized(told["finalized"]);
  const init: Record<string, unknown> = {
    status: encodeStatus(told["status"]),
    [shape.children]: encodeDesired(shape.children, told[shape.children]),
    resyncAfter: encodeResync(told["resyncAfterSeconds"]),
    conditions: encodeConditions(told["conditions"]),
    events: encodeEvents(told["events"]),
    results: encodeResults(told["results"]),
    requirements: encodeRules(told["requirements"], "requirements"),
    ...(op === "finalize" ? { finalized } : {}),
  };
  for (const field of shape.patches) {
    const { set, remove } = encodePatch(field, told[field]);
    const name = field === "labels" ? "Labels" : "Annotations";
    init[`set${name}`] = set;
    init[`remove${name}`] = remove;
  }
  return create(method.output, init);
}

/** The method of a service that asks a question. */
export function methodOf(shape: Shape, op: Op): DescMethod {
  const method = shape.service.methods.find((one) => one.localName === op);
  if (!method) {
    throw new InvalidRequest(`${shape.service.typeName} has no method ${op}`);
  }
  return method;
}
