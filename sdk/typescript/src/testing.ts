/**
 * Calls a hook's function as the engine would, without an engine, a cluster or a server:
 *
 *     const answer = await call(sync, "testdata/website.yaml", { children: ["Deployment.apps/v1"] });
 *
 * The file's first document is the parent, all others are what is observed of its children. The question goes through the contract's messages.
 * The answer is checked as a server does, and by the rules of the engine that follow from the parent and the declared kinds (validate.ts).
 *
 * A kind of children is declared as "Deployment.apps/v1", and as "Namespace.v1:Cluster" if it is cluster-scoped. A parent without a namespace
 * is taken for cluster-scoped: each of its children needs a namespace, unless its kind is declared as cluster-scoped.
 *
 * @packageDocumentation
 */
import { readFile } from "node:fs/promises";
import { create, type Message } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { Severity, type Condition, type Event, type Result } from "./gen/hookloop/hook/v1/answer_pb.js";
import type { Dependency } from "./child.js";
import type { RelatedResourceRule } from "./gen/hookloop/hook/v1/customize_pb.js";
import { ObjectGroupSchema, ObjectSchema, RelatedGroupSchema, type DesiredObject, type Object$ } from "./gen/hookloop/hook/v1/object_pb.js";
import type { AnyFunction, CustomizeResponse, CustomizeFunction, DecorateResponse, DecorateFunction, SyncResponse, SyncFunction } from "./hooks.js";
import { parse, stringify } from "./json.js";
import type { KubernetesObject } from "./objects.js";
import { key } from "./request.js";
import { decode, encode, methodOf, SHAPES, type Op, type Question, type Shape } from "./codec.js";
import { declaredKinds, validate } from "./validate.js";

/** A YAML or JSON file, or the objects themselves. */
export type Objects = string | readonly object[];

/** What else is in a question. */
export interface Observed {
  /** The kinds that the controller declares ("Pod.v1") beside those of the objects; others are refused in the answer. */
  children?: readonly string[];
  /** Related objects by the name of their rules or by resource ("configmaps.v1"). */
  related?: Readonly<Record<string, readonly object[]>>;
  finalizing?: boolean;
}

/** What is in an answer beside what the function says. */
export interface Told {
  /** The children, or attachments, and what child said about each. */
  desired: { object: KubernetesObject; ready?: boolean; dependsOn: Dependency[] }[];
}

const CONTROLLER = { apiVersion: "metacontroller.k8s.io/v1alpha1", kind: "CompositeController", metadata: { name: "test" } };

/** Asks a composite hook's function, and resolves to the answer after it has gone through the contract. */
export async function call<Parent>(fn: SyncFunction<Parent>, objects: Objects, observed: Observed = {}): Promise<SyncResponse & { children: KubernetesObject[] } & Told> {
  return (await ask(SHAPES.composite, fn, objects, observed)) as SyncResponse & { children: KubernetesObject[] } & Told;
}

/** Asks a decorator hook's function in the same way: the object to decorate first, then its attachments. */
export async function decorate<Parent>(fn: DecorateFunction<Parent>, objects: Objects, observed: Observed = {}): Promise<DecorateResponse & { attachments: KubernetesObject[] } & Told> {
  return (await ask(SHAPES.decorator, fn, objects, observed)) as DecorateResponse & { attachments: KubernetesObject[] } & Told;
}

/** Asks a customize function about the first of the objects, and resolves to its answer if it is a valid one. */
export async function customize<Parent>(fn: CustomizeFunction<Parent>, objects: Objects): Promise<CustomizeResponse> {
  const shape = SHAPES.composite;
  const [parent] = await load(objects);
  const method = methodOf(shape, "customize");
  const question = create(method.input, { controller: message(CONTROLLER), parent: message(parent!) } as Record<string, unknown>) as Question;
  const answer = await (fn as AnyFunction)(decode(shape, "customize", question), { signal: new AbortController().signal });
  encode(shape, "customize", method, answer);
  return answer as CustomizeResponse;
}

/** The objects of a YAML or JSON file, or of a list. */
export async function load(objects: Objects): Promise<KubernetesObject[]> {
  const found = typeof objects === "string" ? await read(objects) : objects;
  if (found.length === 0) {
    throw new Error(`${String(objects)}: got no object, expected the parent`);
  }
  return found as KubernetesObject[];
}

async function read(file: string): Promise<readonly object[]> {
  const text = await readFile(file, "utf8");
  if (file.endsWith(".json")) {
    const value = parse(text) as object;
    return Array.isArray(value) ? (value as object[]) : [value];
  }
  const { parseAllDocuments } = await import("yaml");
  const documents = [...parseAllDocuments(text, { intAsBigInt: true })];
  const fault = documents.flatMap((document) => document.errors)[0];
  if (fault) {
    throw new Error(`${file}: ${fault.message}`);
  }
  return documents.map((document) => document.toJS() as object | null).filter((value): value is object => value !== null);
}

async function ask<Fn>(shape: Shape, fn: Fn, objects: Objects, observed: Observed): Promise<object> {
  const op: Op = observed.finalizing ? "finalize" : "sync";
  const [parent, ...children] = await load(objects);
  const declared = declaredKinds(observed.children ?? []);
  const groups = new Map<string, Object$[]>([...declared.keys()].map((kind) => [kind, []]));
  for (const child of children) {
    const kind = key(child.kind, child.apiVersion);
    groups.set(kind, [...(groups.get(kind) ?? []), message(child)]);
    declared.set(kind, declared.get(kind) ?? false);
  }
  const method = methodOf(shape, op);
  const question = create(method.input, {
    controller: message(CONTROLLER),
    [shape.parent]: message(parent!),
    [shape.children]: [...groups].map(([name, members]) => {
      const [kind, apiVersion] = split(name);
      return create(ObjectGroupSchema, { kind, apiVersion, objects: members });
    }),
    related: Object.entries(observed.related ?? {}).map(([name, members]) => {
      const [resource, apiVersion] = split(name);
      const where = name.includes(".") ? { resource, apiVersion } : { name };
      return create(RelatedGroupSchema, { ...where, result: { case: "items", value: { objects: members.map(message) } } });
    }),
  } as Record<string, unknown>) as Question;
  const answer: unknown = await (fn as AnyFunction)(decode(shape, op, question), { signal: new AbortController().signal });
  const encoded = encode(shape, op, method, answer);
  validate({ field: shape.children, namespace: parent!.metadata.namespace ?? "", declared }, encoded);
  return answerOf(shape, encoded);
}

function split(name: string): [string, string] {
  const dot = name.indexOf(".");
  return [name.slice(0, dot), name.slice(dot + 1)];
}

function message(value: object): Object$ {
  const { apiVersion, kind, metadata } = value as Partial<KubernetesObject>;
  if (!apiVersion || !kind || !metadata?.name) {
    throw new Error(`got an object with apiVersion ${apiVersion}, kind ${kind} and metadata.name ${metadata?.name}, expected all three`);
  }
  const body = new TextEncoder().encode(stringify(value));
  return create(ObjectSchema, { apiVersion, kind, name: metadata.name, namespace: metadata.namespace ?? "", body });
}

const SEVERITIES: Readonly<Record<Severity, string>> = {
  [Severity.UNSPECIFIED]: "Info", [Severity.INFO]: "Info", [Severity.WARNING]: "Warning", [Severity.FATAL]: "Fatal",
};

/** What the answers of both services have. */
type Answer = Message & {
  status?: Uint8Array;
  children?: DesiredObject[];
  attachments?: DesiredObject[];
  resyncAfter?: Duration;
  finalized?: boolean;
  conditions?: Condition[];
  events?: Event[];
  results?: Result[];
  requirements?: RelatedResourceRule[];
} & { [field: string]: unknown };

/** What an answer says beside objects. */
function remarksOf({ conditions = [], events = [], results = [], requirements = [] }: Answer): Record<string, readonly object[]> {
  return {
    conditions: conditions.map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    events: events.map(({ warning, reason, message }) => ({ type: warning ? "Warning" : "Normal", reason, message })),
    results: results.map(({ severity, reason, message }) => ({ severity: SEVERITIES[severity], reason, message })),
    requirements,
  };
}

/** An answer as the engine reads it, in the form in which functions say it. */
function answerOf(shape: Shape, message: Message): object {
  const said = message as Answer;
  const json = (body: Uint8Array): unknown => parse(new TextDecoder().decode(body));
  const desired = (said[shape.children] ?? []).map(({ body, ready, dependsOn }) => ({ object: json(body), ready, dependsOn }));
  const answer: Record<string, unknown> = { desired, [shape.children]: desired.map(({ object }) => object) };
  for (const [field, list] of Object.entries(remarksOf(said))) {
    if (list.length > 0) {
      answer[field] = list;
    }
  }
  if (said.status) {
    answer["status"] = json(said.status);
  }
  if (said.resyncAfter) {
    answer["resyncAfterSeconds"] = Number(said.resyncAfter.seconds) + said.resyncAfter.nanos / 1e9;
  }
  if (said.finalized) {
    answer["finalized"] = true;
  }
  for (const [field, name] of [["labels", "Labels"], ["annotations", "Annotations"]] as const) {
    const set = (said[`set${name}`] ?? {}) as Record<string, string>;
    const removed = ((said[`remove${name}`] ?? []) as string[]).map((label) => [label, null]);
    if (Object.keys(set).length + removed.length > 0) {
      answer[field] = { ...set, ...Object.fromEntries(removed) };
    }
  }
  return answer;
}
