/** Makes CustomResourceDefinitions from the interfaces in a file. */
import { dirname, resolve } from "node:path";
import ts from "typescript";
import { type Place, positionIn, unsupported, UnsupportedType } from "./errors.js";
import { SchemaBuilder } from "./schema.js";
import { descriptionOf, RESOURCE_TAGS, type Schema, type Tag, tagsOf } from "./tags.js";

/** What Hookloop adds to a parent's status: the generation, and conditions as in metav1. */
const STATUS: Record<string, Schema> = {
  observedGeneration: { type: "integer", format: "int64" },
  conditions: {
    type: "array",
    items: {
      type: "object",
      required: ["type", "status"],
      properties: {
        type: { type: "string" },
        status: { type: "string", enum: ["True", "False", "Unknown"] },
        reason: { type: "string" },
        message: { type: "string" },
        lastTransitionTime: { type: "string", format: "date-time" },
        observedGeneration: { type: "integer", format: "int64" },
      },
    },
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
  },
};
const OWN = ["apiVersion", "kind", "metadata"];
const GROUP = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/;
const VERSION = /^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$/;
const COLUMN = /^(.+?)\s+(string|integer|number|boolean|date)\s+(\S+)$/;

/** A CustomResourceDefinition. */
export type Definition = Schema;

/**
 * Returns the CRDs for a TypeScript file: one for each exported interface with literals as the
 * types of apiVersion and kind. Throws UnsupportedType for a type that a CRD cannot express, and
 * for a file that does not compile.
 */
export function definitions(file: string): Definition[] {
  const path = resolve(file);
  const program = ts.createProgram([path], optionsFor(path));
  const source = program.getSourceFile(path);
  if (!source) {
    throw new UnsupportedType(`${file}: no such file`);
  }
  const [fault] = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  if (fault) {
    const text = ts.flattenDiagnosticMessageText(fault.messageText, " ");
    throw new UnsupportedType(`${positionIn(source, fault.start ?? 0)}: ${text}`);
  }
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(source);
  const found = (module ? checker.getExportsOfModule(module) : []).flatMap((symbol) => definition(symbol, checker));
  if (found.length === 0) {
    const expected = 'an exported interface with apiVersion: "example.com/v1" and kind: "Shop"';
    throw new UnsupportedType(`${file}: has no custom resource; expected ${expected}`);
  }
  return found;
}

/** Returns the compiler options for a file, from its tsconfig.json if there is one. */
function optionsFor(path: string): ts.CompilerOptions {
  const config = ts.findConfigFile(dirname(path), (name) => ts.sys.fileExists(name));
  const read = config ? ts.readConfigFile(config, (name) => ts.sys.readFile(name)) : { config: {} };
  const { options } = ts.parseJsonConfigFileContent(read.config ?? {}, ts.sys, dirname(config ?? path));
  const modules = { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext };
  return { target: ts.ScriptTarget.ES2022, ...modules, ...options, strict: true, noEmit: true, skipLibCheck: true };
}

/** Returns the CRD for an exported interface, or an empty list if it is no custom resource. */
function definition(symbol: ts.Symbol, checker: ts.TypeChecker): Definition[] {
  if ((symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias)) === 0) {
    return [];
  }
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  const [apiVersion, kind] = [literalOf(type, "apiVersion", checker), literalOf(type, "kind", checker)];
  if (apiVersion === undefined || kind === undefined) {
    return [];
  }
  const place = { node: symbol.declarations?.[0], name: symbol.name };
  const [group = "", version = "", ...rest] = apiVersion.split("/");
  if (!GROUP.test(group) || !VERSION.test(version) || rest.length > 0) {
    throw unsupported(place, `apiVersion: got ${JSON.stringify(apiVersion)}, expected one such as "example.com/v1"`);
  }
  const tags = tagsOf(symbol, checker);
  const unknown = tags.find(({ name }) => ["minimum", "maximum", "default", "printcolumn"].includes(name));
  if (unknown) {
    const known = RESOURCE_TAGS.map((name) => `@${name}`).join(", ");
    throw unsupported(place, `@${unknown.name} is no tag of a resource; expected ${known}`);
  }
  const text = (name: string): string | undefined => tags.find((tag) => tag.name === name)?.text;
  const plural = text("plural") ?? pluralOf(kind);
  const scope = text("scope") ?? "Namespaced";
  if (scope !== "Namespaced" && scope !== "Cluster") {
    throw unsupported(place, `@scope: got ${JSON.stringify(scope)}, expected Namespaced or Cluster`);
  }
  const shortNames = tags.filter(({ name }) => name === "shortName").map((tag) => tag.text);
  const columns = tags.filter(({ name }) => name === "column").map((tag) => columnOf(tag, place));
  const names = {
    kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(),
    ...(shortNames.length > 0 ? { shortNames } : {}),
  };
  const served = {
    name: version, served: true, storage: true, subresources: { status: {} },
    ...(columns.length > 0 ? { additionalPrinterColumns: columns } : {}),
    schema: { openAPIV3Schema: schemaOf(symbol, type, checker) },
  };
  return [{
    apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `${plural}.${group}` },
    spec: { group, scope, names, versions: [served] },
  }];
}

/**
 * Returns the schema for a whole object: its spec, and its status with the fields that Hookloop
 * writes.
 */
function schemaOf(symbol: ts.Symbol, type: ts.Type, checker: ts.TypeChecker): Schema {
  const builder = new SchemaBuilder(checker);
  const fields: Record<string, Schema> = {};
  const required: string[] = [];
  for (const member of checker.getPropertiesOfType(type).filter(({ name }) => !OWN.includes(name))) {
    if (member.name !== "spec" && member.name !== "status") {
      const place = { node: member.valueDeclaration, name: `${symbol.name}.${member.name}` };
      throw unsupported(place, "expected only metadata, spec and status here");
    }
    const field = builder.field(member, symbol.name);
    fields[member.name] = field.schema;
    if (field.required && member.name === "spec") {
      required.push(member.name);
    }
  }
  const description = descriptionOf(symbol, checker);
  return {
    type: "object",
    ...(description ? { description } : {}),
    ...(required.length > 0 ? { required } : {}),
    properties: {
      apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" },
      ...fields, status: statusOf(fields["status"]),
    },
  };
}

/**
 * Makes no field of a status required, because Hookloop reports faults before the first response.
 */
function statusOf(schema: Schema = { type: "object" }): Schema {
  const { required: _, ...rest } = schema;
  if (rest["x-kubernetes-preserve-unknown-fields"]) {
    return { ...rest, type: "object" };
  }
  return { ...rest, properties: { ...(rest["properties"] as object | undefined), ...STATUS } };
}

/** Returns a field's value if its type is a single string. */
function literalOf(type: ts.Type, name: string, checker: ts.TypeChecker): string | undefined {
  const field = checker.getPropertyOfType(type, name);
  const value = field && checker.getTypeOfSymbol(field);
  return value?.isStringLiteral() ? value.value : undefined;
}

function columnOf({ text }: Tag, place: Place): Schema {
  const [, name, type, jsonPath] = COLUMN.exec(text) ?? [];
  if (!name) {
    const expected = 'one such as "Copies integer .status.copies"';
    throw unsupported(place, `@column: got ${JSON.stringify(text)}, expected ${expected}`);
  }
  return { name, type, jsonPath };
}

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/(s|x|z|ch|sh)$/.test(name)) {
    return `${name}es`;
  }
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}
