#!/usr/bin/env node
/** Writes the CRDs for a TypeScript file: hookloop-crd src/api.ts -o manifests/crd.yaml */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { parseArgs } from "node:util";

const USAGE = `usage: hookloop-crd FILE [-o OUTPUT] [--check]

Writes the CRD of every exported interface in FILE with literals as the types of apiVersion and kind.

  -o, --output OUTPUT  the file to write (default: standard output)
  --check              write nothing, and fail if OUTPUT differs

example: hookloop-crd src/api.ts -o manifests/crd.yaml`;

/** Imports packages that only this program needs. A hook need not install them. */
async function generate(file: string): Promise<string> {
  const { definitions } = await import("./definition.js");
  const { stringify } = await import("yaml");
  const documents = definitions(file).map((crd) => stringify(crd, { aliasDuplicateObjects: false, lineWidth: 100 }));
  return `# Generated from ${basename(file)} by hookloop-crd.\n${documents.join("---\n")}`;
}

/** Returns the exit code: 0, 1 after a failure, 2 for a wrong flag. */
async function main(args: readonly string[]): Promise<number> {
  const options = {
    output: { type: "string", short: "o" }, check: { type: "boolean" }, help: { type: "boolean", short: "h" },
  };
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options: options as never, allowPositionals: true });
  } catch (error) {
    return fail(`${(error as Error).message}\n${USAGE}`, 2);
  }
  const { output, check, help } = parsed.values as { output?: string; check?: boolean; help?: boolean };
  const [file, ...rest] = parsed.positionals;
  if (help) {
    console.log(USAGE);
    return 0;
  }
  if (file === undefined || rest.length > 0 || (check && output === undefined)) {
    return fail(`expected one FILE${check ? ", and --output" : ""}\n${USAGE}`, 2);
  }
  const text = await generate(file);
  if (output === undefined) {
    process.stdout.write(text);
  } else if (!check) {
    writeFileSync(output, text);
  } else if (read(output) !== text) {
    return fail(`${output} is stale; run the command without --check`, 1);
  }
  return 0;
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return undefined;
    }
    throw error;
  }
}

function fail(message: string, code: number): number {
  console.error(`hookloop-crd: ${message}`);
  return code;
}

/** Explains a failure in one line. */
function explain(error: Error & { code?: string }): string {
  const [, missing] = /Cannot find package '([^']+)'/.exec(error.message) ?? [];
  if (error.code === "ERR_MODULE_NOT_FOUND" && missing) {
    return `needs the package ${missing}: npm install --save-dev ${missing}`;
  }
  return error.name === "UnsupportedType" || error.code ? error.message : String(error.stack);
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => fail(explain(error), 1));
