/** The package as users install it: the tarball of "npm pack", in an empty folder. */
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

/** A program that must compile against the declarations in the tarball. */
const TYPED = `
  import { childrenOf, composite, type KubernetesObject, type SyncRequest, type SyncResponse } from "@hookloop/hook";
  import { call } from "@hookloop/hook/testing";
  interface Website extends KubernetesObject { spec: { replicas: number } }
  declare module "@hookloop/hook" {
    interface KubernetesKinds { "Website.demo.example.com/v1": Website }
  }
  function sync(request: SyncRequest<Website>): SyncResponse {
    const servers = childrenOf(request, "Deployment.apps/v1")["web"];
    const sites = childrenOf(request, "Website.demo.example.com/v1")["web"];
    // @ts-expect-error readyReplicas is misspelt
    servers?.status?.readyReplica;
    return { status: { ready: servers?.status?.readyReplicas === sites?.spec.replicas } };
  }
  export const hook = composite({ sync });
  export const response = call(sync, []);
`;

function run(cwd: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}

test("the tarball can be installed and imported in an empty folder", () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const [source, user] = [join(folder, "source"), join(folder, "user")];
  try {
    [source, user].forEach((path) => mkdirSync(path));
    for (const name of ["package.json", "tsconfig.json", "README.md", "src"]) {
      // without dist, which prepack builds
      cpSync(join(ROOT, name), join(source, name), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(source, "node_modules"));
    run(source, "npm", "pack", "--silent", "--pack-destination", folder);
    const [tarball] = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
    const installed = ["@grpc/grpc-js", "@bufbuild/protobuf", "kubernetes-types"].map((name) => [
      name,
      `file:${join(ROOT, "node_modules", name)}`,
    ]);
    writeFileSync(
      join(user, "package.json"),
      JSON.stringify({
        type: "module",
        dependencies: { "@hookloop/hook": `file:${join(folder, tarball!)}`, ...Object.fromEntries(installed) },
      }),
    );
    run(user, "npm", "install", "--offline", "--install-links=false", "--no-audit", "--no-fund", "--ignore-scripts");
    writeFileSync(join(user, "use.mjs"), USE);
    assert.equal(run(user, process.execPath, "use.mjs").trim(), "7");
    writeFileSync(join(user, "typed.ts"), TYPED);
    const settings = { module: "NodeNext", target: "ES2022", strict: true, noEmit: true, skipLibCheck: false };
    const compilerOptions = { ...settings, types: ["node"], typeRoots: [join(ROOT, "node_modules", "@types")] };
    writeFileSync(join(user, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["typed.ts"] }));
    assert.equal(run(user, process.execPath, join(ROOT, "node_modules", "typescript", "bin", "tsc")), "");
    const shipped = readdirSync(join(user, "node_modules", "@hookloop", "hook")).sort();
    assert.deepEqual(shipped, ["README.md", "dist", "package.json"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
