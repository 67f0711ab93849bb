/** The places of objects in the requests of the contract. */
import { fromBinary } from "@bufbuild/protobuf";
import { methodsOf, SHAPES, type Method, type Question } from "../codec.js";
import { InvalidRequest } from "../errors.js";
import type { Object$ } from "../gen/hookloop/hook/v1/object_pb.js";
import type { ObservedSet } from "./set.js";

/** Limiter of an observed set: where in a request an object stands. */
export const CONTROLLER_SLOT = 0;
export const PARENT_SLOT = 1;

/** The slot of a group of children or attachments. */
export function childSlot(group: number): number {
  return 2 + 2 * group;
}

/** The slot of a group of related objects. */
export function relatedSlot(group: number): number {
  return 3 + 2 * group;
}

/** The methods that a stream can carry, by their full name. */
export const METHODS: ReadonlyMap<string, Method> = new Map(
  Object.values(SHAPES).flatMap(methodsOf).map((method) => [method.path, method]));

/** Makes a request of its shell and its objects. */
export function rebuild(method: Method, shell: Uint8Array, set: ObservedSet): Question {
  const request = read(method, shell);
  const places = new Places(set);
  const { shape } = method;
  for (const [slot, field] of [[CONTROLLER_SLOT, "controller"], [PARENT_SLOT, shape.parent]] as const) {
    refuseIf(request[field] !== undefined, method);
    const [object] = places.take(slot, 1);
    if (object) {
      request[field] = object;
    }
  }
  (request[shape.children] ?? []).forEach((group, index) => {
    refuseIf(group.objects.length > 0, method);
    group.objects = places.take(childSlot(index));
  });
  (request.related ?? []).forEach(({ result }, index) => {
    if (result.case === "items") {
      refuseIf(result.value.objects.length > 0, method);
      result.value.objects = places.take(relatedSlot(index));
    }
  });
  places.check(method);
  return request;
}

function read(method: Method, shell: Uint8Array): Question {
  try {
    return fromBinary(method.desc.input, shell) as Question;
  } catch (error) {
    throw new InvalidRequest(`the request is no ${method.desc.input.typeName}: ${(error as Error).message}`);
  }
}

function refuseIf(held: boolean, method: Method): void {
  if (held) {
    throw new InvalidRequest(`the request ${method.desc.input.typeName} holds objects, expected them in the slots`);
  }
}

/** The objects of a set, of which each must be taken. */
class Places {
  readonly #set: ObservedSet;
  #taken = 0;

  constructor(set: ObservedSet) {
    this.#set = set;
  }

  /**
   * The objects of a slot; where there is room for some number only, no others. The list is shared with other requests: nobody changes it,
   * although the types of messages would let them.
   */
  take(slot: number, room = Infinity): Object$[] {
    const objects = this.#set.slots.get(slot)?.messages ?? [];
    if (objects.length > room) {
      return [];
    }
    this.#taken += objects.length;
    return objects as Object$[];
  }

  check(method: Method): void {
    const size = [...this.#set.slots.values()].reduce((sum, { objects }) => sum + objects.length, 0);
    if (this.#taken !== size) {
      throw new InvalidRequest(`the request ${method.desc.input.typeName} has places for ${this.#taken} of its ${size} objects`);
    }
  }
}
