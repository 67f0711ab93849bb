/** Small checks of values that come from a hook's function. Each error names the item, what was got, and what was expected. */
import { InvalidResponse } from "./errors.js";

/** The members of a plain object. */
export type Members = Record<string, unknown>;

/** The object itself, if it has no other fields than those allowed: a misspelt one would delete what it should keep. */
export function fields(value: unknown, item: string, allowed: readonly string[]): Members {
  const members = object(value, item);
  for (const name of Object.keys(members)) {
    if (!allowed.includes(name)) {
      throw new InvalidResponse(`${item} has the field ${name}, expected one of ${[...allowed].sort().join(", ")}`);
    }
  }
  return members;
}

/** A value that must be an object. */
export function object(value: unknown, item: string): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidResponse(`${item} is ${said(value)}, expected an object`);
  }
  return value as Members;
}

/** A value that must be a list; none at all is an empty one. */
export function list(value: unknown, item: string): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw new InvalidResponse(`${item} is ${said(value)}, expected a list`);
  }
  return value;
}

/** A value that must be a string; none at all is an empty one. */
export function text(value: unknown, item: string): string {
  if (value === undefined || value === null) {
    return "";
  }
  if (typeof value !== "string") {
    throw new InvalidResponse(`${item} is ${said(value)}, expected a string`);
  }
  return value;
}

/** A value that must be a string with something in it. */
export function word(value: unknown, item: string): string {
  if (typeof value !== "string" || value === "") {
    throw new InvalidResponse(`${item} is ${said(value)}, expected a string that is not empty`);
  }
  return value;
}

/** A value that must be true or false. */
export function flag(value: unknown, item: string): boolean {
  if (typeof value !== "boolean") {
    throw new InvalidResponse(`${item} is ${said(value)}, expected true or false`);
  }
  return value;
}

/** The member of a table that a value names. */
export function choice<T>(value: unknown, item: string, choices: ReadonlyMap<string, T>): T {
  const chosen = typeof value === "string" ? choices.get(value) : undefined;
  if (chosen === undefined) {
    throw new InvalidResponse(`${item} is ${typeof value === "string" ? JSON.stringify(value) : said(value)}, expected one of ${[...choices.keys()].join(", ")}`);
  }
  return chosen;
}

/** A list of strings. */
export function texts(value: unknown, item: string): string[] {
  return list(value, item).map((member, index) => text(member, `${item}[${index}]`));
}

/** A value as messages show it: its type, and the value where that cannot hold a secret. */
export function said(value: unknown): string {
  if (value === "") {
    return '""';
  }
  if (value === null || ["undefined", "number", "bigint", "boolean"].includes(typeof value)) {
    return String(value);
  }
  return Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}
