/** Checks the answers of functions and writes them as the contract has them. Every error names the item at fault. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { DurationSchema } from "@bufbuild/protobuf/wkt";
import { fields, flag, list, object, said, text, word, type Members } from "./check.js";
import { Child } from "./child.js";
import { InvalidResponse } from "./errors.js";
import { DependencySchema, type Dependency } from "./gen/hookloop/hook/v1/answer_pb.js";
import { DesiredObjectSchema, Encoding, type DesiredObject } from "./gen/hookloop/hook/v1/object_pb.js";
import { stringify } from "./json.js";

/** The most that an answer may ask to wait, in seconds: ten years. */
const MAX_RESYNC = 10 * 365 * 24 * 3600;

/** The status as JSON; undefined where the answer has none. */
export function encodeStatus(status: unknown): Uint8Array | undefined {
  return status === undefined || status === null ? undefined : json(object(status, "status"), "status");
}

/** Desired objects; each has apiVersion, kind and metadata.name. What child makes says more about its object. */
export function encodeDesired(field: string, objects: unknown): DesiredObject[] {
  return list(objects, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const { object: desired, ready, dependsOn } = member instanceof Child ? member : new Child(member, {});
    checkIdentity(object(desired, item), item);
    const init = { encoding: Encoding.JSON, body: json(desired, item), dependsOn: encodeDependencies(dependsOn, `${item}.dependsOn`) };
    return create(DesiredObjectSchema, ready === undefined || ready === null ? init : { ...init, ready: flag(ready, `${item}.ready`) });
  });
}

function encodeDependencies(dependencies: unknown, field: string): Dependency[] {
  return list(dependencies, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const said = fields(member, item, ["apiVersion", "kind", "name", "condition", "namespace"]);
    return create(DependencySchema, {
      apiVersion: word(said["apiVersion"], `${item}.apiVersion`),
      kind: word(said["kind"], `${item}.kind`),
      name: word(said["name"], `${item}.name`),
      condition: text(said["condition"], `${item}.condition`),
      namespace: text(said["namespace"], `${item}.namespace`),
    });
  });
}

function checkIdentity(desired: Members, item: string): void {
  const metadata = desired["metadata"];
  const name = typeof metadata === "object" && metadata !== null ? (metadata as Members)["name"] : undefined;
  for (const [field, value] of Object.entries({ apiVersion: desired["apiVersion"], kind: desired["kind"], "metadata.name": name })) {
    word(value, `${item}: ${field}`);
  }
}

/** resyncAfterSeconds; undefined where nothing is asked for. */
export function encodeResync(seconds: unknown): MessageInitShape<typeof DurationSchema> | undefined {
  if (seconds === undefined || seconds === null || seconds === 0) {
    return undefined;
  }
  if (typeof seconds !== "number" || !(seconds >= 0 && seconds <= MAX_RESYNC)) {
    throw new InvalidResponse(`resyncAfterSeconds is ${said(seconds)}, expected a number from 0 to ${MAX_RESYNC}`);
  }
  return duration(seconds);
}

/** Seconds as the contract has them. */
export function duration(seconds: number): { seconds: bigint; nanos: number } {
  const whole = Math.floor(seconds);
  return { seconds: BigInt(whole), nanos: Math.floor((seconds - whole) * 1e9) };
}

/** finalized, which must not be true by accident. */
export function encodeFinalized(finalized: unknown): boolean {
  return finalized === undefined || finalized === null ? false : flag(finalized, "finalized");
}

/** What a patch of labels or annotations sets, and what it removes: the keys whose value is null. */
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
    throw new InvalidResponse(`${item} is no JSON: ${(error as Error).message}`);
  }
}
