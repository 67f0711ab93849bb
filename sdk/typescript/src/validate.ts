/**
 * Checks responses by the engine's rules, as far as these depend on nothing but the parent and the
 * declared kinds. "@hookloop/hook/testing" uses it.
 *
 * Limits, patterns and reserved names are in gen/answerrules.ts, which tools/gen.sh makes. The
 * cases of sdk/testdata/answers.json test the engine and all SDKs. An error is an InvalidResponse
 * that names the item.
 */
import { createHash } from "node:crypto";
import type { Message } from "@bufbuild/protobuf";
import { InvalidResponse } from "./errors.js";
import { RULES } from "./gen/answerrules.js";
import type { KeyPatch } from "./gen/hookloop/decorator/v1/decorator_pb.js";
import { type ResponseDetails, Severity } from "./gen/hookloop/hook/v1/response_pb.js";
import {
  type LabelSelector, LabelSelectorRequirement_Operator as Operator, type RelatedResourceRule,
} from "./gen/hookloop/hook/v1/related_pb.js";
import type { DesiredObject } from "./gen/hookloop/hook/v1/desired_pb.js";
import { parse } from "./json.js";

/** Marks a declared kind as cluster-scoped: "Namespace.v1:Cluster". */
const CLUSTER = ":Cluster";
/** The controller's name in requests that "@hookloop/hook/testing" makes. */
export const CONTROLLER_NAME = "test";
/** How many names a message lists at most. */
const MAX_NAMED = 10;

const KIND = /^[^.:]+\.[^:]+$/;
/**
 * The engine marks objects with the annotations of MARKS: they name the controller of an attachment
 * or output, and an output's input. An output also carries a label of this name with a hash of the
 * input's key.
 */
const { formats: FORMATS, limits: LIMITS, marks: MARKS, relatedRule: RELATED_RULE } = RULES;
const RESERVED: Record<"conditions" | "annotations", readonly string[]> = RULES.reserved;

/** Declared kinds. The value is true if the kind is cluster-scoped. */
export type Kinds = ReadonlyMap<string, boolean>;

/** Parses kinds such as "Pod.v1" and "Namespace.v1:Cluster". */
export function declaredKinds(keys: readonly string[]): Map<string, boolean> {
  return new Map(keys.map((key) => {
    const clusterScoped = key.endsWith(CLUSTER);
    const kind = clusterScoped ? key.slice(0, -CLUSTER.length) : key;
    if (!KIND.test(kind)) {
      throw new Error(`kind ${quoted(key)}: expected one such as Pod.v1, Deployment.apps/v1 or Namespace.v1${CLUSTER}`);
    }
    return [kind, clusterScoped];
  }));
}

/** What the rules need to know about a response. */
export interface Scope {
  readonly field: "children" | "attachments" | "outputs";
  /** The parent's namespace. */
  readonly namespace: string;
  readonly declared: Kinds;
  /** The key in a map hook's request. */
  readonly mapKey: string;
  /** Outputs that a tombstone may keep, as nameOf names them; undefined for other responses. */
  readonly kept?: readonly string[] | undefined;
}

/** Fields of a response message that are checked. */
export type Checked = Message & {
  children?: DesiredObject[];
  attachments?: DesiredObject[];
  outputs?: DesiredObject[];
  details?: ResponseDetails;
  labels?: KeyPatch;
  annotations?: KeyPatch;
};

/**
 * Throws if the engine would reject a response. If a result is fatal, the engine reads only the
 * requirements.
 */
export function validate(scope: Scope, response: Checked): void {
  checkRequirements(response.details?.requirements ?? []);
  if (response.details?.results.some(({ severity }) => severity === Severity.FATAL)) {
    return;
  }
  const desired = response[scope.field] ?? [];
  const refs = desired.map(({ body }, index) =>
    refOf(scope, parse(new TextDecoder().decode(body)) as Body, `${scope.field}[${index}]`));
  const first = new Map<string, number>();
  refs.forEach((ref, index) => {
    const earlier = first.get(ref);
    if (earlier !== undefined) {
      const problem = `is desired twice, first as ${scope.field}[${earlier}]; expected each object once`;
      throw new InvalidResponse(`${scope.field}[${index}] ${ref}: ${problem}`);
    }
    first.set(ref, index);
  });
  checkKept(scope, refs);
  checkDependencies(scope, refs, desired);
  checkPatches(response);
  if (response.details) {
    checkDetails(response.details);
  }
}

/** A desired object with a valid apiVersion, kind and name. */
interface Body {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: unknown; labels?: unknown; annotations?: unknown; finalizers?: unknown };
}

/** Returns an object's name as in the engine's messages. Two objects never have the same name. */
export function nameOf(kind: string, namespace: string, name: string): string {
  return `${kind} ${quoted(namespace ? `${namespace}/${name}` : name)}`;
}

/** Checks one desired object, and returns its name. */
function refOf(scope: Scope, { apiVersion, kind: name, metadata }: Body, place: string): string {
  checkMetadata(metadata, place);
  const kind = `${name}.${apiVersion}`;
  const namespace = (metadata.namespace ?? "") as string;
  const item = `${place} ${nameOf(kind, namespace, metadata.name)}`;
  if (!scope.declared.has(kind)) {
    const expected = `expected one of [${[...scope.declared.keys()].sort().join(", ")}]`;
    throw new InvalidResponse(`${item}: kind is not declared by the controller; ${expected}`);
  }
  const completed = namespaceOf(scope, kind, metadata.name, namespace, item);
  checkMarks(scope, metadata, item);
  return nameOf(kind, completed, metadata.name);
}

/** Checks that an object does not look as if another controller or input owned it. */
function checkMarks(scope: Scope, metadata: Body["metadata"], item: string): void {
  const { annotations, labels } = metadata as { annotations?: Record<string, string>; labels?: Record<string, string> };
  for (const mark of Object.values(MARKS)) {
    const { key } = mark;
    const value = annotations?.[key];
    if (typeof value === "string" && scope.field !== mark.list) {
      const expected = `expected none, because it names the ${mark.names} that an object belongs to`;
      throw new InvalidResponse(`${item}: metadata.annotations[${quoted(key)}] is ${quoted(value)}; ${expected}`);
    }
  }
  if (scope.field !== "outputs") {
    return;
  }
  const hash = createHash("sha256").update(scope.mapKey).digest("hex").slice(0, 32);
  for (const { field, values, key, expected } of [
    { field: "annotations", values: annotations, key: MARKS.mapController.key, expected: CONTROLLER_NAME },
    { field: "annotations", values: annotations, key: MARKS.mapKey.key, expected: scope.mapKey },
    { field: "labels", values: labels, key: MARKS.mapKey.key, expected: hash },
  ]) {
    const value = values?.[key];
    if (typeof value === "string" && value !== expected) {
      const problem = `metadata.${field}[${quoted(key)}] is ${quoted(value)}`;
      throw new InvalidResponse(`${item}: ${problem}; expected ${quoted(expected)}, or none`);
    }
  }
}

/** Checks that outputs to keep are in the request. */
function checkKept({ field, kept }: Scope, refs: readonly string[]): void {
  const index = kept ? refs.findIndex((ref) => !kept.includes(ref)) : -1;
  if (!kept || index < 0) {
    return;
  }
  const names = [...kept].sort();
  const more = names.length - MAX_NAMED;
  const shown = more > 0 ? [...names.slice(0, MAX_NAMED), `and ${more} more`] : names;
  const expected = `expected some of the outputs of the request: [${shown.join(", ")}]`;
  throw new InvalidResponse(`${field}[${index}] ${refs[index]}: does not exist; ${expected}`);
}

/** Checks the types of metadata's fields. */
function checkMetadata(metadata: Body["metadata"], item: string): void {
  if (!isText(metadata.namespace)) {
    throw new InvalidResponse(`${item}: metadata.namespace: expected a string`);
  }
  for (const field of ["labels", "annotations"] as const) {
    const values = metadata[field] ?? {};
    if (typeof values !== "object" || Array.isArray(values)) {
      throw new InvalidResponse(`${item}: metadata.${field}: expected an object with strings as values`);
    }
    for (const [key, value] of Object.entries(values)) {
      if (!isText(value)) {
        throw new InvalidResponse(`${item}: metadata.${field}[${quoted(key)}]: expected a string`);
      }
    }
  }
  const finalizers = metadata.finalizers ?? [];
  if (!Array.isArray(finalizers) || !finalizers.every(isText)) {
    throw new InvalidResponse(`${item}: metadata.finalizers: expected an array of strings`);
  }
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
}

/**
 * Checks name and namespace, and returns the namespace. A missing one defaults to the parent's.
 * Kinds are namespaced unless they are declared as cluster-scoped.
 */
function namespaceOf(scope: Scope, kind: string, name: string, namespace: string, item: string): string {
  for (const [field, value] of Object.entries({ name, namespace })) {
    if (value === "." || value === ".." || /[/%]/.test(value)) {
      const rule = "may not be '.' or '..', and may not contain '/' or '%'";
      throw new InvalidResponse(`${item}: metadata.${field} is ${quoted(value)}: ${rule}`);
    }
  }
  if (scope.declared.get(kind)) {
    if (scope.namespace) {
      const expected = "expected a namespaced object, because the parent is in a namespace";
      throw new InvalidResponse(`${item}: is cluster-scoped; ${expected}`);
    }
    if (namespace) {
      const expected = "expected none, because the kind is cluster-scoped";
      throw new InvalidResponse(`${item}: metadata.namespace is ${quoted(namespace)}; ${expected}`);
    }
    return "";
  }
  if (!namespace && !scope.namespace) {
    const expected = "expected one, because the parent is cluster-scoped";
    const hint = `(if this kind is, too, declare it as ${quoted(kind + CLUSTER)})`;
    throw new InvalidResponse(`${item}: metadata.namespace is missing; ${expected} ${hint}`);
  }
  if (scope.namespace && namespace && namespace !== scope.namespace) {
    const expected = `expected ${quoted(scope.namespace)}, the parent's`;
    throw new InvalidResponse(`${item}: metadata.namespace is ${quoted(namespace)}; ${expected}`);
  }
  return namespace || scope.namespace;
}

/** Checks that objects depend only on other desired objects, and that there is no cycle. */
function checkDependencies(
  { field, namespace, declared }: Scope, refs: readonly string[], desired: readonly DesiredObject[],
): void {
  const edges = new Map<string, string[]>(refs.map((ref) => [ref, []]));
  desired.forEach(({ dependsOn }, index) => {
    const ref = refs[index]!;
    for (const named of dependsOn) {
      const kind = `${named.kind}.${named.apiVersion}`;
      const on = nameOf(kind, named.namespace || (declared.get(kind) === false ? namespace : ""), named.name);
      const problem = on === ref ? "itself" : edges.has(on) ? "" : `${on}, which is not desired`;
      if (problem) {
        const expected = "expected another of the desired objects";
        throw new InvalidResponse(`${field}[${index}] ${ref}: depends on ${problem}; ${expected}`);
      }
      edges.get(ref)!.push(on);
    }
  });
  const [first, ...circle] = findCircle(edges);
  if (first !== undefined) {
    const path = circle.join(" → ");
    throw new InvalidResponse(`${field}[${refs.indexOf(first)}] ${first}: the dependencies go in a circle: ${path}`);
  }
}

/**
 * Returns the first object that leads to a cycle, and the cycle with its first object repeated at
 * the end. The list is empty if there is no cycle.
 */
function findCircle(edges: ReadonlyMap<string, readonly string[]>): string[] {
  let left = new Set(edges.keys());
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    const candidates = left;
    left = new Set([...left].filter((ref) => edges.get(ref)!.some((on) => candidates.has(on))));
  }
  const [first] = left;
  if (first === undefined) {
    return [];
  }
  for (const path = [first]; ; ) {
    const next = edges.get(path.at(-1)!)!.find((on) => left.has(on))!;
    if (path.includes(next)) {
      return [first, ...path.slice(path.indexOf(next)), next];
    }
    path.push(next);
  }
}

function checkPatches({ labels, annotations }: Checked): void {
  for (const key of keysOf(labels)) {
    refuse(keyProblem(key) || valueProblem(labels?.set[key] ?? ""), `labels[${quoted(key)}]`);
  }
  for (const key of keysOf(annotations)) {
    const reserved = RESERVED.annotations.includes(key) ? "belongs to the engine; expected another key" : "";
    const problem = keyProblem(key.toLowerCase()) || reserved;
    refuse(problem, `annotations[${quoted(key)}]`);
  }
}

function keysOf(patch: KeyPatch | undefined): string[] {
  return patch ? [...Object.keys(patch.set), ...patch.remove] : [];
}

function checkDetails({ conditions, events, results }: ResponseDetails): void {
  for (const [field, { length }] of Object.entries({ conditions, events, results })) {
    refuse(length > LIMITS.remarks ? `are ${length}, expected at most ${LIMITS.remarks}` : "", field);
  }
  conditions.forEach(({ type, reason }, index) => {
    const item = `conditions[${index}] ${quoted(type)}`;
    refuse(RESERVED.conditions.includes(type) ? "belongs to the engine; expected another type" : "", item);
    const problem = keyProblem(type);
    refuse(problem && `type: ${problem}`, item);
    refuse(reasonProblem(reason), item);
  });
  events.forEach(({ reason }, index) => refuse(reasonProblem(reason), `events[${index}]`));
  results.forEach(({ reason }, index) => refuse(reasonProblem(reason), `results[${index}]`));
}

function reasonProblem(reason: string): string {
  return matches("reason", reason) ? "" : `reason is ${quoted(reason)}; expected ${FORMATS.reason.expected}`;
}

/** Checks what can be checked without asking the API server for its resources. */
function checkRequirements(rules: readonly RelatedResourceRule[]): void {
  if (rules.length > LIMITS.requirements) {
    throw new InvalidResponse(`requirements are ${rules.length}, expected at most ${LIMITS.requirements}`);
  }
  const named = new Map<string, string>();
  rules.forEach((rule, index) => {
    const item = `requirements[${index}]${rule.name ? ` ${quoted(rule.name)}` : ""}`;
    refuse(ruleProblem(rule), item);
    const resource = `${rule.resource}.${rule.apiVersion}`;
    const earlier = named.get(rule.name) ?? resource;
    if (rule.name && earlier !== resource) {
      const problem = `selects ${resource}, and an earlier rule of the name ${earlier}`;
      throw new InvalidResponse(`${item}: ${problem}; expected one resource for each name`);
    }
    named.set(rule.name, earlier);
  });
}

function ruleProblem(rule: RelatedResourceRule): string {
  if (rule.name && !matches("group", rule.name)) {
    return `name is not usable; expected ${FORMATS.group.expected}`;
  }
  for (const field of ["apiVersion", "resource"] as const) {
    if (!rule[field]) {
      return `${field} is missing; expected ${RELATED_RULE.required[field]}`;
    }
  }
  const isSet = (field: keyof RelatedResourceRule) => Array.isArray(rule[field]) ? rule[field].length > 0 : rule[field];
  const exclusive = RELATED_RULE.exclusive.find(([one, other]) => isSet(one) && isSet(other));
  if (exclusive) {
    return `${exclusive.join(" and ")} are both set; expected one of them`;
  }
  if (rule.names.includes("")) {
    return "names has an empty name; expected names of objects";
  }
  const labels = selectorProblem(rule.labelSelector);
  const namespaces = selectorProblem(rule.namespaceSelector);
  return labels ? `labelSelector: ${labels}` : namespaces && `namespaceSelector: ${namespaces}`;
}

function selectorProblem(selector?: LabelSelector): string {
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) {
    const problem = keyProblem(key) || valueProblem(value);
    if (problem) {
      return `matchLabels[${quoted(key)}]: ${problem}`;
    }
  }
  for (const [index, { key, operator, values }] of (selector?.matchExpressions ?? []).entries()) {
    const exact = operator === Operator.IN || operator === Operator.NOT_IN;
    const counted = exact === values.length > 0 ? "" : "In and NotIn need values, Exists and DoesNotExist have none";
    const problem = keyProblem(key) || values.map(valueProblem).find((one) => one) || counted;
    if (problem) {
      return `matchExpressions[${index}]: ${problem}`;
    }
  }
  return "";
}

/**
 * Returns what is wrong with the key of a label or annotation, or with a condition's type, or an
 * empty string.
 */
function keyProblem(key: string): string {
  const slash = key.lastIndexOf("/");
  const prefix = key.slice(0, Math.max(slash, 0));
  if (slash >= 0 && (prefix.length > LIMITS.prefix || !matches("prefix", prefix))) {
    return `the prefix before '/' must be ${FORMATS.prefix.expected}`;
  }
  return matches("name", key.slice(slash + 1)) ? "" : `expected ${FORMATS.name.expected}`;
}

function valueProblem(value: string): string {
  return value === "" || matches("name", value) ? "" : `expected a value of ${FORMATS.name.expected}`;
}

/** Reports whether a text has the format of that name. */
function matches(name: keyof typeof FORMATS, text: string): boolean {
  return new RegExp(FORMATS[name].pattern).test(text);
}

function refuse(problem: string, item: string): void {
  if (problem) {
    throw new InvalidResponse(`${item}: ${problem}`);
  }
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
