/**
 * Calls a hook's function as the engine does, without an engine, a server or a cluster:
 *
 *     const response = await call(sync, "website.yaml", { children: ["Deployment.apps/v1"] });
 *
 * The first document in the file is the parent; the others are its observed children. Request and
 * response pass through protobuf messages, as in a server. The response is then checked by the
 * engine's rules, so that a test finds what the engine would reject. Rules that need a cluster,
 * such as whether the API server knows a kind, are not checked.
 *
 * Write a kind of children as "Deployment.apps/v1", or as "Namespace.v1:Cluster" if it is
 * cluster-scoped. A parent without a namespace is taken for cluster-scoped: children must then name
 * a namespace, unless their kind is declared as cluster-scoped.
 *
 * @packageDocumentation
 */
import { readFile } from "node:fs/promises";
import { create, type Message } from "@bufbuild/protobuf";
import type { Dependency } from "./child.js";
import { decodeRequest, encodeResponse, hasInput, methodOf, SHAPES, type Request, type Shape } from "./codec.js";
import { ConditionStatus, EventType, type ResponseDetails, Severity } from "./gen/hookloop/hook/v1/response_pb.js";
import type { Dependency as DependencyMessage, DesiredObject } from "./gen/hookloop/hook/v1/desired_pb.js";
import type { KeyPatch } from "./gen/hookloop/decorator/v1/decorator_pb.js";
import { RelatedGroupSchema } from "./gen/hookloop/hook/v1/related_pb.js";
import { ObjectGroupSchema, type ObservedObject, ObservedObjectSchema } from "./gen/hookloop/hook/v1/observed_pb.js";
import type {
  AnyFunction, CustomizeFunction, CustomizeResponse, DecorateFunction, DecorateResponse, MapFinalizeFunction,
  MapFunction, MapResponse, Operation, SyncFunction, SyncResponse, TombstoneFunction, TombstoneResponse,
} from "./hooks.js";
import { parse, stringify } from "./json.js";
import type { KubernetesObject, Unstructured } from "./objects.js";
import { key } from "./request.js";
import { decodeRules } from "./rules.js";
import { CONTROLLER_NAME, declaredKinds, nameOf, validate } from "./validate.js";

/** A list of objects, or the path of a YAML or JSON file. */
export type Objects = string | readonly object[];

/** What else a request contains. */
export interface RequestOptions {
  /**
   * Kinds ("Pod.v1") that the controller declares and that have no observed child here. The
   * response may contain only declared kinds.
   */
  children?: readonly string[];
  /** Related objects by the name of their rule, or by resource ("configmaps.v1"). */
  related?: Readonly<Record<string, readonly object[]>>;
  /** Whether the parent is being finalized. */
  finalizing?: boolean;
}

/** What else a request to a map hook contains. */
export interface MapRequestOptions extends Pick<RequestOptions, "related"> {
  /** Kinds that the controller declares for outputs, as RequestOptions.children. */
  outputs?: readonly string[];
}

/** What else a request to a tombstone function contains. */
export interface TombstoneRequestOptions extends MapRequestOptions {
  /** Identifies the input that is gone. */
  mapKey?: string;
}

/** A desired object as the engine decodes it. */
export interface DesiredChild {
  object: Unstructured;
  ready?: boolean;
  dependsOn: Dependency[];
}

/** A response to sync or finalize, as the engine decodes it. */
export type CheckedSyncResponse = SyncResponse & { children: Unstructured[]; desired: DesiredChild[] };

/** A decorator's response, as the engine decodes it. */
export type CheckedDecorateResponse = DecorateResponse & { attachments: Unstructured[]; desired: DesiredChild[] };

/** A map hook's response, as the engine decodes it. */
export type CheckedMapResponse = MapResponse & { outputs: Unstructured[]; desired: DesiredChild[] };

/** A tombstone function's response, as the engine decodes it. */
export type CheckedTombstoneResponse = TombstoneResponse & { outputs: Unstructured[] };

const CONTROLLER = {
  apiVersion: "metacontroller.k8s.io/v1alpha1", kind: "CompositeController", metadata: { name: CONTROLLER_NAME },
};

/**
 * Calls a composite's sync or finalize function. The objects are the parent, then its observed
 * children. Resolves to the response, and rejects if the engine would reject it.
 */
export async function call<Parent>(
  fn: SyncFunction<Parent>, objects: Objects, options: RequestOptions = {},
): Promise<CheckedSyncResponse> {
  return (await callShape(SHAPES.composite, syncOrFinalize(options), fn, objects, options)) as CheckedSyncResponse;
}

/** Calls a decorator's function. The objects are the object to decorate, then its attachments. */
export async function decorate<Parent>(
  fn: DecorateFunction<Parent>, objects: Objects, options: RequestOptions = {},
): Promise<CheckedDecorateResponse> {
  return (await callShape(SHAPES.decorator, syncOrFinalize(options), fn, objects, options)) as CheckedDecorateResponse;
}

function syncOrFinalize({ finalizing }: RequestOptions): Operation {
  return finalizing ? "finalize" : "sync";
}

/**
 * Calls a map hook's map function. The objects are the parent, the input, then the input's outputs.
 */
export async function mapInput<Parent, Input>(
  fn: MapFunction<Parent, Input>, objects: Objects, { outputs, ...options }: MapRequestOptions = {},
): Promise<CheckedMapResponse> {
  const rest = { ...options, children: outputs ?? [] };
  return (await callShape(SHAPES.map, "map", fn, objects, rest)) as CheckedMapResponse;
}

/** Calls a map hook's finalize function, as mapInput does. */
export async function finalizeInput<Parent, Input>(
  fn: MapFinalizeFunction<Parent, Input>, objects: Objects, { outputs, ...options }: MapRequestOptions = {},
): Promise<CheckedMapResponse> {
  const rest = { ...options, children: outputs ?? [] };
  return (await callShape(SHAPES.map, "finalize", fn, objects, rest)) as CheckedMapResponse;
}

/**
 * Calls a map hook's tombstone function. The objects are the parent, then the outputs of the input
 * that is gone. The result lists the outputs to keep.
 */
export async function tombstone<Parent>(
  fn: TombstoneFunction<Parent>, objects: Objects, { outputs, ...options }: TombstoneRequestOptions = {},
): Promise<CheckedTombstoneResponse> {
  const rest = { ...options, children: outputs ?? [] };
  return (await callShape(SHAPES.map, "tombstone", fn, objects, rest)) as CheckedTombstoneResponse;
}

/** Calls a customize function for the first object. Rejects if the response is invalid. */
export async function customize<Parent>(fn: CustomizeFunction<Parent>, objects: Objects): Promise<CustomizeResponse> {
  const shape = SHAPES.composite;
  const [parent] = await load(objects);
  const method = methodOf(shape, "customize");
  const init: Record<string, unknown> = { controller: message(CONTROLLER), parent: message(parent!) };
  const request = create(method.input, init) as Request;
  const response = await invoke(fn, decodeRequest(shape, "customize", request));
  encodeResponse(shape, "customize", method, response);
  return response as CustomizeResponse;
}

const RECORDING_FORMAT = "hookloop.dev/recording/v1";

/** A recorded group. */
interface RecordedGroup {
  apiVersion: string;
  kind: string;
  resource: string;
  namespaced: boolean;
  name?: string;
}

type RecordedObjects = Record<string, Record<string, KubernetesObject>>;

/** The fields of a recording that replay needs. */
interface Recording {
  format: string;
  kind: string;
  operation: string;
  children: RecordedGroup[];
  related?: RecordedGroup[];
  question: Record<string, unknown> & { related?: RecordedObjects; required?: RecordedObjects; mapKey?: string };
}

/**
 * Calls a function with a request that "hookloop serve --record-dir" recorded. Pass the function
 * for the recorded kind and operation. Resolves to the response, as call does. Rejects if the
 * engine would reject the response, or if the file is not a recording of this version.
 */
export async function replay(fn: unknown, file: string): Promise<CheckedReplay> {
  const { kind, operation, children, related, question } = await readRecording(file);
  const shape = (SHAPES as Record<string, Shape>)[kind];
  if (!shape) {
    throw new Error(`${file}: kind: got "${kind}", expected composite, decorator or map`);
  }
  if (!["sync", "finalize", "map", "tombstone"].includes(operation)) {
    throw new Error(`${file}: operation: got "${operation}", expected sync, finalize, map or tombstone`);
  }
  const objects = [question[shape.parent], question["input"]].filter((found) => found !== undefined) as object[];
  for (const group of Object.values(question[shape.children] as RecordedObjects)) {
    objects.push(...Object.values(group));
  }
  const options = {
    children: children.map((group) => `${group.kind}.${group.apiVersion}${group.namespaced ? "" : ":Cluster"}`),
    related: Object.fromEntries((related ?? []).map((group) => recordedRelated(question, group))),
    mapKey: question.mapKey,
  };
  return (await callShape(shape, operation as Operation, fn, objects, options)) as CheckedReplay;
}

/** A response to a recorded request, as the engine decodes it. */
export type CheckedReplay = Record<string, unknown> & { desired: DesiredChild[] };

function recordedRelated(question: Recording["question"], group: RecordedGroup): [string, object[]] {
  const { apiVersion, kind, resource, name } = group;
  const found = name ? question.required?.[name] : question.related?.[key(kind, apiVersion)];
  return [name ?? `${resource}.${apiVersion}`, Object.values(found ?? {})];
}

async function readRecording(file: string): Promise<Recording> {
  let recording: Partial<Recording>;
  try {
    recording = parse(await readFile(file, "utf8")) as Partial<Recording>;
  } catch (error) {
    throw new Error(`${file}: is no recording: ${String(error)}; expected a file of hookloop serve --record-dir`);
  }
  if (recording?.format !== RECORDING_FORMAT) {
    throw new Error(`${file}: format: got "${recording?.format}", expected "${RECORDING_FORMAT}": record it again`);
  }
  return recording as Recording;
}

/** Reads objects from a YAML or JSON file, or from a list. There must be at least one. */
export async function load(objects: Objects): Promise<KubernetesObject[]> {
  const loaded = typeof objects === "string" ? await read(objects) : objects;
  if (loaded.length === 0) {
    throw new Error(`${String(objects)}: got no object, expected the parent`);
  }
  return loaded as KubernetesObject[];
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
  const values = documents.map((document) => document.toJS() as object | null);
  return values.filter((value): value is object => value !== null);
}

async function callShape<Fn>(
  shape: Shape, operation: Operation, fn: Fn, objects: Objects, options: RequestOptions & { mapKey?: string },
): Promise<object> {
  const [parent, ...others] = await load(objects);
  const input = hasInput(shape, operation) ? inputOf(objects, others.shift()) : undefined;
  const declared = declaredKinds(options.children ?? []);
  const groups = groupsOf(declared, others);
  const mapKey = input ? mapKeyOf(input) : options.mapKey ?? "";
  const method = methodOf(shape, operation);
  const init: Record<string, unknown> = {
    controller: message(CONTROLLER),
    [shape.parent]: message(parent!),
    ...(shape === SHAPES.map ? { mapKey } : {}),
    ...(input ? { input } : {}),
    [shape.children]: [...groups].map(([name, members]) => {
      const [kind, apiVersion] = split(name);
      return create(ObjectGroupSchema, { kind, apiVersion, objects: members });
    }),
    related: Object.entries(options.related ?? {}).map(([name, members]) => {
      const [resource, apiVersion] = split(name);
      const id = name.includes(".") ? { resource, apiVersion } : { name };
      const result = { case: "items" as const, value: { objects: members.map(message) } };
      return create(RelatedGroupSchema, { ...id, result });
    }),
  };
  const request = create(method.input, init) as Request;
  const response = encodeResponse(shape, operation, method, await invoke(fn, decodeRequest(shape, operation, request)));
  const kept = [...groups].flatMap(([kind, members]) =>
    members.map(({ namespace, name }) => nameOf(kind, namespace, name)));
  validate({
    field: shape.children, namespace: parent!.metadata.namespace ?? "", declared, mapKey,
    kept: operation === "tombstone" ? kept : undefined,
  }, response);
  return decodeResponse(shape, response);
}

function inputOf(objects: Objects, input: KubernetesObject | undefined): ObservedObject {
  if (!input) {
    throw new Error(`${String(objects)}: got one object, expected the parent and the input`);
  }
  return message(input);
}

/**
 * Groups observed objects by kind, with a group for each declared kind. It adds their kinds to
 * declared.
 */
function groupsOf(declared: Map<string, boolean>, objects: readonly KubernetesObject[]): Map<string, ObservedObject[]> {
  const groups = new Map<string, ObservedObject[]>([...declared.keys()].map((kind) => [kind, []]));
  for (const found of objects) {
    const kind = key(found.kind, found.apiVersion);
    groups.set(kind, [...(groups.get(kind) ?? []), message(found)]);
    declared.set(kind, declared.get(kind) ?? false);
  }
  return groups;
}

/** Returns an input's map key: Kind.group/namespace/name. */
function mapKeyOf({ apiVersion, kind, namespace, name }: ObservedObject): string {
  const [group, version] = apiVersion.split("/");
  return [version === undefined ? kind : `${kind}.${group}`, namespace, name].filter(Boolean).join("/");
}

async function invoke(fn: unknown, request: object): Promise<unknown> {
  return (fn as AnyFunction)(request, { signal: new AbortController().signal });
}

function split(name: string): [string, string] {
  const dot = name.indexOf(".");
  return [name.slice(0, dot), name.slice(dot + 1)];
}

function message(value: object): ObservedObject {
  const { apiVersion, kind, metadata } = value as Partial<KubernetesObject>;
  if (!apiVersion || !kind || !metadata?.name) {
    const got = `apiVersion ${apiVersion}, kind ${kind} and metadata.name ${metadata?.name}`;
    throw new Error(`got an object with ${got}, expected all three`);
  }
  const body = new TextEncoder().encode(stringify(value));
  const { name, namespace = "" } = metadata;
  return create(ObservedObjectSchema, { apiVersion, kind, name, namespace, body });
}

const SEVERITIES: Readonly<Record<Severity, string>> = {
  [Severity.UNSPECIFIED]: "Info",
  [Severity.INFO]: "Info",
  [Severity.WARNING]: "Warning",
  [Severity.FATAL]: "Fatal",
};

/** The fields of a response message of any service. */
type ResponseMessage = Message & {
  status?: Uint8Array;
  children?: DesiredObject[];
  attachments?: DesiredObject[];
  outputs?: DesiredObject[];
  finalized?: boolean;
  details?: ResponseDetails;
  labels?: KeyPatch;
  annotations?: KeyPatch;
};

const STATUSES = { [ConditionStatus.TRUE]: "True", [ConditionStatus.FALSE]: "False" };

/** Returns the lists of a response's details in the form of ResponseDetails. */
function decodeDetails(
  { conditions, events, results, requirements }: ResponseDetails,
): Record<string, readonly object[]> {
  return {
    conditions: conditions.map(({ type, status, reason, message }) =>
      ({ type, status: STATUSES[status as keyof typeof STATUSES] ?? "Unknown", reason, message })),
    events: events.map(({ type, reason, message }) =>
      ({ type: type === EventType.WARNING ? "Warning" : "Normal", reason, message })),
    results: results.map(({ severity, reason, message }) => ({ severity: SEVERITIES[severity], reason, message })),
    requirements: decodeRules(requirements),
  };
}

function decodeDependency({ apiVersion, kind, namespace, name, condition }: DependencyMessage): Dependency {
  return { apiVersion, kind, namespace, name, condition };
}

/** Returns a response message in the form that functions return. */
function decodeResponse(shape: Shape, message: Message): object {
  const response = message as ResponseMessage;
  const json = (body: Uint8Array): unknown => parse(new TextDecoder().decode(body));
  const desired = (response[shape.children] ?? []).map(({ body, ready, dependsOn }) =>
    ({ object: json(body), ready, dependsOn: dependsOn.map(decodeDependency) }));
  const decoded: Record<string, unknown> = { desired, [shape.children]: desired.map(({ object }) => object) };
  const { details } = response;
  for (const [field, list] of details ? Object.entries(decodeDetails(details)) : []) {
    if (list.length > 0) {
      decoded[field] = list;
    }
  }
  if (response.status) {
    decoded["status"] = json(response.status);
  }
  if (details?.resyncAfter) {
    decoded["resyncAfterSeconds"] = Number(details.resyncAfter.seconds) + details.resyncAfter.nanos / 1e9;
  }
  if (response.finalized) {
    decoded["finalized"] = true;
  }
  for (const field of ["labels", "annotations"] as const) {
    const { set = {}, remove = [] } = response[field] ?? {};
    const removed = remove.map((key) => [key, null]);
    if (Object.keys(set).length + removed.length > 0) {
      decoded[field] = { ...set, ...Object.fromEntries(removed) };
    }
  }
  return decoded;
}
