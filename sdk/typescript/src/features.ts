/**
 * Names the features of a response that an older engine may not know
 * (hookloop.hook.v1.RequestMeta). A hook does not send a response with a feature that the engine
 * does not honour, because that engine would carry out only a part of the response.
 */
import { Reject } from "./errors.js";
import type { DesiredObject } from "./gen/hookloop/hook/v1/desired_pb.js";
import type { RequestMeta } from "./gen/hookloop/hook/v1/meta_pb.js";
import type { RelatedResourceRule } from "./gen/hookloop/hook/v1/related_pb.js";
import type { ResponseDetails } from "./gen/hookloop/hook/v1/response_pb.js";

/** Parts of a response that use features. rules come from a response to customize. */
export interface Parts {
  readonly desired?: readonly DesiredObject[];
  readonly details?: ResponseDetails;
  readonly rules?: readonly RelatedResourceRule[];
}

/** Returns the features that a response uses, sorted. */
export function used({ desired = [], details, rules = [] }: Parts): string[] {
  const requirements = details?.requirements ?? [];
  const uses = {
    conditions: (details?.conditions ?? []).length > 0,
    depends_on: desired.some(({ dependsOn }) => dependsOn.length > 0),
    events: (details?.events ?? []).length > 0,
    named_rules: [...rules, ...requirements].some(({ name }) => name !== ""),
    ready: desired.some(({ ready }) => ready !== undefined),
    requirements: requirements.length > 0,
    results: (details?.results ?? []).length > 0,
  };
  return Object.entries(uses).filter(([, isUsed]) => isUsed).map(([name]) => name);
}

/**
 * Throws Reject if a response uses a feature that the engine does not honour. An engine that sends
 * no meta rejects such a response itself.
 */
export function check(features: readonly string[], meta: RequestMeta | undefined): void {
  const missing = meta && features.find((feature) => !meta.features.includes(feature));
  if (missing !== undefined) {
    throw new Reject("FeatureNotHonoured",
      `the response uses the feature "${missing}", which the engine ${meta!.engineVersion} does not honour; ` +
      `it honours ${meta!.features.join(", ") || "none"}`);
  }
}
