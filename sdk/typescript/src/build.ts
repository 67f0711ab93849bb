/**
 * Identifies the build of a program. When it changes, Hookloop calls the hook again for all
 * parents.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const CODE = /\.([cm]?[jt]s|json)$/;
/** How many files to hash at most. */
const MAX_FILES = 1000;

/**
 * Hashes the code files in and below the folder of the program's main file. Returns an empty string
 * if they cannot be read.
 */
export function programHash(main = process.argv[1]): string {
  if (!main) {
    return "";
  }
  const hash = createHash("sha256");
  try {
    for (const file of filesBelow(dirname(main), MAX_FILES)) {
      hash.update(file).update(readFileSync(file));
    }
  } catch (error) {
    console.error(`the program's files cannot be read, so its build ID is empty: ${(error as Error).message}`);
    return "";
  }
  return hash.digest("hex").slice(0, 16);
}

/** Returns code files sorted by name, without packages and hidden folders. */
function filesBelow(folder: string, limit: number): string[] {
  const files: string[] = [];
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith(".")) {
      files.push(...filesBelow(path, limit - files.length));
    } else if (entry.isFile() && CODE.test(entry.name)) {
      files.push(path);
    }
    if (files.length >= limit) {
      break;
    }
  }
  return files.slice(0, limit);
}
