/** What hooks are shown: objects, and groups of them. */
import type { RelatedUnknown } from "./errors.js";

/** Any object of Kubernetes. Integers that a number cannot hold exactly are bigint. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; labels?: Record<string, string>; annotations?: Record<string, string>; [field: string]: unknown };
  [field: string]: unknown;
}

/** What is observed. It is shared between calls and therefore frozen: structuredClone makes a copy to change. */
export type Frozen<T> = T extends bigint | string | number | boolean | null | undefined ? T : { readonly [field in keyof T]: Frozen<T[field]> };

/**
 * Observed objects by kind ("ConfigMap.v1", "Deployment.apps/v1") and name; an object in a namespace other than the parent's is found under
 * "namespace/name". Every kind that the controller declares has a group.
 */
export type Groups = Readonly<Record<string, Group>>;

/** Observed objects of one kind by name. */
export type Group = Readonly<Record<string, Frozen<KubernetesObject>>>;

/** The related objects of one resource. */
export class RelatedGroup {
  readonly #objects: Group;

  /** With an error nothing is known about the group. */
  constructor(objects: Group, readonly error?: RelatedUnknown) {
    this.#objects = objects;
  }

  /** The objects by name, as in Groups. Where they are not known, looking at them throws: they are never taken for an empty group. */
  get objects(): Group {
    if (this.error) {
      throw this.error;
    }
    return this.#objects;
  }
}
