/** Encodes rules that select related objects. */
import { create } from "@bufbuild/protobuf";
import { choice, describe, fields, list, nonEmpty, object, text, texts } from "./check.js";
import { InvalidResponse } from "./errors.js";
import {
  type LabelSelector, type LabelSelectorRequirement, LabelSelectorRequirement_Operator as Operator,
  LabelSelectorRequirementSchema, LabelSelectorSchema, type RelatedResourceRule, RelatedResourceRuleSchema,
} from "./gen/hookloop/hook/v1/related_pb.js";
import type * as hooks from "./hooks.js";

const RULE = ["apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names", "name"];
const OPERATORS: ReadonlyMap<string, Operator> = new Map([
  ["In", Operator.IN], ["NotIn", Operator.NOT_IN],
  ["Exists", Operator.EXISTS], ["DoesNotExist", Operator.DOES_NOT_EXIST],
]);

const OPERATOR_NAMES = new Map(
  [...OPERATORS].map(([name, operator]) => [operator, name as hooks.Requirement["operator"]]));

/** Encodes the rules in a field. An error names the invalid rule. */
export function encodeRules(rules: unknown, field: string): RelatedResourceRule[] {
  return list(rules, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const rule = fields(member, item, RULE);
    return create(RelatedResourceRuleSchema, {
      apiVersion: nonEmpty(rule["apiVersion"], `${item}.apiVersion`),
      resource: nonEmpty(rule["resource"], `${item}.resource`),
      labelSelector: encodeSelector(rule["labelSelector"], `${item}.labelSelector`),
      namespaceSelector: encodeSelector(rule["namespaceSelector"], `${item}.namespaceSelector`),
      namespace: text(rule["namespace"], `${item}.namespace`),
      names: texts(rule["names"], `${item}.names`),
      name: text(rule["name"], `${item}.name`),
    });
  });
}

function encodeSelector(value: unknown, item: string): LabelSelector | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const selector = fields(value, item, ["matchLabels", "matchExpressions"]);
  const labels = object(selector["matchLabels"] ?? {}, `${item}.matchLabels`);
  const matchLabels: Record<string, string> = {};
  for (const [name, label] of Object.entries(labels)) {
    if (typeof label !== "string") {
      throw new InvalidResponse(`${item}.matchLabels[${name}] is ${describe(label)}, expected a string`);
    }
    matchLabels[name] = label;
  }
  const expressions = list(selector["matchExpressions"], `${item}.matchExpressions`);
  const matchExpressions = expressions.map((expression, index) =>
    encodeRequirement(expression, `${item}.matchExpressions[${index}]`));
  return create(LabelSelectorSchema, { matchLabels, matchExpressions });
}

function encodeRequirement(value: unknown, item: string): LabelSelectorRequirement {
  const requirement = fields(value, item, ["key", "operator", "values"]);
  return create(LabelSelectorRequirementSchema, {
    key: text(requirement["key"], `${item}.key`),
    operator: choice(requirement["operator"], `${item}.operator`, OPERATORS),
    values: texts(requirement["values"], `${item}.values`),
  });
}

/** Decodes rules into the form of RelatedRule. Empty fields are left out. */
export function decodeRules(rules: readonly RelatedResourceRule[]): hooks.RelatedRule[] {
  return rules.map(({ apiVersion, resource, labelSelector, namespaceSelector, namespace, names, name }) => ({
    apiVersion,
    resource,
    ...(labelSelector ? { labelSelector: decodeSelector(labelSelector) } : {}),
    ...(namespaceSelector ? { namespaceSelector: decodeSelector(namespaceSelector) } : {}),
    ...(namespace ? { namespace } : {}),
    ...(names.length > 0 ? { names } : {}),
    ...(name ? { name } : {}),
  }));
}

function decodeSelector({ matchLabels, matchExpressions }: LabelSelector): hooks.LabelSelector {
  const expressions = matchExpressions.map(({ key, operator, values }) =>
    ({ key, operator: OPERATOR_NAMES.get(operator)!, values }));
  return { matchLabels, matchExpressions: expressions };
}
