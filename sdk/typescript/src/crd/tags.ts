/** Reads JSDoc comments: descriptions, and tags for what types alone cannot express. */
import ts from "typescript";
import { type Place, unsupported } from "./errors.js";

/** A schema, or a part of one. */
export type Schema = Record<string, unknown>;

/** Which schema types a rule applies to, and how to read its value. */
const RULES: Record<string, { types: readonly string[]; number: boolean }> = {
  minimum: { types: ["integer", "number"], number: true },
  maximum: { types: ["integer", "number"], number: true },
  minLength: { types: ["string"], number: true },
  maxLength: { types: ["string"], number: true },
  minItems: { types: ["array"], number: true },
  maxItems: { types: ["array"], number: true },
  pattern: { types: ["string"], number: false },
  format: { types: ["string", "integer", "number"], number: false },
};

/** Tags that only people read. */
const PROSE = ["deprecated", "example", "internal", "link", "remarks", "see", "since", "todo"];

/** Tags on a resource, which definition.ts reads. */
export const RESOURCE_TAGS = ["plural", "scope", "column", "shortName"];

/** A JSDoc tag: the name without "@", and the text after it. */
export interface Tag {
  readonly name: string;
  readonly text: string;
}

/** Returns the tags on a field or an interface. */
export function tagsOf(symbol: ts.Symbol, checker: ts.TypeChecker): Tag[] {
  return symbol.getJsDocTags(checker).map(({ name, text }) => ({ name, text: ts.displayPartsToString(text).trim() }));
}

/** Returns the description of a field or an interface, with each paragraph on one line. */
export function descriptionOf(symbol: ts.Symbol, checker: ts.TypeChecker): string {
  const text = ts.displayPartsToString(symbol.getDocumentationComment(checker));
  return text.trim().split(/\n\s*\n/).map((paragraph) => paragraph.split(/\s+/).join(" ")).join("\n\n");
}

/** Adds the rules in a field's tags to its schema. */
export function applyTags(schema: Schema, tags: readonly Tag[], place: Place): void {
  for (const tag of tags.filter(({ name }) => name === "integer")) {
    if (schema["type"] !== "number" || tag.text) {
      throw unsupported(place, `@integer is a rule of number, without a value; the field is ${kindOf(schema)}`);
    }
    Object.assign(schema, { type: "integer", format: "int64" });
  }
  for (const tag of tags) {
    if (tag.name === "default") {
      schema["default"] = parseDefault(tag, place);
    } else if (Object.hasOwn(RULES, tag.name)) {
      applyRule(schema, tag, place);
    } else if (tag.name !== "integer" && !PROSE.includes(tag.name)) {
      const known = [...Object.keys(RULES), "default", "integer"].map((name) => `@${name}`).join(", ");
      throw unsupported(place, `@${tag.name} is unknown; expected ${known}`);
    }
  }
  checkDefault(schema, place);
}

function applyRule(schema: Schema, { name, text }: Tag, place: Place): void {
  const rule = RULES[name]!;
  if (!rule.types.includes(String(schema["type"]))) {
    throw unsupported(place, `@${name} is a rule of ${rule.types.join(" or ")}; the field is ${kindOf(schema)}`);
  }
  if (text === "" || (rule.number && !Number.isFinite(Number(text)))) {
    throw unsupported(place, `@${name}: got ${JSON.stringify(text)}, expected ${rule.number ? "a number" : "a text"}`);
  }
  schema[name] = rule.number ? Number(text) : text;
}

function parseDefault({ text }: Tag, place: Place): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw unsupported(place, `@default: got ${text || "nothing"}, expected JSON such as 1, true, "Plain" or {}`);
  }
}

/** Finds common faults in defaults, with their place. The API server would reject such a CRD. */
function checkDefault(schema: Schema, place: Place): void {
  const value = schema["default"];
  if (value === undefined) {
    return;
  }
  const shown = JSON.stringify(value);
  const choices = schema["enum"] as unknown[] | undefined;
  if (choices && !choices.includes(value)) {
    throw unsupported(place, `the default ${shown} is not one of ${JSON.stringify(choices)}`);
  }
  const type = schema["type"];
  if (type !== undefined && !fits(value, String(type))) {
    throw unsupported(place, `the default ${shown} is not of type ${String(type)}`);
  }
  const { minimum = -Infinity, maximum = Infinity } = schema as { minimum?: number; maximum?: number };
  if (typeof value === "number" && (value < minimum || value > maximum)) {
    throw unsupported(place, `the default ${shown} is not within its minimum and maximum`);
  }
}

function fits(value: unknown, type: string): boolean {
  switch (type) {
    case "integer": return Number.isInteger(value);
    case "array": return Array.isArray(value);
    case "object": return typeof value === "object" && value !== null && !Array.isArray(value);
    default: return typeof value === type;
  }
}

function kindOf(schema: Schema): string {
  return String(schema["type"] ?? "a value of any type");
}
