/** Authentication of callers, with rotating certificates and tokens. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, credentials, Metadata, status as Code, type ServiceError } from "@grpc/grpc-js";
import { composite, Server, type ServerOptions } from "../src/index.js";
import { BYTES } from "../src/streamserver.js";
import { selfSigned } from "./certificate.js";
import { callSync } from "./requests.js";

const hook = composite({ sync: () => ({}) });
let folder = "";
before(() => (folder = mkdtempSync(join(tmpdir(), "hookloop-"))));
after(() => rmSync(folder, { recursive: true }));

function put(name: string, content: string | Buffer): string {
  const file = join(folder, name);
  writeFileSync(`${file}.new`, content);
  renameSync(`${file}.new`, file);
  return file;
}

const EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function openssl(...args: string[]): void {
  execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
}

/** An authority that issues client certificates. */
class Authority {
  constructor(readonly name: string) {
    openssl(
      "req",
      "-x509",
      ...EC,
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      "-out",
      `${name}.crt`,
      "-keyout",
      `${name}.key`,
    );
  }

  get pem(): Buffer {
    return readFileSync(join(folder, `${this.name}.crt`));
  }

  issue(name: string, alternative = `URI:spiffe://x/${name}`): { key: Buffer; cert: Buffer } {
    openssl(
      "req",
      ...EC,
      "-subj",
      `/CN=${name}`,
      "-addext",
      `subjectAltName=${alternative}`,
      "-out",
      "client.csr",
      "-keyout",
      "client.key",
    );
    openssl(
      "x509",
      "-req",
      "-in",
      "client.csr",
      "-CA",
      `${this.name}.crt`,
      "-CAkey",
      `${this.name}.key`,
      "-set_serial",
      "7",
      "-days",
      "2",
      "-copy_extensions",
      "copy",
      "-out",
      "client.crt",
    );
    return { key: readFileSync(join(folder, "client.key")), cert: readFileSync(join(folder, "client.crt")) };
  }
}

test("callers need a certificate of the right authority and name, and authorities rotate", async () => {
  const { cert, key } = selfSigned();
  const [engines, others] = [new Authority("engines"), new Authority("others")];
  const server = new Server([hook], {
    listen: "127.0.0.1:0",
    tlsCert: put("tls.crt", cert),
    tlsKey: put("tls.key", key),
    clientCa: put("ca.pem", engines.pem),
    clientName: "spiffe://x/engine",
    refreshSeconds: 0.01,
  });
  const address = await server.start();
  const codeOf = async (client?: { key: Buffer; cert: Buffer }): Promise<[Code, string]> => {
    const secured = credentials.createSsl(Buffer.from(cert), client?.key ?? null, client?.cert ?? null);
    const connection = new Client(address, secured, {
      "grpc.ssl_target_name_override": "localhost",
      "grpc.use_local_subchannel_pool": 1,
    });
    return callSync(connection)
      .then<[Code, string], [Code, string]>(
        () => [Code.OK, ""],
        ({ code, details }: ServiceError) => [code, details],
      )
      .finally(() => connection.close());
  };
  const [engine, another] = [engines.issue("engine"), others.issue("engine")];
  assert.equal((await codeOf(engine))[0], Code.OK);
  assert.equal((await codeOf())[0], Code.UNAVAILABLE);
  assert.equal((await codeOf(another))[0], Code.UNAVAILABLE);
  assert.deepEqual(await codeOf(engines.issue("intruder")), [
    Code.UNAUTHENTICATED,
    'the caller\'s certificate is for ["intruder","spiffe://x/intruder"], expected "spiffe://x/engine"',
  ]);
  assert.deepEqual(
    await codeOf(engines.issue("intruder", "otherName:1.3.6.1.5.5.7.8.7;IA5STRING:URI:spiffe://x/engine")),
    [Code.UNAUTHENTICATED, 'the caller\'s certificate is for ["intruder"], expected "spiffe://x/engine"'],
  );

  put("ca.pem", others.pem);
  for (const end = Date.now() + 30_000; (await codeOf(another))[0] !== Code.OK;) {
    assert.ok(Date.now() < end, "the new authority is not known in time");
  }
  assert.equal((await codeOf(engine))[0], Code.UNAVAILABLE);
  await server.stop();
});

/** Runs a test with a server that requires a token. */
async function withTokens(
  run: (client: Client, codeOf: (...values: string[]) => Promise<Code>) => Promise<void>,
): Promise<void> {
  const server = new Server([hook], { listen: "127.0.0.1:0", tokenFile: put("tokens", "first\nsecond\n") });
  const client = new Client(await server.start(), credentials.createInsecure());
  try {
    await run(client, async (...values) => {
      const metadata = new Metadata();
      values.forEach((value) => metadata.add("authorization", value));
      return new Promise((resolve) =>
        client.makeUnaryRequest(
          "/hookloop.composite.v1.CompositeHookService/Customize",
          () => Buffer.alloc(0),
          () => 0,
          {},
          metadata,
          (error: ServiceError | null) => {
            assert.doesNotMatch(error?.details ?? "", /first/);
            resolve(error?.code === Code.UNIMPLEMENTED ? Code.OK : error!.code); // the hook has no such function
          },
        ),
      );
    });
  } finally {
    client.close();
    await server.stop();
  }
}

test("callers need a token", async () => {
  await withTokens(async (client, codeOf) => {
    const cases: [string[], Code][] = [
      [["Bearer first"], Code.OK],
      [["Bearer second"], Code.OK],
      [[], Code.UNAUTHENTICATED],
      [["Bearer third"], Code.UNAUTHENTICATED],
      [["Bearer "], Code.UNAUTHENTICATED],
      [["Bearer firs"], Code.UNAUTHENTICATED],
      [["Basic first"], Code.UNAUTHENTICATED],
    ];
    for (const [values, code] of cases) {
      assert.equal(await codeOf(...values), code, `${values}`);
    }
    for (const path of [
      "/hookloop.composite.v1.CompositeHookService/Sync",
      "/hookloop.stream.v1.HookStreamService/Connect",
    ]) {
      // The call sends no message.
      const call = client.makeBidiStreamRequest(path, BYTES.requestSerialize, BYTES.responseDeserialize);
      const error = await new Promise<ServiceError>((resolve) => call.on("error", resolve).resume());
      assert.equal(error.code, Code.UNAUTHENTICATED, path);
    }
    const healthy = await new Promise((resolve) =>
      client.makeUnaryRequest(
        "/grpc.health.v1.Health/Check",
        () => Buffer.alloc(0),
        (data: Buffer) => data[1],
        {},
        (error: ServiceError | null, status) => resolve(error ?? status),
      ),
    );
    assert.equal(healthy, 1, "probes need no token");
  });
});

test("tokens rotate, and an unreadable token file rejects all calls", async (t) => {
  const logged = t.mock.method(console, "error", () => undefined);
  await withTokens(async (_, codeOf) => {
    put("tokens", "third");
    assert.deepEqual([await codeOf("Bearer first"), await codeOf("Bearer third")], [Code.UNAUTHENTICATED, Code.OK]);
    put("tokens", "\n");
    assert.deepEqual([await codeOf("Bearer x"), await codeOf("Bearer third")], [Code.UNAVAILABLE, Code.UNAVAILABLE]);
    assert.equal(logged.mock.calls.length, 1);
    put("tokens", "fourth");
    assert.equal(await codeOf("Bearer fourth"), Code.OK);
  });
});

test("a server without authentication logs a warning", async (t) => {
  const logged = t.mock.method(console, "error", () => undefined);
  const cases: [ServerOptions, boolean][] = [
    [{ listen: "0.0.0.0:0" }, true],
    [{ listen: ":0" }, true],
    [{ listen: "0.0.0.0:0", tokenFile: put("tokens", "x") }, false],
    [{ listen: "127.0.0.1:0" }, false],
  ];
  for (const [options, want] of cases) {
    const server = new Server([hook], options);
    await server.start();
    await server.stop(0);
    assert.equal(
      logged.mock.calls.some(({ arguments: line }) =>
        String(line).includes("can call the hook; set --client-ca or --token-file"),
      ),
      want,
    );
    logged.mock.resetCalls();
  }
});

test("invalid options of authentication are errors", () => {
  assert.throws(() => new Server([hook], { clientCa: "ca.crt" }), /expected a certificate and its key, too/);
  assert.throws(() => new Server([hook], { clientName: "engine" }), /without client authorities/);
  assert.throws(() => new Server([hook], { tokenFile: join(folder, "missing") }), /ENOENT/);
});
