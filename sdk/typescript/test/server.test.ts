/** The server and the program: health, graceful stop, TLS, invalid options. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, credentials, Metadata, status as Code } from "@grpc/grpc-js";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { programHash } from "../src/build.js";
import { composite, Server } from "../src/index.js";
import { selfSigned } from "./certificate.js";
import { line, withPrograms } from "./program.js";
import { callSync, serving } from "./requests.js";

const nothing = composite({ sync: () => ({}) });

/** Resolves to the health of a service. */
function health(client: Client, service: string): Promise<number> {
  const request = new BinaryWriter().tag(1, WireType.LengthDelimited).string(service).finish();
  return new Promise((resolve, reject) =>
    client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      (data: Uint8Array) => Buffer.from(data),
      (data: Buffer) => data[1] ?? 0,
      request,
      new Metadata(),
      {},
      (error, value) => (error ? reject(error) : resolve(value!)),
    ),
  );
}

test("the services of the server are healthy", async () => {
  await serving([nothing], async (client) => {
    for (const service of ["", "hookloop.composite.v1.CompositeHookService", "hookloop.stream.v1.HookStreamService"]) {
      assert.equal(await health(client, service), 1);
    }
    await assert.rejects(health(client, "hookloop.decorator.v1.DecoratorHookService"), { code: Code.NOT_FOUND });
  });
});

test("a stop waits for a running call", async () => {
  let [enter, release] = [() => {}, () => {}];
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const slow = composite({
    sync: async () => {
      enter();
      await released;
      return {};
    },
  });
  await serving([slow], async (client, server) => {
    const response = callSync(client);
    await entered;
    const stopped = server.stop();
    release();
    await response;
    await stopped;
  });
});

test("a certificate may be rotated", async (t) => {
  t.mock.method(console, "error", () => undefined);
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const [tlsCert, tlsKey] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  const write = ({ cert, key }: { cert: string; key: string }): Buffer => {
    writeFileSync(tlsCert, cert);
    writeFileSync(tlsKey, key);
    return Buffer.from(cert);
  };
  const first = write(selfSigned());
  const server = new Server([nothing], { listen: "127.0.0.1:0", tlsCert, tlsKey, refreshSeconds: 0.01 });
  const address = await server.start();
  const call = async (ca: Buffer): Promise<void> => {
    const client = new Client(address, credentials.createSsl(ca), {
      "grpc.ssl_target_name_override": "localhost",
      "grpc.use_local_subchannel_pool": 1,
    });
    await callSync(client).finally(() => client.close());
  };
  await call(first);
  const second = write(selfSigned());
  const late = Date.now() + 20_000;
  for (let done = false; !done;) {
    done = await call(second).then(
      () => true,
      () => Date.now() > late,
    );
  }
  await call(second);
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("invalid hooks and options are errors", async () => {
  assert.throws(() => new Server([]), /got no hook/);
  assert.throws(() => new Server([nothing, nothing]),
    /two composite hooks have no name, expected named for all but one/);
  assert.throws(() => new Server([nothing], { tlsCert: "a" }), /one of certificate and key is missing/);
  assert.throws(() => new Server([nothing], { tlsCert: "a", tlsKey: "b" }), /ENOENT/);
  await assert.rejects(new Server([nothing], { listen: "9443" }).start(), /expected host:port/);
});

test("a server listens on a unix socket, and replaces only one that nobody serves", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const path = join(folder, "hook.sock");
  const listen = `unix://${path}`;
  const code = 'require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))';
  spawnSync(process.execPath, ["-e", code, path]);
  assert.ok(lstatSync(path).isSocket(), "the killed process has left its socket");
  const server = new Server([nothing], { listen });
  assert.equal(await server.start(), listen);
  await assert.rejects(new Server([nothing], { listen }).start(), /EADDRINUSE/);
  const client = new Client(listen, credentials.createInsecure());
  await callSync(client);
  client.close();
  await server.stop();
  writeFileSync(path, "a file");
  await assert.rejects(new Server([nothing], { listen }).start(), /EADDRINUSE/);
  assert.equal(readFileSync(path, "utf8"), "a file");
  await assert.rejects(new Server([nothing], { listen: "unix://hook.sock" }).start(), /expected an absolute path/);
  rmSync(folder, { recursive: true });
});

test("the build ID is a hash of the program's files", () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const main = join(folder, "main.mjs");
  const hashes = [
    ["main.mjs", "1"],
    ["main.mjs", "2"],
    ["notes.txt", "x"],
    ["other.js", "x"],
  ].map(([name, text]) => {
    writeFileSync(join(folder, name!), text!);
    return programHash(main);
  });
  rmSync(folder, { recursive: true });
  assert.match(hashes[0]!, /^[0-9a-f]{16}$/);
  assert.deepEqual(
    hashes.map((hash) => hashes.indexOf(hash)),
    [0, 1, 1, 3],
  );
});

test("a program serves until SIGTERM", async () => {
  await withPrograms(async (start) => {
    const running = start("--listen", "127.0.0.1:0");
    const client = new Client((await line(running.stdout)).replace("listening on ", ""), credentials.createInsecure());
    assert.equal(
      Buffer.from(((await callSync(client)) as unknown as { status: Uint8Array }).status).toString(),
      '{"up":true}',
    );
    client.close();
    running.kill("SIGTERM");
    assert.deepEqual(await once(running, "exit"), [0, null]);
  });
});

test("a program with invalid flags prints the reason", async () => {
  const cases: [string[], string][] = [
    [["--lisen", "x"], "Unknown option '--lisen'"],
    [["--attach", "a:1"], "expected one of worker and intercept"],
    [["--attach", "a:1", "--intercept", "Web/x"],
      "expected CompositeController/NAME, DecoratorController/NAME or MapController/NAME"],
  ];
  await withPrograms(async (start) => {
    for (const [args, text] of cases) {
      const wrong = start(...args);
      const exit = once(wrong, "exit");
      const printed = await line(wrong.stderr);
      assert.ok(printed.includes(text), printed);
      assert.deepEqual(await exit, [1, null]);
    }
  });
});
