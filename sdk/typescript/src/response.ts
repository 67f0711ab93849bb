/** Encodes responses. Every error names the invalid item. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { DurationSchema } from "@bufbuild/protobuf/wkt";
import { boolean, describe, fields, list, nonEmpty, object, text, type Members } from "./check.js";
import { Child } from "./child.js";
import { InvalidResponse } from "./errors.js";
import {
  type Dependency, DependencySchema, type DesiredObject, DesiredObjectSchema,
} from "./gen/hookloop/hook/v1/desired_pb.js";
import { Encoding } from "./gen/hookloop/hook/v1/observed_pb.js";
import { stringify } from "./json.js";

/** The largest resyncAfterSeconds: ten years. */
const MAX_RESYNC_SECONDS = 10 * 365 * 24 * 3600;

/** Returns the status as JSON, or undefined if the response has none. */
export function encodeStatus(status: unknown): Uint8Array | undefined {
  return status === undefined || status === null ? undefined : json(object(status, "status"), "status");
}

/** Encodes the identities of observed objects to keep. */
export function encodeKept(field: string, objects: unknown): DesiredObject[] {
  const identities = list(objects, field).map((member, index) => {
    const kept = object(member, `${field}[${index}]`);
    checkIdentity(kept, `${field}[${index}]`);
    const { namespace, name } = kept["metadata"] as Members;
    return { apiVersion: kept["apiVersion"], kind: kept["kind"], metadata: namespace ? { namespace, name } : { name } };
  });
  return encodeDesired(field, identities);
}

/**
 * Encodes desired objects, which have apiVersion, kind and metadata.name, or are results of child.
 */
export function encodeDesired(field: string, objects: unknown): DesiredObject[] {
  return list(objects, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const { object: desired, ready, dependsOn } = member instanceof Child ? member : new Child(member, {});
    checkIdentity(object(desired, item), item);
    const init = {
      encoding: Encoding.JSON,
      body: json(desired, item),
      dependsOn: encodeDependencies(dependsOn, `${item}.dependsOn`),
    };
    return create(DesiredObjectSchema,
      ready === undefined || ready === null ? init : { ...init, ready: boolean(ready, `${item}.ready`) });
  });
}

function encodeDependencies(dependencies: unknown, field: string): Dependency[] {
  return list(dependencies, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const dependency = fields(member, item, ["apiVersion", "kind", "name", "condition", "namespace"]);
    return create(DependencySchema, {
      apiVersion: nonEmpty(dependency["apiVersion"], `${item}.apiVersion`),
      kind: nonEmpty(dependency["kind"], `${item}.kind`),
      name: nonEmpty(dependency["name"], `${item}.name`),
      condition: text(dependency["condition"], `${item}.condition`),
      namespace: text(dependency["namespace"], `${item}.namespace`),
    });
  });
}

function checkIdentity(desired: Members, item: string): void {
  const metadata = desired["metadata"];
  const name = typeof metadata === "object" && metadata !== null ? (metadata as Members)["name"] : undefined;
  const identity = { apiVersion: desired["apiVersion"], kind: desired["kind"], "metadata.name": name };
  for (const [field, value] of Object.entries(identity)) {
    nonEmpty(value, `${item}: ${field}`);
  }
}

/** Encodes resyncAfterSeconds; undefined if the response requests no resync. */
export function encodeResync(seconds: unknown): MessageInitShape<typeof DurationSchema> | undefined {
  if (seconds === undefined || seconds === null || seconds === 0) {
    return undefined;
  }
  if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= MAX_RESYNC_SECONDS)) {
    const expected = `expected a number from 0 to ${MAX_RESYNC_SECONDS}`;
    throw new InvalidResponse(`resyncAfterSeconds is ${describe(seconds)}, ${expected}`);
  }
  return duration(seconds);
}

/** Encodes seconds as a google.protobuf.Duration. */
export function duration(seconds: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(seconds);
  return { seconds: BigInt(whole), nanos: Math.floor((seconds - whole) * 1e9) };
}

/**
 * Encodes finalized. Only a boolean is valid, so that no other value lets the parent go by mistake.
 */
export function encodeFinalized(finalized: unknown): boolean {
  return finalized === undefined || finalized === null ? false : boolean(finalized, "finalized");
}

/** Splits a patch of labels or annotations into those to set and those to remove (value null). */
export function encodePatch(field: string, patch: unknown): { set: Record<string, string>; remove: string[] } {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (const [name, value] of Object.entries(patch === undefined || patch === null ? {} : object(patch, field))) {
    if (value === null) {
      remove.push(name);
    } else if (value !== undefined) {
      set[name] = text(value, `${field}[${name}]`);
    }
  }
  return { set, remove };
}

function json(value: unknown, item: string): Uint8Array {
  try {
    return new TextEncoder().encode(stringify(value));
  } catch (error) {
    throw new InvalidResponse(`${item} is not valid JSON: ${(error as Error).message}`);
  }
}
