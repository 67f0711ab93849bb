/** Names the build of a program, so that engines ask again when it changes. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const CODE = /\.([cm]?[jt]s|json)$/;
/** The most files that are read. */
const MOST = 1000;

/** A hash of the program's own files: those of code in the folder of its main file, and below. Empty where there is none to read. */
export function programHash(main = process.argv[1]): string {
  if (!main) {
    return "";
  }
  const hash = createHash("sha256");
  try {
    for (const file of filesBelow(dirname(main), MOST)) {
      hash.update(file).update(readFileSync(file));
    }
  } catch (error) {
    console.error(`the program's files cannot be read, so that its build has no name: ${(error as Error).message}`);
    return "";
  }
  return hash.digest("hex").slice(0, 16);
}

/** Files of code in the order of their names, except those of packages and hidden ones. */
function filesBelow(folder: string, most: number): string[] {
  const files: string[] = [];
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith(".")) {
      files.push(...filesBelow(path, most - files.length));
    } else if (entry.isFile() && CODE.test(entry.name)) {
      files.push(path);
    }
    if (files.length >= most) {
      break;
    }
  }
  return files.slice(0, most);
}
