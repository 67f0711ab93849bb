/**
 * CRDs of interfaces. testdata/crd/crd.yaml is the expected output for testdata/crd/api.ts;
 * UPDATE=1 rewrites it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { definitions } from "../src/crd/definition.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PROGRAM = join(ROOT, "build/src/crd/main.js");
const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
after(() => rmSync(folder, { recursive: true, force: true }));
// A small library makes the compiler faster.
writeFileSync(join(folder, "tsconfig.json"), '{ "compilerOptions": { "lib": ["es5"], "types": [] } }');

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [PROGRAM, ...args], { cwd: ROOT, encoding: "utf8" });
}

/** Returns the error for a file. */
function faultOf(text: string): string {
  const file = join(folder, "api.ts");
  writeFileSync(file, text);
  try {
    definitions(file);
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

/** Returns a file with a Spec of one field, in line 2 or, with a tag, in line 3. */
function specWith(field: string, tag?: string): string {
  const comment = tag === undefined ? "" : `  /** ${tag} */\n`;
  return `interface Spec {\n${comment}  ${field}\n}
export interface Shop { apiVersion: "example.com/v1"; kind: "Shop"; metadata: object; spec: Spec }\n`;
}

test("all types", () => {
  const golden = join(ROOT, "test/testdata/crd/crd.yaml");
  const { status, stdout, stderr } = run("test/testdata/crd/api.ts");
  assert.equal(stderr, "");
  assert.equal(status, 0);
  if (process.env["UPDATE"]) {
    writeFileSync(golden, stdout);
  }
  assert.equal(stdout, readFileSync(golden, "utf8"));
});

test("bad types are named, with their place", () => {
  const cases: [field: string, tag: string | undefined, expected: string][] = [
    ["when: Date;", undefined, "Spec.when: Date has no schema; expected string, number"],
    ["pair: [number, number];", undefined, "Spec.pair: [number, number] has no schema"],
    ["run: () => void;", undefined, "Spec.run: () => void has no schema"],
    ["either: number | string[];", undefined, "Spec.either: number | string[] has no schema"],
    ['mixed: "a" | 1;', undefined, "Spec.mixed: "],
    ["deep: Record<string, Date[]>;", undefined, "Spec.deep{}[]: Date has no schema"],
    ["nothing: undefined;", undefined, "Spec.nothing: undefined has no schema"],
    ["again: Spec[];", undefined, "Spec.again[]: Spec → Spec: a CRD cannot have a type that contains itself"],
    ["text: string;", "@minimum 1", "Spec.text: @minimum is a rule of integer or number; the field is string"],
    ["text: string;", "@integer", "Spec.text: @integer is a rule of number, without a value; the field is string"],
    ["copies: number;", "@minium 1", "Spec.copies: @minium is unknown; expected @minimum, @maximum"],
    ["copies: number;", "@maximum many", 'Spec.copies: @maximum: got "many", expected a number'],
    ['style: "A" | "B";', '@default "C"', 'Spec.style: the default "C" is not one of ["A","B"]'],
    ["text: string;", "@default Plain", "Spec.text: @default: got Plain, expected JSON"],
    ["text: string;", "@default 1", "Spec.text: the default 1 is not of type string"],
    ["other: Missing;", undefined, "Cannot find name 'Missing'"],
  ];
  for (const [field, tag, expected] of cases) {
    const fault = faultOf(specWith(field, tag));
    assert.ok(fault.includes(expected), `${field} ${tag ?? ""}: got ${fault || "no error"}, expected ${expected}`);
    assert.match(fault, tag === undefined ? /api\.ts:2:\d+: / : /api\.ts:3:\d+: /);
  }
});

test("wrong resources are named", () => {
  const shop = (fields: string, doc = "") => `/** ${doc} */\nexport interface Shop { ${fields} }\n`;
  const own = 'apiVersion: "example.com/v1"; kind: "Shop";';
  for (const [text, expected] of [
    ["export const x = 1;\n", "has no custom resource; expected an exported interface with apiVersion"],
    [shop('apiVersion: "v1"; kind: "Shop"'), 'Shop: apiVersion: got "v1", expected one such as "example.com/v1"'],
    [shop(own, "@scope All"), 'Shop: @scope: got "All", expected Namespaced or Cluster'],
    [shop(own, "@column Copies"), 'Shop: @column: got "Copies", expected one such as'],
    [shop(`${own} copies: number`), "Shop.copies: expected only metadata, spec and status here"],
  ] as const) {
    assert.ok(faultOf(text).includes(expected), `${text}: got ${faultOf(text)}, expected ${expected}`);
  }
});

test("a file is written and checked", () => {
  const [file, output] = [join(folder, "written.ts"), join(folder, "crd.yaml")];
  writeFileSync(file, specWith("copies: number;"));
  assert.equal(run(file, "-o", output).stderr, "");
  assert.match(readFileSync(output, "utf8"), /name: shops\.example\.com/);
  assert.equal(run(file, "-o", output, "--check").status, 0);
  writeFileSync(output, "");
  const stale = run(file, "-o", output, "--check");
  assert.equal(stale.status, 1);
  assert.match(stale.stderr, /crd\.yaml is stale/);
});

test("a wrong command line is a usage error", () => {
  for (const [args, expected] of [
    [[], "expected one FILE"], [["a.ts", "b.ts"], "expected one FILE"], [["--odd"], "--odd"],
    [["a.ts", "--check"], "expected one FILE, and --output"],
  ] as const) {
    const { status, stderr } = run(...args);
    assert.equal(status, 2);
    assert.ok(stderr.includes(expected), stderr);
  }
  const missing = run("missing.ts");
  assert.equal(missing.status, 1);
  assert.match(missing.stderr, /^hookloop-crd: missing\.ts: no such file\n$/);
});
