/**
 * Reads the questions of the contract.
 *
 * Bodies are read when they are looked at, and once: what was made of a message is kept with it, so that a stream, on which the same
 * messages are part of many questions, costs what changes. Everything is frozen for that reason.
 */
import { NotServed, InvalidRequest, RelatedUnknown } from "./errors.js";
import { Encoding, type Object$, type ObjectGroup, type RelatedGroup as RelatedMessage } from "./gen/hookloop/hook/v1/object_pb.js";
import type { SyncRequest } from "./hooks.js";
import { parse } from "./json.js";
import { RelatedGroup, type Frozen, type Group, type Groups, type KubernetesObject } from "./objects.js";

type Observed = Frozen<KubernetesObject>;

/** The children of one kind with a type of the author's: childrenOf<Deployment>(request, "Deployment.apps/v1"). */
export function childrenOf<T = KubernetesObject>(request: Pick<SyncRequest<unknown>, "children">, kind: string): Readonly<Record<string, Frozen<T>>> {
  const group = request.children[kind];
  if (!group) {
    throw new Error(`children of kind ${kind}: the controller does not declare it; it declares [${Object.keys(request.children).join(", ")}]`);
  }
  return group as Readonly<Record<string, Frozen<T>>>;
}

/** Children by kind, each group by name. */
export function decodeChildren(groups: readonly ObjectGroup[], namespace: string): Groups {
  return record(groups, (group) => [key(group.kind, group.apiVersion), decodeGroup(group.objects, namespace)]);
}

/** Related objects by the name of their rules or, for rules without a name, by resource. */
export function decodeRelated(groups: readonly RelatedMessage[], namespace: string): Readonly<Record<string, RelatedGroup>> {
  return record(groups, (group) => [group.name || key(group.resource, group.apiVersion), relatedGroup(group, namespace)]);
}

function relatedGroup(group: RelatedMessage, namespace: string): RelatedGroup {
  const resource = key(group.resource, group.apiVersion);
  switch (group.result.case) {
    case "items":
      return new RelatedGroup(decodeGroup(group.result.value.objects, namespace));
    case "notFound":
      return new RelatedGroup({}, new NotServed(`${resource} is not served: ${group.result.value.message}`));
    case "error":
      return new RelatedGroup({}, new RelatedUnknown(`${resource} is not known: ${group.result.value.reason}: ${group.result.value.message}`));
    default:
      return new RelatedGroup({}, new RelatedUnknown(`${resource}: got a result of an unknown kind, expected items, not_found or error`));
  }
}

/** Groups that were made already, by the lists that they were made from. */
const groupsOf = new WeakMap<readonly Object$[], { namespace: string; group: Group }>();

function decodeGroup(messages: readonly Object$[], namespace: string): Group {
  const known = groupsOf.get(messages);
  if (known?.namespace === namespace) {
    return known.group;
  }
  const made = Object.create(null) as Record<string, Observed>;
  for (const message of messages) {
    Object.defineProperty(made, keyOf(message, namespace), { configurable: true, enumerable: true, get: () => decodeObject(message, message.kind) });
  }
  const group = Object.freeze(made);
  groupsOf.set(messages, { namespace, group });
  return group;
}

/** Objects that were read already, by their messages. */
const objectsOf = new WeakMap<Object$, Observed>();

/** One observed object; what names it where it is missing. */
export function decodeObject(message: Object$ | undefined, what: string): Observed {
  if (!message) {
    throw new InvalidRequest(`${what} is missing; expected an object`);
  }
  let found = objectsOf.get(message);
  if (!found) {
    found = freeze(read(message)) as Observed;
    objectsOf.set(message, found);
  }
  return found;
}

function read(message: Object$): object {
  const name = `${message.kind} "${message.name}"`;
  if (message.encoding !== Encoding.UNSPECIFIED && message.encoding !== Encoding.JSON) {
    throw new InvalidRequest(`${name}: encoding is ${message.encoding}, expected ENCODING_JSON`);
  }
  let found: unknown;
  try {
    found = parse(new TextDecoder("utf-8", { fatal: true }).decode(message.body));
  } catch (error) {
    throw new InvalidRequest(`${name}: ${(error as Error).message}`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) {
    throw new InvalidRequest(`${name}: got no JSON object`);
  }
  return found;
}

function freeze(value: unknown): unknown {
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(freeze);
    Object.freeze(value);
  }
  return value;
}

function keyOf({ name, namespace }: Object$, parents: string): string {
  return namespace === "" || namespace === parents ? name : `${namespace}/${name}`;
}

/** Kind.group/version, or Kind.version for the core group. A resource's key is made the same way. */
export function key(kind: string, apiVersion: string): string {
  return `${kind}.${apiVersion}`;
}

/** A record without a prototype: an object may well be called "constructor". */
function record<T, V>(items: readonly T[], entry: (item: T) => [string, V]): Readonly<Record<string, V>> {
  const made = Object.create(null) as Record<string, V>;
  for (const item of items) {
    const [name, value] = entry(item);
    made[name] = value;
  }
  return Object.freeze(made);
}
