/**
 * The public API: the declarations of all names that the entry points export. A change shows in
 * testdata/api.txt, which REWRITE=1 npm test writes.
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

/** Returns the exported names of an entry point, each with its declarations. */
function exportsOf(program: ts.Program, entry: string): string[] {
  const checker = program.getTypeChecker();
  const file = program.getSourceFile(`${ROOT}dist/${entry}.d.ts`)!;
  const symbols = checker.getExportsOfModule(checker.getSymbolAtLocation(file)!);
  return symbols
    .map((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const texts = target.declarations!.map((declaration) => {
        const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
        return node.getText().replace(/^export (declare )?/, "");
      });
      return `${symbol.name}\n${texts.join("\n")}`;
    })
    .sort()
    .map((text) => `${text.slice(text.indexOf("\n") + 1)}\n`);
}

test("the public API is that of testdata/api.txt", () => {
  const program = programOf(declarations());
  const api = ENTRIES.map((entry) => `// ${entry}\n\n${exportsOf(program, entry).join("\n")}`).join("\n");
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
