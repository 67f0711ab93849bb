/** What a hook is: functions, what they are asked, and what they answer. */
import type { Frozen, Groups, KubernetesObject, RelatedGroup } from "./objects.js";

/** What is observed about one parent. */
export interface SyncRequest<Parent = KubernetesObject> {
  readonly controller: Frozen<KubernetesObject>;
  readonly parent: Frozen<Parent>;
  readonly children: Groups;
  /** What customize, or the last answer's requirements, asked for: by the rules' name or, without one, by resource ("configmaps.v1"). */
  readonly related: Readonly<Record<string, RelatedGroup>>;
  /** Whether the parent is being deleted, or no longer selected. */
  readonly finalizing: boolean;
}

/** What is observed about one object to decorate, as in SyncRequest. */
export interface DecorateRequest<Parent = KubernetesObject> {
  readonly controller: Frozen<KubernetesObject>;
  readonly object: Frozen<Parent>;
  readonly attachments: Groups;
  readonly related: Readonly<Record<string, RelatedGroup>>;
  readonly finalizing: boolean;
}

/** Asks which objects are related to a parent. */
export interface CustomizeRequest<Parent = KubernetesObject> {
  readonly controller: Frozen<KubernetesObject>;
  readonly parent: Frozen<Parent>;
}

/** What answers to sync and finalize may say beside objects. */
export interface Remarks {
  /** Put into the status, beside the conditions that the status itself has. Hookloop keeps lastTransitionTime and observedGeneration. */
  conditions?: readonly Condition[] | null;
  /** Recorded on the parent as Kubernetes Events, when they are news. */
  events?: readonly Event[] | null;
  /** Remarks about the answer itself. One that is Fatal has nothing of it written. */
  results?: readonly Result[] | null;
  /** Related objects that the next questions about this parent should show; with them a hook needs no customize. */
  requirements?: readonly RelatedRule[] | null;
}

/** An entry of the parent's status.conditions. The reason is one word in CamelCase. */
export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message?: string;
}

/** A Kubernetes Event. */
export interface Event {
  /** Normal without one. */
  type?: "Normal" | "Warning";
  reason: string;
  message?: string;
}

/** A remark about an answer: Info is for the log, Warning also an Event, Fatal refuses the answer and asks again with backoff. */
export interface Result {
  /** Info without one. */
  severity?: "Info" | "Warning" | "Fatal";
  reason: string;
  message?: string;
}

/** The desired state of one parent. */
export interface SyncResponse extends Remarks {
  /** Replaces the observed status; without it, nothing is left of it but what Hookloop itself puts in. */
  status?: object | null;
  /**
   * All objects that should exist, each with apiVersion, kind and metadata.name; one that exists and is not listed is deleted. Fields
   * that are left out are left to others. child says more about one: whether it is ready, and what it depends on.
   */
  children?: readonly object[] | null;
  /** Asks for one more sync after that time; 0 asks for none. */
  resyncAfterSeconds?: number | null;
  /** Lets the parent go; it means something in answers to finalize only. */
  finalized?: boolean | null;
}

/** What should be added to one object. */
export interface DecorateResponse extends Remarks {
  /** Labels and annotations are set, and removed where the value is null. Keys that are not named are left alone. */
  labels?: Record<string, string | null> | null;
  annotations?: Record<string, string | null> | null;
  /** Replaces the observed status; without it, the status stays as it is. */
  status?: object | null;
  /** All attachments that should exist, as SyncResponse.children. */
  attachments?: readonly object[] | null;
  resyncAfterSeconds?: number | null;
  finalized?: boolean | null;
}

/** Names related objects. */
export interface CustomizeResponse {
  relatedResources?: readonly RelatedRule[] | null;
}

/** Selects related objects: by names, by labels, or all objects of the resource. */
export interface RelatedRule {
  apiVersion: string;
  /** The resource in the plural and in lower case: "configmaps". */
  resource: string;
  labelSelector?: LabelSelector | null;
  /** Selects the namespaces by their labels. It excludes namespace and names. */
  namespaceSelector?: LabelSelector | null;
  namespace?: string | null;
  names?: readonly string[] | null;
  /** The name of the group in which the objects come back: at most 63 letters, digits, "-" and "_". */
  name?: string | null;
}

/** A label selector: all of its parts must hold; an empty one matches everything. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: readonly { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: readonly string[] }[];
}

/** What is known about one call beside its question. */
export interface Call {
  /** Aborted when the engine has given up, or the time for the answer is over. */
  signal: AbortSignal;
}

type Awaitable<T> = T | Promise<T>;

/** Says which children a parent should have. As finalize it is asked while the parent is being deleted. */
export type SyncFunction<Parent> = (request: SyncRequest<Parent>, call: Call) => Awaitable<SyncResponse>;

/** Says what should be added to an object that someone else owns. */
export type DecorateFunction<Parent> = (request: DecorateRequest<Parent>, call: Call) => Awaitable<DecorateResponse>;

/** Says which other objects the questions about a parent should show. */
export type CustomizeFunction<Parent> = (request: CustomizeRequest<Parent>, call: Call) => Awaitable<CustomizeResponse>;

/** The functions of a CompositeController's hook; one that the controller's spec does not declare may be left out. */
export interface CompositeFunctions<Parent = KubernetesObject> {
  sync?: SyncFunction<Parent>;
  finalize?: SyncFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** The functions of a DecoratorController's hook. */
export interface DecoratorFunctions<Parent = KubernetesObject> {
  sync?: DecorateFunction<Parent>;
  finalize?: DecorateFunction<Parent>;
  customize?: CustomizeFunction<Parent>;
}

/** A function of any kind, as the server calls it: the contract says which request it gets. */
export type AnyFunction = (request: any, call: Call) => unknown;

/** A set of functions that a server can serve; composite and decorator make one. */
export interface Hook {
  readonly shape: "composite" | "decorator";
  readonly functions: { readonly sync?: AnyFunction; readonly finalize?: AnyFunction; readonly customize?: AnyFunction };
}

/** Makes the hook of a CompositeController. */
export function composite<Parent = KubernetesObject>(functions: CompositeFunctions<Parent>): Hook {
  return { shape: "composite", functions };
}

/** Makes the hook of a DecoratorController. */
export function decorator<Parent = KubernetesObject>(functions: DecoratorFunctions<Parent>): Hook {
  return { shape: "decorator", functions };
}
