/** Requirements: related objects that a response requests without a customize function. */
import type { CommonDetails, RelatedRule, SyncRequest } from "./hooks.js";
import type { Group, ObjectOfResource } from "./objects.js";

/**
 * Adds a named rule to a response's requirements and returns the objects that it selects, by name.
 *
 * It returns undefined if the request does not have the objects yet. In this case return the
 * response as it is: Hookloop writes nothing and calls the hook again with the objects.
 * It throws RelatedUnknown if the objects are unknown.
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
