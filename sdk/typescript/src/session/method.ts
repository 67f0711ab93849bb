/** Says where objects stand in requests. */
import { fromBinary } from "@bufbuild/protobuf";
import { hasInput, methodsOf, SHAPES, type Method, type Request } from "../codec.js";
import { InvalidRequest } from "../errors.js";
import type { ObservedObject } from "../gen/hookloop/hook/v1/observed_pb.js";
import type { ObservedSet } from "./set.js";

/** The slot of the controller. A slot says where an object stands in a request. */
export const CONTROLLER_SLOT = 0;
/** The slot of the parent, or of the object to decorate. */
export const PARENT_SLOT = 1;
/** The slot of the input. Only map hooks use it. */
export const INPUT_SLOT = 2;

/** Returns the slot for a group of related objects. */
export function relatedSlot(group: number): number {
  return 3 + 2 * group;
}

/** Methods that a stream can call, by path. */
export const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.values(SHAPES).flatMap(methodsOf).map((method) => [method.path, method]));

/** Builds a request from its envelope, which contains no objects, and from the objects in a set. */
export function rebuild(method: Method, envelope: Uint8Array, set: ObservedSet): Request {
  const request = read(method, envelope);
  const slots = new SlotReader(set);
  const { shape, operation } = method;
  const singles: [number, "controller" | "parent" | "object" | "input"][] = [
    [CONTROLLER_SLOT, "controller"], [PARENT_SLOT, shape.parent],
  ];
  if (hasInput(shape, operation)) {
    singles.push([INPUT_SLOT, "input"]);
  }
  for (const [slot, field] of singles) {
    rejectIf(request[field] !== undefined, method);
    const [object] = slots.take(slot, 1);
    if (object) {
      request[field] = object;
    }
  }
  (request[shape.children] ?? []).forEach((group, index) => {
    rejectIf(group.objects.length > 0, method);
    group.objects = slots.take(shape.firstSlot + 2 * index);
  });
  (request.related ?? []).forEach(({ result }, index) => {
    if (result.case === "items") {
      rejectIf(result.value.objects.length > 0, method);
      result.value.objects = slots.take(relatedSlot(index));
    }
  });
  slots.check(method);
  return request;
}

function read(method: Method, envelope: Uint8Array): Request {
  try {
    return fromBinary(method.desc.input, envelope) as Request;
  } catch (error) {
    throw new InvalidRequest(`the request is not a ${method.desc.input.typeName}: ${(error as Error).message}`);
  }
}

function rejectIf(hasObjects: boolean, method: Method): void {
  if (hasObjects) {
    throw new InvalidRequest(`the request ${method.desc.input.typeName} has objects, expected them in the slots`);
  }
}

/** Takes objects out of a set, slot by slot. */
class SlotReader {
  readonly #set: ObservedSet;
  #taken = 0;

  constructor(set: ObservedSet) {
    this.#set = set;
  }

  /**
   * Returns the objects in a slot, or none if there are more than the limit. Do not change the list
   * although its type permits it, because several requests use it.
   */
  take(slot: number, limit = Infinity): ObservedObject[] {
    const objects = this.#set.slots.get(slot)?.messages ?? [];
    if (objects.length > limit) {
      return [];
    }
    this.#taken += objects.length;
    return objects as ObservedObject[];
  }

  /** Throws if some objects were not taken. */
  check(method: Method): void {
    const size = [...this.#set.slots.values()].reduce((sum, { objects }) => sum + objects.length, 0);
    if (this.#taken !== size) {
      const name = method.desc.input.typeName;
      throw new InvalidRequest(`the request ${name} has slots for ${this.#taken} of its ${size} objects`);
    }
  }
}
