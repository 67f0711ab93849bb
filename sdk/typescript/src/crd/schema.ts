/** Makes schemas for types: OpenAPI v3, as in structural schemas. */
import ts from "typescript";
import { type Place, unsupported } from "./errors.js";
import { applyTags, descriptionOf, type Schema, tagsOf } from "./tags.js";

const SUPPORTED =
  "string, number, bigint, boolean, a union of string literals, T[], Record<string, T>, an interface or unknown";
const ANY = "x-kubernetes-preserve-unknown-fields";

/** Builds schemas. It remembers which interfaces it is inside of. */
export class SchemaBuilder {
  readonly #outer: ts.Type[] = [];

  constructor(readonly checker: ts.TypeChecker) {}

  /** Returns the schema for a field, and whether the field is required. */
  field(symbol: ts.Symbol, owner: string): { schema: Schema; required: boolean } {
    const node = symbol.valueDeclaration ?? symbol.declarations?.[0];
    const place = { node, name: `${owner}.${symbol.name}` };
    const type = this.checker.getTypeOfSymbol(symbol);
    const schema = this.type(type, place);
    applyTags(schema, tagsOf(symbol, this.checker), place);
    const description = descriptionOf(symbol, this.checker);
    const optional = (symbol.flags & ts.SymbolFlags.Optional) !== 0 || partsOf(type).some(isUndefined);
    return {
      schema: description ? { ...schema, description } : schema,
      required: !optional && schema["default"] === undefined,
    };
  }

  /** Returns the schema for a type, without the field's tags. */
  type(type: ts.Type, place: Place): Schema {
    const parts = partsOf(type).filter((part) => !isUndefined(part));
    const values = parts.filter((part) => (part.flags & ts.TypeFlags.Null) === 0);
    const schema = this.#values(values, type, place);
    return values.length < parts.length ? { ...schema, nullable: true } : schema;
  }

  /** Returns the schema for an interface. */
  object(type: ts.Type, place: Place): Schema {
    if (this.#outer.includes(type)) {
      const path = [...this.#outer, type].map((outer) => this.#name(outer)).join(" → ");
      throw unsupported(place, `${path}: a CRD cannot have a type that contains itself`);
    }
    this.#outer.push(type);
    const properties: Record<string, Schema> = {};
    const required: string[] = [];
    for (const symbol of this.checker.getPropertiesOfType(type)) {
      const field = this.field(symbol, this.#name(type));
      properties[symbol.name] = field.schema;
      if (field.required) {
        required.push(symbol.name);
      }
    }
    this.#outer.pop();
    const symbol = type.aliasSymbol ?? type.getSymbol();
    const description = symbol ? descriptionOf(symbol, this.checker) : "";
    return {
      type: "object",
      ...(description ? { description } : {}),
      ...(required.length > 0 ? { required } : {}),
      properties,
    };
  }

  /** Returns the schema for the alternatives of a union. */
  #values(parts: readonly ts.Type[], type: ts.Type, place: Place): Schema {
    const has = (flags: ts.TypeFlags) => parts.every((part) => (part.flags & flags) !== 0);
    if (parts.length === 0 || has(ts.TypeFlags.Never)) {
      throw this.#unsupported(type, place);
    }
    if (has(ts.TypeFlags.BooleanLike)) {
      return { type: "boolean" };
    }
    if (has(ts.TypeFlags.StringLiteral) || has(ts.TypeFlags.NumberLiteral)) {
      return literals(parts as ts.LiteralType[], place);
    }
    if (parts.length > 1) {
      return this.#union(parts, type, place);
    }
    return this.#single(parts[0]!, type, place);
  }

  #union(parts: readonly ts.Type[], type: ts.Type, place: Place): Schema {
    const has = (flags: ts.TypeFlags) => parts.some((part) => (part.flags & flags) !== 0);
    if (parts.length === 2 && has(ts.TypeFlags.Number) && has(ts.TypeFlags.BigInt)) {
      return { type: "integer", format: "int64" };
    }
    if (parts.length === 2 && has(ts.TypeFlags.Number) && has(ts.TypeFlags.String)) {
      return { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] };
    }
    throw this.#unsupported(type, place);
  }

  #single(part: ts.Type, type: ts.Type, place: Place): Schema {
    const { flags } = part;
    if (flags & ts.TypeFlags.String) {
      return { type: "string" };
    }
    if (flags & ts.TypeFlags.Number) {
      return { type: "number" };
    }
    if (flags & ts.TypeFlags.BigInt) {
      return { type: "integer", format: "int64" };
    }
    if (flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) {
      return { [ANY]: true };
    }
    if (flags & ts.TypeFlags.NonPrimitive) {
      return { type: "object", [ANY]: true };
    }
    if (this.checker.isArrayType(part)) {
      const [item] = this.checker.getTypeArguments(part as ts.TypeReference);
      return { type: "array", items: this.type(item!, { ...place, name: `${place.name}[]` }) };
    }
    if (flags & (ts.TypeFlags.Object | ts.TypeFlags.Intersection)) {
      return this.#members(part, type, place);
    }
    throw this.#unsupported(type, place);
  }

  /** Returns the schema for an object type: a map or an interface. */
  #members(part: ts.Type, type: ts.Type, place: Place): Schema {
    const values = this.checker.getIndexTypeOfType(part, ts.IndexKind.String);
    const fields = this.checker.getPropertiesOfType(part);
    if (values && fields.length === 0) {
      const schema = this.type(values, { ...place, name: `${place.name}{}` });
      return { type: "object", ...(schema[ANY] ? schema : { additionalProperties: schema }) };
    }
    const callable = part.getCallSignatures().length + part.getConstructSignatures().length > 0;
    const isMethod = (symbol: ts.Symbol) => (symbol.flags & ts.SymbolFlags.Method) !== 0;
    if (values || callable || this.checker.isTupleType(part) || fields.some(isMethod)) {
      throw this.#unsupported(type, place);
    }
    return this.object(part, place);
  }

  #name(type: ts.Type): string {
    return this.checker.typeToString(type);
  }

  #unsupported(type: ts.Type, place: Place): Error {
    return unsupported(place, `${this.#name(type)} has no schema; expected ${SUPPORTED}`);
  }
}

function literals(parts: readonly ts.LiteralType[], place: Place): Schema {
  const values = parts.map(({ value }) => value);
  if (values.every((value) => typeof value === "string")) {
    return { type: "string", enum: values };
  }
  if (values.every((value) => Number.isInteger(value))) {
    return { type: "integer", enum: values };
  }
  throw unsupported(place, `got the values ${JSON.stringify(values)}; expected only strings, or only integers`);
}

function partsOf(type: ts.Type): readonly ts.Type[] {
  return type.isUnion() ? type.types : [type];
}

function isUndefined(type: ts.Type): boolean {
  return (type.flags & (ts.TypeFlags.Undefined | ts.TypeFlags.Void)) !== 0;
}
