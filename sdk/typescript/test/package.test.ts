/** The package as users install it: the tarball that "npm pack" makes of the sources, in an empty folder. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const USE = `
  import { composite, Server } from "@hookloop/hook";
  import { call } from "@hookloop/hook/testing";
  const sync = ({ parent }) => ({ status: { n: parent.spec.n } });
  const server = new Server([composite({ sync })], { listen: "127.0.0.1:0" });
  await server.start();
  await server.stop(0);
  const web = { apiVersion: "example.com/v1", kind: "Web", metadata: { name: "w" }, spec: { n: 7 } };
  console.log((await call(sync, [web])).status.n);
`;

function run(cwd: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

test("the packed package is built, and can be imported from an empty folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const [source, user] = [join(folder, "source"), join(folder, "user")];
  try {
    [source, user].forEach((path) => mkdirSync(path));
    for (const name of ["package.json", "tsconfig.json", "README.md", "src"]) { // no dist: it is built when it is packed
      cpSync(join(ROOT, name), join(source, name), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(source, "node_modules"));
    run(source, "npm", "pack", "--silent", "--pack-destination", folder);
    const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
    const installed = ["@grpc/grpc-js", "@bufbuild/protobuf"].map((name) => [name, `file:${join(ROOT, "node_modules", name)}`]);
    writeFileSync(join(user, "package.json"), JSON.stringify({
      type: "module", dependencies: { "@hookloop/hook": `file:${join(folder, tarball!)}`, ...Object.fromEntries(installed) },
    }));
    run(user, "npm", "install", "--offline", "--install-links=false", "--no-audit", "--no-fund", "--ignore-scripts");
    writeFileSync(join(user, "use.mjs"), USE);
    assert.equal(run(user, process.execPath, "use.mjs").trim(), "7");
    const shipped = readdirSync(join(user, "node_modules", "@hookloop", "hook")).sort();
    assert.deepEqual(shipped, ["README.md", "dist", "package.json"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
