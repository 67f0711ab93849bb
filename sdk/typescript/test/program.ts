/** Hooks in processes of their own. */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";

const INDEX = fileURLToPath(new URL("../src/index.js", import.meta.url));
const CODE = `
  import { composite, serve } from ${JSON.stringify(INDEX)};
  await serve(composite({ sync: () => ({ status: { up: true } }) }));
`;

export type Program = ChildProcessByStdio<null, Readable, Readable>;

/** Runs a test with a function that starts programs. */
export async function withPrograms(
  run: (start: (...args: readonly string[]) => Program) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const file = join(folder, "hook.mjs");
  writeFileSync(file, CODE);
  try {
    await run((...args) => spawn(process.execPath, [file, ...args], { stdio: ["ignore", "pipe", "pipe"] }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Resolves to the first line of a program's output. */
export async function line(output: Readable): Promise<string> {
  const [text] = (await once(createInterface(output), "line")) as [string];
  return text;
}
