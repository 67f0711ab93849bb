/**
 * Reads and writes JSON and keeps every digit: an integer that a number cannot hold exactly becomes
 * a bigint, and is written back unchanged.
 *
 * Large integers pass through JSON.parse and JSON.stringify as strings with a prefix. The prefix is
 * random in each process, so that no other string starts with it.
 */
import { randomUUID } from "node:crypto";

const MARK = `bigint ${randomUUID()} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");
const NUMBER = /-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;
const LONG = /\d{16}/;

/** Parses JSON. Throws SyntaxError if the text is invalid. */
export function parse(text: string): unknown {
  if (!LONG.test(text)) {
    return JSON.parse(text);
  }
  return JSON.parse(marked(text), (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value);
}

/**
 * Replaces large integers by strings. It skips strings by hand, because a regular expression would
 * use stack space for each character.
 */
function marked(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const begin = quote < 0 ? text.length : quote;
    const end = endOfString(text, begin);
    parts.push(text.slice(at, begin).replace(NUMBER, mark), text.slice(begin, end));
    at = end;
  }
  return parts.join("");
}

function mark(number: string): string {
  return INTEGER.test(number) && !Number.isSafeInteger(Number(number)) ? `"${MARK}${number}"` : number;
}

/**
 * Returns where the string that starts at an index ends. If it is not terminated, this is the end
 * of the text.
 */
function endOfString(text: string, begin: number): number {
  for (let quote = begin; ; ) {
    quote = text.indexOf('"', quote + 1);
    if (quote < 0) {
      return text.length;
    }
    let escapes = 0;
    while (text[quote - 1 - escapes] === "\\") {
      escapes++;
    }
    if (escapes % 2 === 0) {
      return quote + 1;
    }
  }
}

/**
 * Returns a value as JSON. Throws TypeError for NaN, infinite numbers, and anything that JSON
 * cannot express.
 */
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
    throw new TypeError(`${typeof value} is not a JSON value`);
  }
  return big ? text.replace(MARKED, "$1") : text;
}
