/** The functions that you write, their requests and their responses. */
import type { ConditionStatus, EventType, Operator, Severity } from "./constants.js";
import type { Frozen, Groups, RelatedGroups, Unstructured } from "./objects.js";

/** Describes one parent as Hookloop observed it. */
export interface SyncRequest<Parent = Unstructured> {
  /** The CompositeController that called the hook. */
  readonly controller: Frozen<Unstructured>;
  readonly parent: Frozen<Parent>;
  readonly children: Groups;
  /**
   * Related objects that customize selected, or that the last response selected in requirements.
   * The key is the name of the rule or, if it has no name, the resource ("configmaps.v1").
   */
  readonly related: RelatedGroups;
  /** True while the parent is being deleted, or after it is no longer selected. */
  readonly finalizing: boolean;
}

/** Describes an object to decorate as Hookloop observed it. See SyncRequest for the fields. */
export interface DecorateRequest<Parent = Unstructured> {
  readonly controller: Frozen<Unstructured>;
  readonly object: Frozen<Parent>;
  readonly attachments: Groups;
  readonly related: RelatedGroups;
  readonly finalizing: boolean;
}

/** Describes one input of a parent as Hookloop observed it. */
export interface MapRequest<Parent = Unstructured, Input = Unstructured> {
  /** The MapController that called the hook. */
  readonly controller: Frozen<Unstructured>;
  /** Selects the input and owns the outputs. */
  readonly parent: Frozen<Parent>;
  /**
   * Identifies the input within the parent. It is made of the input's group, kind, namespace and
   * name, so an input that is deleted and created again gets the same key.
   */
  readonly mapKey: string;
  readonly input: Frozen<Input>;
  /** The outputs that exist for this input. */
  readonly outputs: Groups;
  /** The related objects, as in SyncRequest. */
  readonly related: RelatedGroups;
  readonly finalizing: boolean;
}

/**
 * Describes one input while the parent is being deleted, or after it is no longer selected. input
 * is null if it is gone; see MapRequest for the other fields.
 */
export type MapFinalizeRequest<Parent = Unstructured, Input = Unstructured> =
  Omit<MapRequest<Parent, Input>, "input"> & { readonly input: Frozen<Input> | null };

/**
 * Lists the outputs of an input that was deleted or is no longer selected. See MapRequest for the
 * fields.
 */
export type TombstoneRequest<Parent = Unstructured> = Omit<MapRequest<Parent>, "input" | "finalizing">;

/** Asks which related objects the hook needs for a parent. */
export interface CustomizeRequest<Parent = Unstructured> {
  readonly controller: Frozen<Unstructured>;
  readonly parent: Frozen<Parent>;
}

/** What all responses except those to customize can contain. */
export interface CommonDetails {
  /** Calls the hook again after so many seconds. 0 means that Hookloop waits for a change. */
  resyncAfterSeconds?: number | null;
  /** Events to record on the parent, except those that the last response already contained. */
  events?: readonly Event[] | null;
  /** Results for the log and for users. A Fatal result rejects the whole response. */
  results?: readonly Result[] | null;
  /** Selects related objects for the next request, so that the hook needs no customize function. */
  requirements?: readonly RelatedRule[] | null;
}

/** What responses to sync and finalize of composites and decorators can contain. */
export interface ResponseDetails extends CommonDetails {
  /**
   * Conditions to merge into status.conditions. Hookloop sets lastTransitionTime and
   * observedGeneration.
   */
  conditions?: readonly Condition[] | null;
}

/** Is written to the parent's status.conditions. Use each type once. */
export interface Condition {
  type: string;
  status: ConditionStatus;
  /** Should be one CamelCase word. */
  reason: string;
  message?: string;
}

/** Is recorded on the parent as a Kubernetes Event. */
export interface Event {
  /** Defaults to Normal. */
  type?: EventType;
  /** Should be one CamelCase word. */
  reason: string;
  message?: string;
}

/** Tells users something about the response. */
export interface Result {
  /** Defaults to Info. */
  severity?: Severity;
  /** Should be one CamelCase word. */
  reason: string;
  message?: string;
}

/** Describes what should exist for one parent. */
export interface SyncResponse extends ResponseDetails {
  /** Replaces the parent's status. If it is missing, only the fields that Hookloop sets remain. */
  status?: object | null;
  /**
   * Every child that should exist, each with apiVersion, kind and metadata.name. Hookloop deletes
   * observed children that are not in the list, and leaves fields that an object does not set to
   * their owners. Use function child to add dependencies or readiness.
   */
  children?: readonly object[] | null;
  /** Allows the parent to be deleted. Only finalize should set it. */
  finalized?: boolean | null;
}

/** Describes what to add to one object. */
export interface DecorateResponse extends ResponseDetails {
  /** Labels to set, or to remove if the value is null. Other labels do not change. */
  labels?: Record<string, string | null> | null;
  /** Annotations to set, or to remove if the value is null. Other annotations do not change. */
  annotations?: Record<string, string | null> | null;
  /** Replaces the object's status. If it is missing, the status does not change. */
  status?: object | null;
  /** Every attachment that should exist, as in SyncResponse.children. */
  attachments?: readonly object[] | null;
  /** Allows Hookloop to remove its finalizer. Only finalize should set it. */
  finalized?: boolean | null;
}

/**
 * Lists the outputs that should exist for one input. Hookloop computes the parent's status from all
 * inputs and outputs, so there is no status and there are no conditions here.
 */
export interface MapResponse extends CommonDetails {
  /** Every output that should exist for the input, as in SyncResponse.children. */
  outputs: readonly object[] | null;
  /** Tells Hookloop that this input needs no more cleanup. Only finalize should set it. */
  finalized?: boolean | null;
}

/** Lists outputs to keep after their input is gone. */
export interface TombstoneResponse extends CommonDetails {
  /**
   * Outputs from the request that Hookloop should keep as they are. It deletes all others. Set
   * resyncAfterSeconds to be called again, for example when the next output expires.
   */
  outputs: readonly object[] | null;
}

/** Lists rules that select related objects for one parent. */
export interface CustomizeResponse {
  relatedResources?: readonly RelatedRule[] | null;
}

/**
 * Selects related objects. Without names and selectors, it selects every object of the resource.
 */
export interface RelatedRule {
  apiVersion: string;
  /** The plural in lower case, such as "configmaps". */
  resource: string;
  /** Selects objects by label. It cannot be used with names. */
  labelSelector?: LabelSelector | null;
  /** Selects namespaces by label. It cannot be used with namespace or names. */
  namespaceSelector?: LabelSelector | null;
  namespace?: string | null;
  names?: readonly string[] | null;
  /** Becomes the key in SyncRequest.related. It may have 63 letters, digits, "-" and "_". */
  name?: string | null;
}

/**
 * Selects objects by their labels. Labels must satisfy all parts; an empty selector matches
 * everything.
 */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: readonly Requirement[];
}

/** Restricts the value of one label. */
export interface Requirement {
  key: string;
  operator: Operator;
  /** The values that In and NotIn compare. Other operators take none. */
  values?: readonly string[];
}

/** Tells a function about the call that it answers. */
export interface Call {
  /** Is aborted when the engine cancels the call or when the call times out. */
  signal: AbortSignal;
}

type Awaitable<T> = T | Promise<T>;

/**
 * Receives one parent and returns the children that should exist for it. As finalize, it is called
 * while the parent is being deleted, or after it is no longer selected.
 */
export type SyncFunction<Parent> = (request: SyncRequest<Parent>, call: Call) => Awaitable<SyncResponse>;

/**
 * Receives an object that someone else owns, and returns labels, annotations and attachments for
 * it.
 */
export type DecorateFunction<Parent> = (request: DecorateRequest<Parent>, call: Call) => Awaitable<DecorateResponse>;

/** Receives one input and returns the outputs that should exist for it. */
export type MapFunction<Parent, Input> =
  (request: MapRequest<Parent, Input>, call: Call) => Awaitable<MapResponse>;

/** Receives one input while the parent is finalized, and returns the outputs that should remain. */
export type MapFinalizeFunction<Parent, Input> =
  (request: MapFinalizeRequest<Parent, Input>, call: Call) => Awaitable<MapResponse>;

/** Decides which outputs to keep after their input is gone. */
export type TombstoneFunction<Parent> =
  (request: TombstoneRequest<Parent>, call: Call) => Awaitable<TombstoneResponse>;

/** Returns rules that select related objects. Hookloop adds these objects to each request. */
export type CustomizeFunction<Parent> = (request: CustomizeRequest<Parent>, call: Call) => Awaitable<CustomizeResponse>;

/**
 * The functions for a CompositeController. Set one for each hook that the controller's spec
 * declares.
 */
export interface CompositeFunctions<Parent = Unstructured> {
  sync?: SyncFunction<Parent>;
  finalize?: SyncFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** The functions for a DecoratorController. */
export interface DecoratorFunctions<Parent = Unstructured> {
  sync?: DecorateFunction<Parent>;
  finalize?: DecorateFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** The functions for a MapController, which calls them for each input of a parent. */
export interface MapFunctions<Parent = Unstructured, Input = Unstructured> {
  map?: MapFunction<Parent, Input>;
  tombstone?: TombstoneFunction<Parent>;
  finalize?: MapFinalizeFunction<Parent, Input>;
  customize?: CustomizeFunction<Parent>;
}

/** Any function of a hook. The called method decides which request it gets. */
export type AnyFunction = (request: any, call: Call) => unknown;

/** What a hook can be called for. Each kind of hook supports some of these. */
export type Operation = "sync" | "finalize" | "customize" | "map" | "tombstone";

/**
 * Holds functions that serve, Server and attach can call. Make one with composite, decorator or
 * mapper.
 */
export interface Hook {
  readonly shape: "composite" | "decorator" | "map";
  /** The hook's name, which named sets. It is needed if a server has several hooks of one kind. */
  readonly name?: string;
  readonly functions: { readonly [operation in Operation]?: AnyFunction };
}

/** Makes a hook for a CompositeController. */
export function composite<Parent = Unstructured>(functions: CompositeFunctions<Parent>): Hook {
  return { shape: "composite", functions };
}

/** Makes a hook for a DecoratorController. */
export function decorator<Parent = Unstructured>(functions: DecoratorFunctions<Parent>): Hook {
  return { shape: "decorator", functions };
}

/** Makes a hook for a MapController. */
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
