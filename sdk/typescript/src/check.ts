/**
 * Checks what a hook's function returns. An error names the item, its value, and what was expected.
 */
import { InvalidResponse } from "./errors.js";

/** Members of a plain object. */
export type Members = Record<string, unknown>;

/**
 * Returns the object if it has allowed fields only. A misspelt field must not pass, because
 * Hookloop could then delete objects.
 */
export function fields(value: unknown, item: string, allowed: readonly string[]): Members {
  const members = object(value, item);
  for (const name of Object.keys(members)) {
    if (!allowed.includes(name)) {
      throw new InvalidResponse(`${item} has the field ${name}, expected one of ${[...allowed].sort().join(", ")}`);
    }
  }
  return members;
}

/** Returns a value that must be an object. */
export function object(value: unknown, item: string): Members {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidResponse(`${item} is ${describe(value)}, expected an object`);
  }
  return value as Members;
}

/** Returns a value that must be a list, or an empty list if there is no value. */
export function list(value: unknown, item: string): readonly unknown[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (!Array.isArray(value)) {
    throw new InvalidResponse(`${item} is ${describe(value)}, expected a list`);
  }
  return value;
}

/** Returns a value that must be a string, or an empty string if there is no value. */
export function text(value: unknown, item: string): string {
  if (value === undefined || value === null) {
    return "";
  }
  if (typeof value !== "string") {
    throw new InvalidResponse(`${item} is ${describe(value)}, expected a string`);
  }
  return value;
}

/** Returns a value that must be a string, and not empty. */
export function nonEmpty(value: unknown, item: string): string {
  if (typeof value !== "string" || value === "") {
    throw new InvalidResponse(`${item} is ${describe(value)}, expected a string that is not empty`);
  }
  return value;
}

/** Returns a value that must be a boolean. */
export function boolean(value: unknown, item: string): boolean {
  if (typeof value !== "boolean") {
    throw new InvalidResponse(`${item} is ${describe(value)}, expected true or false`);
  }
  return value;
}

/** Looks up a key that must be in a table. */
export function choice<T>(value: unknown, item: string, choices: ReadonlyMap<string, T>): T {
  const chosen = typeof value === "string" ? choices.get(value) : undefined;
  if (chosen === undefined) {
    const got = typeof value === "string" ? JSON.stringify(value) : describe(value);
    throw new InvalidResponse(`${item} is ${got}, expected one of ${[...choices.keys()].join(", ")}`);
  }
  return chosen;
}

/** Returns a value that must be a list of strings. */
export function texts(value: unknown, item: string): string[] {
  return list(value, item).map((member, index) => text(member, `${item}[${index}]`));
}

/** Describes a value for a message: by its type, and by the value if it cannot contain a secret. */
export function describe(value: unknown): string {
  if (value === "") {
    return '""';
  }
  if (value === null || ["undefined", "number", "bigint", "boolean"].includes(typeof value)) {
    return String(value);
  }
  return Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}
