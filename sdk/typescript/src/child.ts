/** Adds dependencies and readiness to desired objects. */
import type { Desired } from "./objects.js";

/** Refers to a desired object that must exist and be ready first. */
export interface Dependency {
  apiVersion: string;
  kind: string;
  name: string;
  /**
   * A condition type that must be True in the object's status. If it is empty, the object only has
   * to exist.
   */
  condition?: string;
  /** If it is empty, the parent's namespace is used. */
  namespace?: string;
}

/** What Hookloop should know about a desired object. */
export interface ChildOptions {
  /**
   * Tells Hookloop whether this object is ready. If it is missing, Hookloop looks at the conditions
   * that dependencies name.
   */
  ready?: boolean | null;
  /** Objects that Hookloop creates before this one and deletes after it. */
  dependsOn?: readonly Dependency[] | null;
}

/** A desired object with options. Use function child to make one. */
export class Child {
  readonly ready: unknown;
  readonly dependsOn: unknown;
  constructor(readonly object: unknown, { ready, dependsOn }: ChildOptions) {
    this.ready = ready;
    this.dependsOn = dependsOn;
  }
}

/**
 * Adds options to a desired object. Put the result into children, attachments or outputs:
 *
 *     child({ apiVersion: "v1", kind: "Service", metadata, spec }, { dependsOn: [page] })
 *
 * If apiVersion and kind are literals of a known kind (see KubernetesKinds), the compiler checks
 * the object's fields.
 */
export function child<ApiVersion extends string, Kind extends string>(
  object: Desired<ApiVersion, Kind>, options: ChildOptions = {},
): Child {
  return new Child(object, options);
}

/** Refers to another desired object: dependency("v1", "ConfigMap", "pages"). */
export function dependency(apiVersion: string, kind: string, name: string, condition = "", namespace = ""): Dependency {
  return { apiVersion, kind, name, condition, namespace };
}
