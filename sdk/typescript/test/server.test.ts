/** The server and the program around it: health, a stop that waits, TLS, what cannot be served. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, credentials, Metadata, status as Code } from "@grpc/grpc-js";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { programHash } from "../src/build.js";
import { composite, Server } from "../src/index.js";
import { selfSigned } from "./certificate.js";
import { line, withPrograms } from "./program.js";
import { askSync, serving } from "./requests.js";

const nothing = composite({ sync: () => ({}) });

/** What the health service says about a service. */
function health(client: Client, service: string): Promise<number> {
  const question = new BinaryWriter().tag(1, WireType.LengthDelimited).string(service).finish();
  return new Promise((resolve, reject) => client.makeUnaryRequest(
    "/grpc.health.v1.Health/Check", (data: Uint8Array) => Buffer.from(data), (data: Buffer) => data[1] ?? 0, question,
    new Metadata(), {}, (error, value) => (error ? reject(error) : resolve(value!))));
}

test("services that are served are healthy", async () => {
  await serving([nothing], async (client) => {
    for (const service of ["", "hookloop.hook.v1.CompositeHookService", "hookloop.stream.v1.HookStreamService"]) {
      assert.equal(await health(client, service), 1);
    }
    await assert.rejects(health(client, "hookloop.hook.v1.DecoratorHookService"), { code: Code.NOT_FOUND });
  });
});

test("a call under way is answered", async () => {
  let [enter, release] = [() => {}, () => {}];
  const entered = new Promise<void>((resolve) => (enter = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const slow = composite({ sync: async () => {
    enter();
    await released;
    return {};
  } });
  await serving([slow], async (client, server) => {
    const answer = askSync(client);
    await entered;
    const stopped = server.stop();
    release();
    await answer;
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
  const asks = async (ca: Buffer): Promise<void> => {
    const client = new Client(address, credentials.createSsl(ca), { "grpc.ssl_target_name_override": "localhost", "grpc.use_local_subchannel_pool": 1 });
    await askSync(client).finally(() => client.close());
  };
  await asks(first);
  const second = write(selfSigned());
  const late = Date.now() + 20_000;
  for (let done = false; !done; ) {
    done = await asks(second).then(() => true, () => Date.now() > late);
  }
  await asks(second);
  await server.stop();
  rmSync(folder, { recursive: true });
});

test("what cannot be served is told", async () => {
  assert.throws(() => new Server([]), /got no hook/);
  assert.throws(() => new Server([nothing, nothing]), /at most one for each service/);
  assert.throws(() => new Server([nothing], { tlsCert: "a" }), /one of certificate and key is missing/);
  assert.throws(() => new Server([nothing], { tlsCert: "a", tlsKey: "b" }), /ENOENT/);
  await assert.rejects(new Server([nothing], { listen: "9443" }).start(), /expected host:port/);
});

test("a program's build is named by its files", () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const main = join(folder, "main.mjs");
  const hashes = [["main.mjs", "1"], ["main.mjs", "2"], ["notes.txt", "x"], ["other.js", "x"]].map(([name, text]) => {
    writeFileSync(join(folder, name!), text!);
    return programHash(main);
  });
  rmSync(folder, { recursive: true });
  assert.match(hashes[0]!, /^[0-9a-f]{16}$/);
  assert.deepEqual(hashes.map((hash) => hashes.indexOf(hash)), [0, 1, 1, 3]);
});

test("a program serves until it is told to stop", async () => {
  await withPrograms(async (start) => {
    const running = start("--listen", "127.0.0.1:0");
    const client = new Client((await line(running.stdout)).replace("listening on ", ""), credentials.createInsecure());
    assert.equal(Buffer.from((await askSync(client) as unknown as { status: Uint8Array }).status).toString(), '{"up":true}');
    client.close();
    running.kill("SIGTERM");
    assert.deepEqual(await once(running, "exit"), [0, null]);
  });
});

test("a program that cannot serve says why", async () => {
  const cases: [string[], string][] = [
    [["--lisen", "x"], "Unknown option '--lisen'"],
    [["--attach", "a:1"], "expected one of worker and intercept"],
    [["--attach", "a:1", "--intercept", "Web/x"], "expected CompositeController/NAME or DecoratorController/NAME"],
  ];
  await withPrograms(async (start) => {
    for (const [args, text] of cases) {
      const wrong = start(...args);
      const exit = once(wrong, "exit");
      const said = await line(wrong.stderr);
      assert.ok(said.includes(text), said);
      assert.deepEqual(await exit, [1, null]);
    }
  });
});
