/**
 * JSON in which integers keep all their digits: those that a number cannot hold exactly become bigint, and are written as they were.
 *
 * JSON.parse and JSON.stringify do the work. Integers that they would round travel through them as strings that begin with a mark, which
 * is different in each process so that no one else's string has it.
 */
import { randomUUID } from "node:crypto";

const MARK = `bigint ${randomUUID()} `;
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, "g");
const NUMBER = /-?\d[\d.eE+-]*/g;
const INTEGER = /^-?\d{16,}$/;
const LONG = /\d{16}/;

/** Reads JSON. */
export function parse(text: string): unknown {
  if (!LONG.test(text)) {
    return JSON.parse(text);
  }
  return JSON.parse(marked(text), (_, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value);
}

/**
 * Marks the integers of a text that a number cannot hold. Strings, whose digits are no numbers, are stepped over by hand: a regular expression
 * for them takes stack for each character.
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

/** Where the string that begins at a place ends; one without an end, which JSON.parse refuses, ends with the text. */
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
