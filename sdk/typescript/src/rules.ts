/** Checks rules, which select related objects, and writes them as the contract has them. */
import { create } from "@bufbuild/protobuf";
import { choice, fields, list, object, said, text, texts, word } from "./check.js";
import { InvalidResponse } from "./errors.js";
import {
  LabelSelectorRequirementSchema, LabelSelectorRequirement_Operator as Operator, LabelSelectorSchema, RelatedResourceRuleSchema,
  type LabelSelector, type LabelSelectorRequirement, type RelatedResourceRule,
} from "./gen/hookloop/hook/v1/customize_pb.js";

const RULE = ["apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names", "name"];
const OPERATORS: ReadonlyMap<string, Operator> = new Map([
  ["In", Operator.IN], ["NotIn", Operator.NOT_IN], ["Exists", Operator.EXISTS], ["DoesNotExist", Operator.DOES_NOT_EXIST],
]);

/** The rules of a field; an error names the one at fault. */
export function encodeRules(rules: unknown, field: string): RelatedResourceRule[] {
  return list(rules, field).map((member, index) => {
    const item = `${field}[${index}]`;
    const rule = fields(member, item, RULE);
    return create(RelatedResourceRuleSchema, {
      apiVersion: word(rule["apiVersion"], `${item}.apiVersion`),
      resource: word(rule["resource"], `${item}.resource`),
      labelSelector: selector(rule["labelSelector"], `${item}.labelSelector`),
      namespaceSelector: selector(rule["namespaceSelector"], `${item}.namespaceSelector`),
      namespace: text(rule["namespace"], `${item}.namespace`),
      names: texts(rule["names"], `${item}.names`),
      name: text(rule["name"], `${item}.name`),
    });
  });
}

function selector(value: unknown, item: string): LabelSelector | undefined {
  if (value === undefined || value === null) {
    return undefined;
  }
  const parts = fields(value, item, ["matchLabels", "matchExpressions"]);
  const labels = object(parts["matchLabels"] ?? {}, `${item}.matchLabels`);
  const matchLabels: Record<string, string> = {};
  for (const [name, label] of Object.entries(labels)) {
    if (typeof label !== "string") {
      throw new InvalidResponse(`${item}.matchLabels[${name}] is ${said(label)}, expected a string`);
    }
    matchLabels[name] = label;
  }
  const expressions = list(parts["matchExpressions"], `${item}.matchExpressions`);
  const matchExpressions = expressions.map((value, index) => requirement(value, `${item}.matchExpressions[${index}]`));
  return create(LabelSelectorSchema, { matchLabels, matchExpressions });
}

function requirement(value: unknown, item: string): LabelSelectorRequirement {
  const parts = fields(value, item, ["key", "operator", "values"]);
  return create(LabelSelectorRequirementSchema, {
    key: text(parts["key"], `${item}.key`),
    operator: choice(parts["operator"], `${item}.operator`, OPERATORS),
    values: texts(parts["values"], `${item}.values`),
  });
}
