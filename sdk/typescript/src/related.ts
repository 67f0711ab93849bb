/** Related objects that an answer requires, without a customize function. */
import type { Remarks, RelatedRule, SyncRequest } from "./hooks.js";
import type { Group } from "./objects.js";

/**
 * Adds a rule, which needs a name, to an answer's requirements, and returns the objects that it selects, by name. The result is undefined
 * if they have not been shown yet: return the answer as it is; Hookloop writes nothing of it and asks again with the objects. It throws
 * RelatedUnknown if the objects are not known.
 */
export function requireRelated(request: Pick<SyncRequest<unknown>, "related">, answer: Remarks, rule: RelatedRule): Group | undefined {
  if (!rule.name) {
    throw new Error(`requirement on ${rule.resource}: name is ${JSON.stringify(rule.name)}, expected the name of a group`);
  }
  answer.requirements = [...(answer.requirements ?? []), rule];
  return request.related[rule.name]?.objects;
}
