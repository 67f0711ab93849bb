/** What a function may say about a desired object beside the object itself. */

/** Another desired object that must be there, and ready, before an object is made. */
export interface Dependency {
  apiVersion: string;
  kind: string;
  name: string;
  /** The type of a condition that must be True in its status; without one its existence is enough. */
  condition?: string;
  /** Without one, the parent's. */
  namespace?: string;
}

/** More about a desired object. */
export interface ChildOptions {
  /** Whether the observed object is ready, where the hook knows better than its conditions. */
  ready?: boolean | null;
  /** The object is made after these, and removed before they are. */
  dependsOn?: readonly Dependency[] | null;
}

/** A desired object and what is said about it; child makes one. */
export class Child {
  readonly ready: unknown;
  readonly dependsOn: unknown;
  constructor(readonly object: unknown, { ready, dependsOn }: ChildOptions) {
    this.ready = ready;
    this.dependsOn = dependsOn;
  }
}

/** Says more about a desired object, which then stands among the children: child(service, { dependsOn: [dependency(...)] }). */
export function child(object: object, options: ChildOptions): Child {
  return new Child(object, options);
}

/** Names another desired object, and perhaps a condition that must be True in its status: dependency("v1", "ConfigMap", "pages"). */
export function dependency(apiVersion: string, kind: string, name: string, condition = "", namespace = ""): Dependency {
  return { apiVersion, kind, name, condition, namespace };
}
