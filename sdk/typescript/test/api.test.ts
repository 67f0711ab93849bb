/**
 * The public API: the declarations of all names that the entry points export, and of the types that
 * these refer to. A change shows in testdata/api.txt, which REWRITE=1 npm test writes.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const GOLDEN = `${ROOT}test/testdata/api.txt`;
const ENTRIES = ["index", "testing"];

/** Returns the declarations of the sources by file name, without comments. */
function declarations(): Map<string, string> {
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile).config,
    ts.sys,
    ROOT,
  );
  const emitted = { ...options, declaration: true, emitDeclarationOnly: true, removeComments: true };
  const program = ts.createProgram(
    ENTRIES.map((entry) => `${ROOT}src/${entry}.ts`),
    emitted,
  );
  const files = new Map<string, string>();
  program.emit(undefined, (name, text) => files.set(name, text));
  return files;
}

/** Returns a program of declaration files in memory. */
function programOf(files: ReadonlyMap<string, string>): ts.Program {
  const options: ts.CompilerOptions = { module: ts.ModuleKind.NodeNext, types: ["node"], skipLibCheck: true };
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.readFile = (name) => files.get(name) ?? readFile(name);
  host.getSourceFile = (name, target, ...rest) => {
    const text = files.get(name);
    return text === undefined ? getSourceFile(name, target, ...rest) : ts.createSourceFile(name, text, target);
  };
  host.getCurrentDirectory = () => ROOT;
  return ts.createProgram([...files.keys()], options, host);
}

/** Returns the symbol that an import or an export refers to. */
function targetOf(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
}

/** Returns the declarations of a symbol, with whole statements for constants. */
function nodesOf(symbol: ts.Symbol): ts.Node[] {
  return (symbol.declarations ?? []).map((node) => (ts.isVariableDeclaration(node) ? node.parent.parent : node));
}

/** Returns the SDK's symbols that a declaration refers to. */
function references(checker: ts.TypeChecker, node: ts.Node): ts.Symbol[] {
  const found: ts.Symbol[] = [];
  const visit = (child: ts.Node): void => {
    const symbol = ts.isIdentifier(child) ? checker.getSymbolAtLocation(child) : undefined;
    const target = symbol && targetOf(checker, symbol);
    const declaration = target?.declarations?.[0];
    if (declaration?.getSourceFile().fileName.startsWith(`${ROOT}dist/`) && ts.isSourceFile(declaration.parent)) {
      found.push(target!);
    }
    child.forEachChild(visit);
  };
  visit(node);
  return found;
}

/** Returns the declarations of symbols, sorted by name. */
function print(symbols: Iterable<ts.Symbol>): string {
  const text = (node: ts.Node): string => node.getText().replace(/^export (declare )?|^declare /, "");
  const sorted = [...symbols].sort((a, b) => (a.name < b.name ? -1 : 1));
  return sorted.map((symbol) => `${nodesOf(symbol).map(text).join("\n")}\n`).join("\n");
}

/**
 * Returns the public API: the exports of each entry point, and the other types that they refer to.
 */
function describeApi(program: ts.Program): string {
  const checker = program.getTypeChecker();
  const sections: string[] = [];
  const known = new Set<ts.Symbol>();
  for (const entry of ENTRIES) {
    const file = program.getSourceFile(`${ROOT}dist/${entry}.d.ts`)!;
    const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!);
    const symbols = exported.map((symbol) => targetOf(checker, symbol));
    symbols.forEach((symbol) => known.add(symbol));
    sections.push(`// ${entry}\n\n${print(symbols)}`);
  }
  const others = new Set<ts.Symbol>();
  for (const symbol of known) {
    // it grows in the loop
    for (const reference of nodesOf(symbol).flatMap((node) => references(checker, node))) {
      if (!known.has(reference)) {
        known.add(reference);
        others.add(reference);
      }
    }
  }
  sections.push(`// types that these refer to\n\n${print(others)}`);
  return sections.join("\n");
}

test("the public API is that of testdata/api.txt", () => {
  const api = describeApi(programOf(declarations()));
  assert.doesNotMatch(api, /_pb\b|@bufbuild|Message\b|Schema\b/, "a generated type is public");
  if (process.env["REWRITE"]) {
    writeFileSync(GOLDEN, api);
  }
  assert.equal(api, readFileSync(GOLDEN, "utf8"), "the public API has changed; review it with REWRITE=1 npm test");
});

/** Returns the names that an editor offers at the end of a line in a hook. */
function completions(line: string): string[] {
  const name = `${ROOT}test/completion.ts`;
  const imports = 'import { childrenOf, type SyncRequest } from "../src/index.js";';
  const text = `${imports}\nexport function sync(request: SyncRequest) {\n${line}`;
  const options: ts.CompilerOptions = { module: ts.ModuleKind.NodeNext, strict: true, types: [] };
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getCurrentDirectory: () => ROOT,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    getScriptFileNames: () => [name],
    getScriptVersion: () => "1",
    getScriptSnapshot: (file) => {
      const content = file === name ? text : ts.sys.readFile(file);
      return content === undefined ? undefined : ts.ScriptSnapshot.fromString(content);
    },
    fileExists: (file) => file === name || ts.sys.fileExists(file),
    readFile: ts.sys.readFile,
  });
  const found = service.getCompletionsAtPosition(name, text.length, undefined);
  return (found?.entries ?? []).map((entry) => entry.name);
}

test("an editor completes fields and kinds", () => {
  const deployment = 'childrenOf(request, "Deployment.apps/v1")["web"]!.';
  assert.ok(completions(`${deployment}spec!.`).includes("replicas"));
  assert.ok(completions(`${deployment}status!.`).includes("readyReplicas"));
  assert.ok(completions('childrenOf(request, "').includes("Deployment.apps/v1"));
});
