/**
 * Decodes requests.
 *
 * An object's body is parsed on first access, usually only once: a stream uses the same message in
 * several requests, and the parsed object is cached by message (see decoded.ts for the limit).
 * Therefore objects are frozen.
 */
import { Decoded } from "./decoded.js";
import { InvalidRequest, NotServed, RelatedUnknown } from "./errors.js";
import {
  Encoding, type ObjectGroup, type ObservedObject as ObjectMessage,
} from "./gen/hookloop/hook/v1/observed_pb.js";
import type { RelatedGroup as RelatedMessage } from "./gen/hookloop/hook/v1/related_pb.js";
import type { DecorateRequest, MapRequest, SyncRequest } from "./hooks.js";
import { parse } from "./json.js";
import type { KubernetesKinds } from "./kinds.js";
import {
  RelatedGroup, type Frozen, type Group, type Groups, type RelatedGroups, type Unstructured,
} from "./objects.js";

type ObservedObject = Frozen<Unstructured>;

/** A request that contains children, attachments or outputs. */
type Observed = Pick<SyncRequest<unknown>, "children"> | Pick<DecorateRequest<unknown>, "attachments"> |
  Pick<MapRequest<unknown, unknown>, "outputs">;

/**
 * Returns children, attachments or outputs of one kind by name:
 *
 *     childrenOf(request, "Pod.v1")
 *
 * The kind decides the type. If a kind is not in KubernetesKinds, pass the type:
 * childrenOf<Website>(request, "Website.demo.example.com/v1"). Throws if the controller does not
 * declare the kind.
 */
export function childrenOf<Key extends keyof KubernetesKinds>(
  request: Observed, kind: Key,
): Group<KubernetesKinds[Key]>;
export function childrenOf<T = Unstructured>(request: Observed, kind: string): Group<T>;
export function childrenOf(request: Observed, kind: string): Group {
  const groups: Readonly<Record<string, Group>> = "children" in request ? request.children
    : "outputs" in request ? request.outputs : request.attachments;
  const group = groups[kind];
  if (!group) {
    const declared = Object.keys(groups).join(", ");
    throw new Error(`children of kind ${kind}: the controller does not declare it; it declares [${declared}]`);
  }
  return group;
}

/** Decodes children by kind, each group by name. */
export function decodeChildren(groups: readonly ObjectGroup[], namespace: string): Groups {
  return record(groups, ({ kind, apiVersion, objects }) =>
    [key(kind, apiVersion), decodeGroup(objects, namespace)]) as Groups;
}

/** Decodes related objects, by the name of their rule or, if it has no name, by resource. */
export function decodeRelated(groups: readonly RelatedMessage[], namespace: string): RelatedGroups {
  return record(groups, (group) =>
    [group.name || key(group.resource, group.apiVersion), relatedGroup(group, namespace)]) as RelatedGroups;
}

function relatedGroup(group: RelatedMessage, namespace: string): RelatedGroup {
  const resource = key(group.resource, group.apiVersion);
  switch (group.result.case) {
    case "items":
      return new RelatedGroup<Unstructured>(decodeGroup(group.result.value.objects, namespace));
    case "notFound":
      return new RelatedGroup({}, new NotServed(`${resource} is not served: ${group.result.value.message}`));
    case "error": {
      const { message } = group.result.value;
      return new RelatedGroup({}, new RelatedUnknown(`${resource} is unknown: ${message}`));
    }
    default: {
      const problem = "the result has an unknown type, expected items, not_found or error";
      return new RelatedGroup({}, new RelatedUnknown(`${resource}: ${problem}`));
    }
  }
}

/**
 * Decoded groups by the list of messages that they were made from: one for each group of a request
 * that runs, or of a set that a session holds. A group has a getter for each message, no content.
 */
const groupsOf = new WeakMap<readonly ObjectMessage[], { namespace: string; group: Group }>();

function decodeGroup(messages: readonly ObjectMessage[], namespace: string): Group {
  const cached = groupsOf.get(messages);
  if (cached?.namespace === namespace) {
    return cached.group;
  }
  const objects = Object.create(null) as Record<string, ObservedObject>;
  for (const message of messages) {
    const get = (): ObservedObject => decodeObject(message, message.kind);
    Object.defineProperty(objects, keyOf(message, namespace), { configurable: true, enumerable: true, get });
  }
  const group = Object.freeze(objects);
  groupsOf.set(messages, { namespace, group });
  return group;
}

const decoded = new Decoded<ObservedObject>();

/** Decodes an observed object. If the object is missing, the error names the field. */
export function decodeObject(message: ObjectMessage | undefined, field: string): ObservedObject {
  if (!message) {
    throw new InvalidRequest(`${field} is missing; expected an object`);
  }
  return decoded.get(message, (fresh) => freeze(read(fresh)) as ObservedObject);
}

function read(message: ObjectMessage): object {
  const name = `${message.kind} "${message.name}"`;
  if (message.encoding !== Encoding.UNSPECIFIED && message.encoding !== Encoding.JSON) {
    throw new InvalidRequest(`${name}: encoding is ${message.encoding}, expected ENCODING_JSON`);
  }
  let object: unknown;
  try {
    object = parse(new TextDecoder("utf-8", { fatal: true }).decode(message.body));
  } catch (error) {
    throw new InvalidRequest(`${name}: ${(error as Error).message}`);
  }
  if (typeof object !== "object" || object === null || Array.isArray(object)) {
    throw new InvalidRequest(`${name}: the body is not a JSON object`);
  }
  return object;
}

function freeze(value: unknown): unknown {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}

function keyOf({ name, namespace }: ObjectMessage, parentNamespace: string): string {
  return namespace === "" || namespace === parentNamespace ? name : `${namespace}/${name}`;
}

/**
 * Returns Kind.group/version, or Kind.version for the core group. Keys of resources have the same
 * form.
 */
export function key(kind: string, apiVersion: string): string {
  return `${kind}.${apiVersion}`;
}

/** Returns a record without a prototype, because objects can have names such as "constructor". */
function record<T, V>(items: readonly T[], entry: (item: T) => [string, V]): Readonly<Record<string, V>> {
  const members = Object.create(null) as Record<string, V>;
  for (const item of items) {
    const [name, value] = entry(item);
    members[name] = value;
  }
  return Object.freeze(members);
}
