/** Holds a server's hooks by kind and name. */
import { methodsOf, SHAPES, type Method, type Request, type Shape } from "./codec.js";
import { NotFound } from "./errors.js";
import type { AnyFunction, Hook } from "./hooks.js";

/** The name of a hook, as in the CRDs. */
const NAME = /^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;

/** Finds the hook that a request names. */
export class Catalog {
  /** Hooks of each kind by name. The name is "" for the hook without a name. */
  readonly #kinds = new Map<Hook["shape"], Map<string, Hook>>();

  /** Throws if there is no hook, or if two hooks of one kind have the same name. */
  constructor(hooks: readonly Hook[]) {
    if (hooks.length === 0) {
      throw new TypeError("got no hook, expected one from composite, decorator or mapper");
    }
    for (const hook of hooks) {
      const { shape, name } = hook;
      if (name !== undefined && !NAME.test(name)) {
        const expected = "expected at most 63 letters, digits, '-', '_' and '.', with a letter or digit first and last";
        throw new TypeError(`the name of a ${shape} hook is ${JSON.stringify(name)}, ${expected}`);
      }
      const named = this.#kinds.get(shape) ?? new Map<string, Hook>();
      if (named.has(name ?? "")) {
        throw new TypeError(name === undefined ?
          `two ${shape} hooks have no name, expected named for all but one` :
          `two ${shape} hooks have the name "${name}", expected different ones`);
      }
      this.#kinds.set(shape, named.set(name ?? "", hook));
    }
  }

  /** The services of the hooks. */
  get shapes(): Shape[] {
    return [...this.#kinds.keys()].map((shape) => SHAPES[shape]);
  }

  /** Paths of the methods for which at least one hook has a function, sorted. */
  get methods(): string[] {
    const paths = [...this.#kinds].flatMap(([shape, named]) => methodsOf(SHAPES[shape])
      .filter(({ operation }) => [...named.values()].some(({ functions }) => functions[operation]))
      .map(({ path }) => path));
    return paths.sort();
  }

  /**
   * Returns the function for a request, or undefined if the hook does not have it. A request
   * without a name is for the hook without a name, or for the only one. Throws NotFound if there is
   * no such hook.
   */
  functionOf({ shape, operation }: Method, request: Request): AnyFunction | undefined {
    const [kind] = Object.entries(SHAPES).find(([, each]) => each === shape)! as [Hook["shape"], Shape];
    const hooks = this.#kinds.get(kind);
    if (!hooks) {
      return undefined;
    }
    const name = request.meta?.hook ?? "";
    const hook = hooks.get(name) ?? (name === "" && hooks.size === 1 ? [...hooks.values()][0] : undefined);
    if (hook) {
      return hook.functions[operation];
    }
    const known = [...hooks.keys()].sort().map((each) => (each ? `"${each}"` : "one without a name")).join(", ");
    throw new NotFound(name ? `this server has no ${kind} hook "${name}"; it has ${known}` :
      `the request names no hook, and this server has several ${kind} hooks: ${known}; ` +
      "name one in the field grpc.hook of the controller's spec");
  }
}
