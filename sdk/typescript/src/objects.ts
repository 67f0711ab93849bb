/** Types of Kubernetes objects, observed and desired, and of groups of them. */
import type { ObjectMeta } from "kubernetes-types/meta/v1.js";
import type { RelatedUnknown } from "./errors.js";
import type { KubernetesKinds } from "./kinds.js";

/**
 * The fields that every Kubernetes object has. The type of a custom resource extends it:
 *
 *     interface Website extends KubernetesObject { spec: { replicas?: number } }
 */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta & { name: string };
}

/**
 * A Kubernetes object of any kind, with fields of unknown types. An integer that a number cannot
 * hold exactly is a bigint, in typed objects too.
 */
export interface Unstructured extends KubernetesObject {
  [field: string]: unknown;
}

type Primitive = bigint | string | number | boolean | null | undefined;

/**
 * A value that cannot be changed, at any depth. Requests share observed objects, and therefore
 * freeze them; structuredClone returns a copy that can be changed.
 */
export type Frozen<T> = unknown extends T ? T
  : T extends Primitive ? T : { readonly [field in keyof T]: Frozen<T[field]> };

/** An object of an API type, with the identity that the type declares as optional. */
type Identified<T> = T & KubernetesObject;

/** Observed objects of one kind by name. */
export type Group<T = Unstructured> = Readonly<Record<string, Frozen<Identified<T>>>>;

/**
 * Observed objects by kind ("ConfigMap.v1", "Deployment.apps/v1") and name. The key of an object
 * outside the parent's namespace is "namespace/name". Each kind that the controller declares has a
 * group; childrenOf returns the group of a kind that the controller must declare.
 */
export type Groups = { readonly [Key in keyof KubernetesKinds]?: Group<KubernetesKinds[Key]> }
  & Readonly<Record<string, Group>>;

/** The plural of a kind in lower case, by the rule for the names of built-in resources. */
type Plural<Kind extends string> = Kind extends `${string}points` ? Kind
  : Kind extends `${infer Stem}y` ? `${Stem}ies` : Kind extends `${string}s` ? `${Kind}es` : `${Kind}s`;

/** The resource of a kind: "networkpolicies.networking.k8s.io/v1". */
type Resource<Key> = Key extends `${infer Kind}.${infer Version}` ? `${Plural<Lowercase<Kind>>}.${Version}` : never;

/** The types of built-in objects by resource: "configmaps.v1". */
type Resources = { [Key in keyof KubernetesKinds as Resource<Key>]: KubernetesKinds[Key] };

/** The type of the objects of a resource. */
export type ObjectOfResource<Key extends string> = Key extends keyof Resources ? Resources[Key] : Unstructured;

/** Groups of related objects, by the name of their rules or, without a name, by resource. */
export type RelatedGroups = { readonly [Key in keyof Resources]?: RelatedGroup<Resources[Key]> }
  & Readonly<Record<string, RelatedGroup>>;

/** The related objects of one rule, or of all rules without a name for one resource. */
export class RelatedGroup<T = Unstructured> {
  readonly #objects: Group<T>;

  /** If there is an error, the objects are unknown. */
  constructor(objects: Group<T>, readonly error?: RelatedUnknown) {
    this.#objects = objects;
  }

  /**
   * The objects by name, as in Groups. Throws the error if the objects are unknown, so that an
   * unknown group never looks like an empty one.
   */
  get objects(): Group<T> {
    if (this.error) {
      throw this.error;
    }
    return this.#objects;
  }
}

/**
 * A desired object. If its apiVersion and kind are literals of a known kind, it has that kind's
 * type, and a mistyped field is a compile error.
 */
export type Desired<ApiVersion extends string, Kind extends string> =
  & { readonly apiVersion: ApiVersion; readonly kind: Kind }
  & (`${Kind}.${ApiVersion}` extends keyof KubernetesKinds
    ? Frozen<KubernetesKinds[`${Kind}.${ApiVersion}`]> : { readonly [field: string]: any });
