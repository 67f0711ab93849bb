/**
 * JSON in which integers keep all their digits: those that a number cannot hold exactly become bigint, and are written as they were.
 *
 * JSON.parse and JSON.stringify do the work. Integers that they would round travel through them as strings that begin with a mark, which
 * is different in each process so that no one else's string has it.
 */
import { randomUUID } from "node:crypto";

const MARK = `bigint ${randomUUID()} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");
/** A string, which may hold digits that are no number, or a number. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;
const LONG = /\d{16}/;

/** Reads JSON. */
export function parse(text: string): unknown {
  if (!LONG.test(text)) {
    return JSON.parse(text);
  }
  const marked = text.replace(TOKEN, (token) => (INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${MARK}${token}"` : token));
  return JSON.parse(marked, (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value);
}

/** Writes JSON. A number that JSON does not know, or a value that is none, is an error. */
export function stringify(value: unknown): string {
  let big = false;
  const text = JSON.stringify(value, (key, member: unknown) => {
    if (typeof member === "bigint") {
      big = true;
      return MARK + member.toString();
    }
    if (typeof member === "number" && !Number.isFinite(member)) {
      throw new TypeError(`${key || "it"} is ${member}, expected a finite number`);
    }
    return member;
  });
  if (text === undefined) {
    throw new TypeError(`${typeof value} is no JSON value`);
  }
  return big ? text.replace(MARKED, "$1") : text;
}
