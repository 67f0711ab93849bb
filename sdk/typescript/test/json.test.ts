/** JSON without loss of digits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse, stringify } from "../src/index.js";

test("integers beyond 2^53 survive", () => {
  const text = '{"a":9007199254740993,"b":-9223372036854775808,"c":[18446744073709551615],"d":9007199254740991}';
  assert.deepEqual(parse(text), { a: 9007199254740993n, b: -(2n ** 63n), c: [2n ** 64n - 1n], d: 2 ** 53 - 1 });
  assert.equal(stringify(parse(text)), text);
});

test("strings and decimals do not change", () => {
  const text = String.raw`{"9007199254740993":"9007199254740993","a":"\"9007199254740993","b":1.5,"c":"\\"}`;
  assert.equal(stringify(parse(text)), text);
  assert.deepEqual(parse("[1e20,12345678901234567890.5]"), [1e20, 12345678901234567890.5]);
});

test("a value that is not JSON is an error", () => {
  assert.throws(() => stringify({ a: NaN }), /a is NaN, expected a finite number/);
  assert.throws(() => stringify(undefined), /undefined is not a JSON value/);
});

test("large strings beside a large integer", () => {
  for (const [name, text] of [
    ["plain", "x".repeat(8 << 20)],
    ["escaped", '\\"\\\\\\n"'.slice(0, -1).repeat(1 << 20)],
    ["digits", "12345678901234567890".repeat(1 << 16)],
  ]) {
    const read = parse(`{"a":"${text}","n":9007199254740993,"b":"${text}"}`) as { a: string; n: bigint; b: string };
    assert.equal(read.n, 2n ** 53n + 1n, name);
    assert.equal(read.a, JSON.parse(`"${text}"`), name);
    assert.equal(read.b, read.a, name);
  }
  for (const text of ['{"a":"9007199254740993', '{"a":"9007199254740993\\"}', '"9007199254740993" "']) {
    assert.throws(() => parse(text), SyntaxError);
  }
});
