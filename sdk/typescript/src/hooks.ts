/** The functions of a hook, their requests and their responses. */
import type { ConditionStatus, EventType, Operator, Severity } from "./constants.js";
import type { Frozen, Groups, RelatedGroups, Unstructured } from "./objects.js";

/** The observed state of one parent. */
export interface SyncRequest<Parent = Unstructured> {
  /** The CompositeController. */
  readonly controller: Frozen<Unstructured>;
  readonly parent: Frozen<Parent>;
  readonly children: Groups;
  /**
   * The objects that customize, or the requirements of the last response, selected. The key of a
   * group is the name of its rules or, without a name, the resource ("configmaps.v1").
   */
  readonly related: RelatedGroups;
  /** Reports whether the parent is being deleted, or no longer selected. */
  readonly finalizing: boolean;
}

/** The observed state of one object to decorate. Its fields are those of SyncRequest. */
export interface DecorateRequest<Parent = Unstructured> {
  readonly controller: Frozen<Unstructured>;
  readonly object: Frozen<Parent>;
  readonly attachments: Groups;
  readonly related: RelatedGroups;
  readonly finalizing: boolean;
}

/** The observed state of one input of a parent. */
export interface MapRequest<Parent = Unstructured, Input = Unstructured> {
  /** The MapController. */
  readonly controller: Frozen<Unstructured>;
  /** The parent, which selects the input and owns the outputs. */
  readonly parent: Frozen<Parent>;
  /**
   * Identifies the input within the parent by its group, kind, namespace and name. An input that is
   * deleted and created again has the same key.
   */
  readonly mapKey: string;
  readonly input: Frozen<Input>;
  /** The outputs of this input. */
  readonly outputs: Groups;
  /** The related objects, as in SyncRequest. */
  readonly related: RelatedGroups;
  readonly finalizing: boolean;
}

/**
 * The observed state of one input of a parent that is being deleted, or no longer selected. The
 * input is null if it is gone; the other fields are those of MapRequest.
 */
export type MapFinalizeRequest<Parent = Unstructured, Input = Unstructured> =
  Omit<MapRequest<Parent, Input>, "input"> & { readonly input: Frozen<Input> | null };

/**
 * The observed state of the outputs of an input that is deleted, or no longer selected. Its fields
 * are those of MapRequest.
 */
export type TombstoneRequest<Parent = Unstructured> = Omit<MapRequest<Parent>, "input" | "finalizing">;

/** A parent without its children and related objects. */
export interface CustomizeRequest<Parent = Unstructured> {
  readonly controller: Frozen<Unstructured>;
  readonly parent: Frozen<Parent>;
}

/** The fields that all responses but those to customize share. */
export interface CommonDetails {
  /** Hookloop calls the hook once more after this time in seconds. 0 requests no further call. */
  resyncAfterSeconds?: number | null;
  /** Events to record on the parent. Hookloop skips those that the last response had too. */
  events?: readonly Event[] | null;
  /** Results of the call, for the log and for users. A Fatal result rejects the response. */
  results?: readonly Result[] | null;
  /** Related objects that the next requests for this parent need, without a customize function. */
  requirements?: readonly RelatedRule[] | null;
}

/** The fields that the responses to sync and finalize of composites and decorators share. */
export interface ResponseDetails extends CommonDetails {
  /**
   * Conditions to merge into status.conditions. Hookloop sets lastTransitionTime and
   * observedGeneration.
   */
  conditions?: readonly Condition[] | null;
}

/** An entry of the parent's status.conditions. A response has each type at most once. */
export interface Condition {
  type: string;
  status: ConditionStatus;
  /** One word in CamelCase. */
  reason: string;
  message?: string;
}

/** A Kubernetes Event on the parent. */
export interface Event {
  /** The default is Normal. */
  type?: EventType;
  /** One word in CamelCase. */
  reason: string;
  message?: string;
}

/** A result of the call itself. */
export interface Result {
  /** The default is Info. */
  severity?: Severity;
  /** One word in CamelCase. */
  reason: string;
  message?: string;
}

/** The desired state of one parent. */
export interface SyncResponse extends ResponseDetails {
  /** Replaces the observed status. If it is missing, only Hookloop's own fields remain. */
  status?: object | null;
  /**
   * All objects that should exist, each with apiVersion, kind and metadata.name. Hookloop deletes
   * children that are not in the list, and leaves fields that an object does not set to others.
   * An entry is the object itself, or the result of function child.
   */
  children?: readonly object[] | null;
  /** Reports whether the parent may be deleted. Only finalize uses it. */
  finalized?: boolean | null;
}

/** The desired state of one decorated object. */
export interface DecorateResponse extends ResponseDetails {
  /** Labels to set, or to remove if the value is null. Other labels do not change. */
  labels?: Record<string, string | null> | null;
  /** Annotations to set, or to remove if the value is null. Other annotations do not change. */
  annotations?: Record<string, string | null> | null;
  /** Replaces the observed status. If it is missing, the status does not change. */
  status?: object | null;
  /** All attachments that should exist, as SyncResponse.children. */
  attachments?: readonly object[] | null;
  /** Reports whether the finalizer may be removed. Only finalize uses it. */
  finalized?: boolean | null;
}

/**
 * The desired outputs of one input. Hookloop computes the parent's status from all inputs and
 * outputs, so a response has neither status nor conditions.
 */
export interface MapResponse extends CommonDetails {
  /** All outputs that should exist for the input, as SyncResponse.children. */
  outputs: readonly object[] | null;
  /** Reports whether the hook is done with the input. Only finalize uses it. */
  finalized?: boolean | null;
}

/** The outputs to keep of an input that is gone. */
export interface TombstoneResponse extends CommonDetails {
  /**
   * The outputs of the request to keep. Hookloop does not change them, and deletes all others. With
   * resyncAfterSeconds it calls the hook again, for example when an output expires.
   */
  outputs: readonly object[] | null;
}

/** The related objects of one parent. */
export interface CustomizeResponse {
  relatedResources?: readonly RelatedRule[] | null;
}

/** Selects related objects of one resource: by name, by label, or all. */
export interface RelatedRule {
  apiVersion: string;
  /** The plural resource name in lower case: "configmaps". */
  resource: string;
  /** Selects objects by label. It excludes names. */
  labelSelector?: LabelSelector | null;
  /** Selects namespaces by label. It excludes namespace and names. */
  namespaceSelector?: LabelSelector | null;
  namespace?: string | null;
  names?: readonly string[] | null;
  /** The key of the group in later requests: at most 63 letters, digits, "-" and "_". */
  name?: string | null;
}

/**
 * A label selector. An object must meet all requirements; an empty selector matches all objects.
 */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: readonly Requirement[];
}

/** A requirement on one label. */
export interface Requirement {
  key: string;
  operator: Operator;
  /** The values of In and NotIn. */
  values?: readonly string[];
}

/** The context of one call. */
export interface Call {
  /** Aborts when the engine cancels the call, or when the call's timeout is over. */
  signal: AbortSignal;
}

type Awaitable<T> = T | Promise<T>;

/**
 * Returns the desired children of a parent. As finalize, it is called while the parent is being
 * deleted.
 */
export type SyncFunction<Parent> = (request: SyncRequest<Parent>, call: Call) => Awaitable<SyncResponse>;

/** Returns the desired labels, annotations and attachments of an object that has another owner. */
export type DecorateFunction<Parent> = (request: DecorateRequest<Parent>, call: Call) => Awaitable<DecorateResponse>;

/** Returns the desired outputs of one input. */
export type MapFunction<Parent, Input> =
  (request: MapRequest<Parent, Input>, call: Call) => Awaitable<MapResponse>;

/** Returns the remaining outputs of one input while the parent is finalized. */
export type MapFinalizeFunction<Parent, Input> =
  (request: MapFinalizeRequest<Parent, Input>, call: Call) => Awaitable<MapResponse>;

/** Returns the outputs to keep of an input that is gone. */
export type TombstoneFunction<Parent> =
  (request: TombstoneRequest<Parent>, call: Call) => Awaitable<TombstoneResponse>;

/** Returns rules for the related objects that the other functions need in their requests. */
export type CustomizeFunction<Parent> = (request: CustomizeRequest<Parent>, call: Call) => Awaitable<CustomizeResponse>;

/**
 * The functions of a CompositeController's hook. Those that its spec does not declare may be
 * missing.
 */
export interface CompositeFunctions<Parent = Unstructured> {
  sync?: SyncFunction<Parent>;
  finalize?: SyncFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** The functions of a DecoratorController's hook. */
export interface DecoratorFunctions<Parent = Unstructured> {
  sync?: DecorateFunction<Parent>;
  finalize?: DecorateFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** The functions of a MapController's hook, which are called for each input of a parent. */
export interface MapFunctions<Parent = Unstructured, Input = Unstructured> {
  map?: MapFunction<Parent, Input>;
  tombstone?: TombstoneFunction<Parent>;
  finalize?: MapFinalizeFunction<Parent, Input>;
  customize?: CustomizeFunction<Parent>;
}

/** A function of any kind. The method that the engine calls determines the type of its request. */
export type AnyFunction = (request: any, call: Call) => unknown;

/** The operations of hooks. Each kind of hook has some of them. */
export type Operation = "sync" | "finalize" | "customize" | "map" | "tombstone";

/**
 * A set of functions that a server can serve. Functions composite, decorator and mapper return one.
 */
export interface Hook {
  readonly shape: "composite" | "decorator" | "map";
  /** The name, for a server with several hooks of one kind. named sets it. */
  readonly name?: string;
  readonly functions: { readonly [operation in Operation]?: AnyFunction };
}

/** Returns the hook of a CompositeController. */
export function composite<Parent = Unstructured>(functions: CompositeFunctions<Parent>): Hook {
  return { shape: "composite", functions };
}

/** Returns the hook of a DecoratorController. */
export function decorator<Parent = Unstructured>(functions: DecoratorFunctions<Parent>): Hook {
  return { shape: "decorator", functions };
}

/** Returns the hook of a MapController. */
export function mapper<Parent = Unstructured, Input = Unstructured>(functions: MapFunctions<Parent, Input>): Hook {
  return { shape: "map", functions };
}

/**
 * Returns a hook with a name, so that one program can serve several hooks of one kind:
 *
 *     serve(named("blog", composite({ sync: blog })), named("shop", composite({ sync: shop })));
 *
 * A controller selects one by the field grpc.hook in its spec. A name has at most 63 letters,
 * digits, "-", "_" and ".", and begins and ends with a letter or digit. Hooks of different kinds may
 * have the same name.
 */
export function named(name: string, hook: Hook): Hook {
  return { ...hook, name };
}
