/** Desired objects with what Hookloop needs to know beside the objects themselves. */
import type { Desired } from "./objects.js";

/** Another desired object that must exist, and be ready, before an object is created. */
export interface Dependency {
  apiVersion: string;
  kind: string;
  name: string;
  /** The type of a status condition that must be True. If it is empty, the object must exist. */
  condition?: string;
  /** The namespace. If it is empty, the parent's namespace. */
  namespace?: string;
}

/** Options of a desired object. */
export interface ChildOptions {
  /** Reports whether the observed object is ready. It replaces the conditions of dependencies. */
  ready?: boolean | null;
  /** Hookloop creates the object after these, and deletes it before them. */
  dependsOn?: readonly Dependency[] | null;
}

/** A desired object with its options. Function child returns one. */
export class Child {
  readonly ready: unknown;
  readonly dependsOn: unknown;
  constructor(readonly object: unknown, { ready, dependsOn }: ChildOptions) {
    this.ready = ready;
    this.dependsOn = dependsOn;
  }
}

/**
 * Returns an entry of SyncResponse.children or DecorateResponse.attachments:
 *
 *     child({ apiVersion: "v1", kind: "Service", metadata, spec }, { dependsOn: [page] })
 *
 * The compiler checks the fields of an object if its apiVersion and kind are literals of a known
 * kind (KubernetesKinds).
 */
export function child<ApiVersion extends string, Kind extends string>(
  object: Desired<ApiVersion, Kind>, options: ChildOptions = {},
): Child {
  return new Child(object, options);
}

/** Returns a reference to another desired object: dependency("v1", "ConfigMap", "pages"). */
export function dependency(apiVersion: string, kind: string, name: string, condition = "", namespace = ""): Dependency {
  return { apiVersion, kind, name, condition, namespace };
}
