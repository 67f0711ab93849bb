/** Types for Kubernetes objects and for groups of them. */
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { RelatedUnknown } from "./errors.js";
import type { KubernetesKinds } from "./kinds.js";

/**
 * What every Kubernetes object contains. Extend it for your own custom resource:
 *
 *     interface Website extends KubernetesObject { spec: { replicas?: number } }
 */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta & { name: string };
}

/**
 * An object of a kind that is not known at compile time. Here as in typed objects, an integer that
 * a number cannot hold exactly becomes a bigint.
 */
export interface Unstructured extends KubernetesObject {
  [field: string]: unknown;
}

type Primitive = bigint | string | number | boolean | null | undefined;

/**
 * Makes a type read-only at any depth. Observed objects are frozen, because requests share them;
 * use structuredClone to get a copy that you can change.
 */
export type Frozen<T> = unknown extends T ? T
  : T extends Primitive ? T : { readonly [field in keyof T]: Frozen<T[field]> };

/** Makes identity fields required that an API type declares as optional. */
type Identified<T> = T & KubernetesObject;

/** Observed objects of one kind by name. */
export type Group<T = Unstructured> = Readonly<Record<string, Frozen<Identified<T>>>>;

/**
 * Observed objects by kind ("ConfigMap.v1", "Deployment.apps/v1") and name. For objects outside the
 * parent's namespace the key is "namespace/name". There is a group, maybe an empty one, for each
 * kind that the controller declares; childrenOf returns it and throws if the kind is not declared.
 */
export type Groups = { readonly [Key in keyof KubernetesKinds]?: Group<KubernetesKinds[Key]> }
  & Readonly<Record<string, Group>>;

/** Makes the plural of a kind as Kubernetes does for built-in resources. */
type Plural<Kind extends string> = Kind extends `${string}points` ? Kind
  : Kind extends `${infer Stem}y` ? `${Stem}ies` : Kind extends `${string}s` ? `${Kind}es` : `${Kind}s`;

/** The resource of a kind: "networkpolicies.networking.k8s.io/v1". */
type Resource<Key> = Key extends `${infer Kind}.${infer Version}` ? `${Plural<Lowercase<Kind>>}.${Version}` : never;

/** The types of built-in objects by resource: "configmaps.v1". */
type Resources = { [Key in keyof KubernetesKinds as Resource<Key>]: KubernetesKinds[Key] };

/** Looks up the type of a resource's objects. */
export type ObjectOfResource<Key extends string> = Key extends keyof Resources ? Resources[Key] : Unstructured;

/** Groups of related objects, by the name of their rule or, if it has no name, by resource. */
export type RelatedGroups = { readonly [Key in keyof Resources]?: RelatedGroup<Resources[Key]> }
  & Readonly<Record<string, RelatedGroup>>;

/**
 * Holds the related objects that one rule selected, or all rules without a name for one resource.
 */
export class RelatedGroup<T = Unstructured> {
  readonly #objects: Group<T>;

  /** If error is set, Hookloop could not read the objects. */
  constructor(objects: Group<T>, readonly error?: RelatedUnknown) {
    this.#objects = objects;
  }

  /**
   * The objects by name, as in Groups. Throws the error if Hookloop could not read the objects, so
   * that you never take them for an empty group.
   */
  get objects(): Group<T> {
    if (this.error) {
      throw this.error;
    }
    return this.#objects;
  }
}

/**
 * Checks a desired object: if apiVersion and kind are literals of a known kind, a mistyped field is
 * a compile error.
 */
export type Desired<ApiVersion extends string, Kind extends string> =
  & { readonly apiVersion: ApiVersion; readonly kind: Kind }
  & (`${Kind}.${ApiVersion}` extends keyof KubernetesKinds
    ? Frozen<KubernetesKinds[`${Kind}.${ApiVersion}`]> : { readonly [field: string]: any });
