/** Helps a hook to require related objects without a customize function. */
import type { CommonDetails, RelatedRule, SyncRequest } from "./hooks.js";
import type { Group, ObjectOfResource } from "./objects.js";

/**
 * Requires related objects, and returns them by name. The rule is added to the response's
 * requirements and must have a name.
 *
 * If the result is undefined, Hookloop has not read the objects yet. Return the response then:
 * Hookloop writes nothing, reads the objects, and calls the hook again. Throws RelatedUnknown if
 * Hookloop could not read the objects.
 */
export function requireRelated<ApiVersion extends string, Resource extends string>(
  request: Pick<SyncRequest<unknown>, "related">, response: CommonDetails,
  rule: RelatedRule & { apiVersion: ApiVersion; resource: Resource },
): Group<ObjectOfResource<`${Resource}.${ApiVersion}`>> | undefined {
  if (!rule.name) {
    throw new Error(`requirement on ${rule.resource}: name is ${JSON.stringify(rule.name)}, expected a group name`);
  }
  response.requirements = [...(response.requirements ?? []), rule];
  const group = request.related[rule.name]?.objects;
  return group as Group<ObjectOfResource<`${Resource}.${ApiVersion}`>> | undefined;
}
