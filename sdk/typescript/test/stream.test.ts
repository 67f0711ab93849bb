/** Streams over loopback that the engine opens, and that a hook opens. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Metadata,
  Server as GrpcServer,
  ServerCredentials,
  status as Code,
  type Client,
  type ClientDuplexStream,
  type ServerDuplexStream,
} from "@grpc/grpc-js";
import {
  attach,
  composite,
  decorator,
  RetryAfter,
  trigger,
  type AttachOptions,
  type Call,
  type Hook,
  type Server,
  type SyncRequest,
} from "../src/index.js";
import {
  GatewayService,
  TriggerRequestSchema,
  TriggerResponseSchema,
} from "../src/gen/hookloop/stream/v1/gateway_pb.js";
import type { Answer, HookMessage } from "../src/gen/hookloop/stream/v1/stream_pb.js";
import { MAX_CONCURRENT_CALLS } from "../src/limiter.js";
import { BYTES } from "../src/streamserver.js";
import { selfSigned } from "./certificate.js";
import { Engine, serialize, type Entry } from "./engine.js";
import { line, withPrograms } from "./program.js";
import { BIG, object, serving } from "./requests.js";
import { until } from "./until.js";

type Message = Parameters<typeof serialize>[0];
type Sent = HookMessage["message"];

/** The engine's end of a stream in a test: it sends messages, and waits for messages. */
class Line {
  readonly #got: Sent[] = [];
  #wake: () => void = () => undefined;
  over = false;
  status: { code: Code; details: string } | undefined;

  constructor(
    readonly engine: Engine,
    readonly call: ClientDuplexStream<Uint8Array, Buffer> | ServerDuplexStream<Buffer, Uint8Array>,
  ) {
    call.on("data", (data: Buffer) => {
      const message = engine.read(data);
      if (message) {
        this.#got.push(message);
        this.#wake();
      }
    });
    call.on("error", () => undefined);
    call.on("status", (status: { code: Code; details: string }) => (this.status = status));
    for (const event of ["end", "cancelled", "status"]) {
      call.on(event, () => {
        this.over = true;
        this.#wake();
      });
    }
  }

  send(message: Message): void {
    this.call.write(serialize(message));
  }

  /** Resolves to the next message of a kind, and drops others before it. */
  async next<Case extends NonNullable<Sent["case"]>>(kind: Case): Promise<Extract<Sent, { case: Case }>["value"]> {
    for (;;) {
      const message = this.#got.shift();
      if (message?.case === kind) {
        return message.value as never;
      }
      if (!message) {
        assert.ok(!this.over, `the stream has ended before there was a message of kind ${kind}`);
        await this.#woken();
      }
    }
  }

  async ended(): Promise<void> {
    while (!this.over) {
      await this.#woken();
    }
  }

  async statusOfEnd(): Promise<{ code: Code; details: string }> {
    await until(() => this.status !== undefined);
    return this.status!;
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

/** Opens a stream as the engine does. */
async function connect(client: Client, engine = new Engine()): Promise<Line> {
  const call = client.makeBidiStreamRequest(
    "/hookloop.stream.v1.HookStreamService/Connect",
    BYTES.requestSerialize,
    BYTES.responseDeserialize,
    new Metadata(),
  );
  const line = new Line(engine, call);
  line.send(engine.hello());
  await line.next("welcome");
  return line;
}

function entries(...pods: string[]): Entry[] {
  return [
    { slot: 0, object: object("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "c") },
    { slot: 1, object: object("example.com/v1", "Greeting", "shop", "hi") },
    ...pods.map((name) => ({ slot: 2, object: object("v1", "Pod", "shop", name) })),
  ];
}

const echo = composite({
  sync: ({ parent, children }: SyncRequest) => ({
    status: { n: parent["spec"], pods: Object.keys(children["Pod.v1"]!) },
  }),
});

test("an engine without a common version gets UNIMPLEMENTED", async () => {
  await serving([echo], async (client) => {
    const call = client.makeBidiStreamRequest(
      "/hookloop.stream.v1.HookStreamService/Connect",
      BYTES.requestSerialize,
      BYTES.responseDeserialize,
      new Metadata(),
    );
    const line = new Line(new Engine(), call);
    line.send({ case: "hello", value: { versions: [2, 3] } });
    const { code, details } = await line.statusOfEnd();
    assert.equal(code, Code.UNIMPLEMENTED);
    assert.match(details, /versions 2, 3/);
  });
});

test("the Welcome has the implemented methods", async () => {
  await serving([echo, decorator({ finalize: () => ({}) })], async (client) => {
    const call = client.makeBidiStreamRequest(
      "/hookloop.stream.v1.HookStreamService/Connect",
      BYTES.requestSerialize,
      BYTES.responseDeserialize,
      new Metadata(),
    );
    const line = new Line(new Engine(), call);
    line.send(line.engine.hello());
    assert.deepEqual((await line.next("welcome")).capabilities, [
      "/hookloop.hook.v1.CompositeHookService/Sync",
      "/hookloop.hook.v1.DecoratorHookService/Finalize",
    ]);
    call.end();
  });
});

function statusOf(engine: Engine, answer: Answer): string {
  return Buffer.from(engine.response("p", answer).status!).toString();
}

function errorOf({ outcome }: Answer): { code: Code; message: string; details: number } {
  assert.equal(outcome.case, "error");
  const { code, message, details } = outcome.value as Extract<Answer["outcome"], { case: "error" }>["value"];
  return { code, message, details: details.length };
}

/**
 * Returns a hook with a function that waits for release, and promises of its start and its abort.
 */
function blocking(): { hook: Hook; entered: Promise<Call>; release: () => void; aborted: Promise<void> } {
  let [enter, release, abort] = [(_: Call) => {}, () => {}, () => {}];
  const entered = new Promise<Call>((resolve) => (enter = resolve));
  const released = new Promise<void>((resolve) => (release = resolve));
  const aborted = new Promise<void>((resolve) => (abort = resolve));
  const hook = composite({
    sync: async (_, call) => {
      call.signal.addEventListener("abort", () => abort());
      enter(call);
      await released;
      return { status: { done: true } };
    },
  });
  return { hook, entered, release, aborted };
}

test("requests and responses are sent as changes", async () => {
  await serving([echo], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries("a")));
    assert.equal(statusOf(line.engine, await line.next("answer")), `{"n":{"n":${BIG}},"pods":["a"]}`);
    line.send(line.engine.call("p", entries("a", "b")));
    assert.equal(statusOf(line.engine, await line.next("answer")), `{"n":{"n":${BIG}},"pods":["a","b"]}`);
    line.call.end();
    await line.ended();
  });
});

test("the next stream resumes the session", async () => {
  await serving([echo], async (client) => {
    const engine = new Engine("mine");
    const first = await connect(client, engine);
    first.send(engine.call("p", entries("a")));
    engine.response("p", await first.next("answer"));
    (first.call as ClientDuplexStream<Uint8Array, Buffer>).end();
    await first.ended();
    const second = new Line(
      engine,
      client.makeBidiStreamRequest(
        "/hookloop.stream.v1.HookStreamService/Connect",
        BYTES.requestSerialize,
        BYTES.responseDeserialize,
      ),
    );
    second.send(engine.hello());
    assert.deepEqual(
      (await second.next("welcome")).holdings.map(({ subject }) => subject),
      ["p"],
    );
    const call = engine.call("p", entries("a", "b"));
    assert.equal(call.value!.upserts!.length, 1);
    second.send(call);
    assert.match(statusOf(engine, await second.next("answer")), /\["a","b"\]/);
    second.call.end();
  });
});

test("a cancelled call is answered immediately, and its signal aborts", async () => {
  const { hook, entered, aborted, release } = blocking();
  await serving([hook], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    await entered;
    line.send({ case: "cancel", value: { callId: 1n } });
    assert.equal(errorOf(await line.next("answer")).code, Code.CANCELLED);
    await aborted;
    release();
    line.call.end();
    await line.ended();
  });
});

test("a call is answered after its timeout", async () => {
  const { hook, aborted, release } = blocking();
  await serving([hook], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries(), { timeout: { nanos: 1e6 } }));
    const { code, message } = errorOf(await line.next("answer"));
    assert.deepEqual(
      [code, message],
      [Code.DEADLINE_EXCEEDED, "/hookloop.hook.v1.CompositeHookService/Sync took longer than 1 ms"],
    );
    await aborted;
    release();
    line.call.end();
  });
});

test("errors have a code and details", async () => {
  const failing = composite({
    sync: () => {
      throw new RetryAfter(5, "not yet");
    },
  });
  await serving([failing], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    assert.deepEqual(errorOf(await line.next("answer")), {
      code: Code.RESOURCE_EXHAUSTED,
      message: "not yet",
      details: 1,
    });
    line.send(line.engine.call("p", entries(), { method: "/hookloop.hook.v1.CompositeHookService/Finalize" }));
    assert.equal(errorOf(await line.next("answer")).code, Code.UNIMPLEMENTED);
    line.call.end();
  });
  await serving([decorator({ sync: () => ({}) })], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    assert.equal(errorOf(await line.next("answer")).code, Code.UNIMPLEMENTED);
    line.call.end();
  });
});

test("a drained stream ends after its last call", async () => {
  const { hook, entered, release } = blocking();
  await serving([hook], async (client) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    await entered;
    line.send({ case: "drain", value: {} });
    release();
    assert.equal(statusOf(line.engine, await line.next("answer")), '{"done":true}');
    await line.ended();
  });
});

test("a stop drains the stream, and answers running calls", async () => {
  const { hook, entered, release } = blocking();
  await serving([hook], async (client, server) => {
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    await entered;
    const stopped = server.stop();
    await line.next("drain");
    release();
    assert.equal(statusOf(line.engine, await line.next("answer")), '{"done":true}');
    await line.ended();
    await stopped;
  });
});

test("the limiter counts functions of cancelled calls until they end", async (t) => {
  const logged = t.mock.method(console, "error", () => undefined);
  let running = 0;
  const release: (() => void)[] = [];
  const stuck = composite({
    sync: () =>
      new Promise<object>((resolve) => {
        running++;
        release.push(() => resolve({}));
      }),
  });
  await serving([stuck], async (client) => {
    const line = await connect(client);
    for (let n = 0; n < 1000; n++) {
      const call = line.engine.call(`${n}`, entries());
      line.engine.forget(`${n}`);
      line.send(call);
      line.send({ case: "cancel", value: { callId: call.value!.id! } });
      assert.equal((await line.next("answer")).outcome.case, "error");
    }
    assert.equal(running, MAX_CONCURRENT_CALLS);
    assert.equal(logged.mock.calls.length, 1000);
    assert.match(
      String(logged.mock.calls[0]!.arguments[0]),
      /Sync of Greeting shop\/hi was cancelled: the engine has cancelled the call/,
    );
    release.forEach((go) => go());
    line.call.end();
  });
});

test("an invalid message ends the stream with a status", async () => {
  await serving([echo], async (client) => {
    const line = new Line(
      new Engine(),
      client.makeBidiStreamRequest(
        "/hookloop.stream.v1.HookStreamService/Connect",
        BYTES.requestSerialize,
        BYTES.responseDeserialize,
      ),
    );
    line.send({ case: "drain", value: {} });
    const { code, details } = await line.statusOfEnd();
    assert.deepEqual([code, details], [Code.INVALID_ARGUMENT, "the first message is not a Hello"]);
  });
});

test("a server sends triggers", async () => {
  await serving([echo], async (client, server) => {
    await assert.rejects(server.trigger({}), /no stream is open/);
    const line = await connect(client);
    const parents = server.trigger({ controller: "c", parents: [{ namespace: "shop", name: "hi" }], reason: "news" });
    const { id, controllerName, parents: names, reason } = await line.next("trigger");
    assert.deepEqual(
      [controllerName, names.map(({ namespace, name }) => `${namespace}/${name}`), reason],
      ["c", ["shop/hi"], "news"],
    );
    line.send({ case: "triggered", value: { id, parents: 3 } });
    assert.equal(await parents, 3);
    const refused = server.trigger({ labelSelector: "!!" });
    line.send({
      case: "triggered",
      value: { id: (await line.next("trigger")).id, error: { code: Code.INVALID_ARGUMENT, message: "no selector" } },
    });
    await assert.rejects(refused, { name: "TriggerError", code: Code.INVALID_ARGUMENT, message: "no selector" });
    const lost = server.trigger({});
    await line.next("trigger");
    line.call.end();
    await assert.rejects(lost, /stream ended/);
  });
});

test("a trigger succeeds if one of two streams accepts it", async () => {
  await serving([echo], async (client, server) => {
    const lines = [await connect(client, new Engine("one")), await connect(client, new Engine("two"))];
    const triggered = async (...answers: object[]): Promise<number> => {
      const parents = server.trigger({ controller: "c" });
      await Promise.all(
        lines.map(async (line, index) =>
          line.send({ case: "triggered", value: { id: (await line.next("trigger")).id, ...answers[index] } }),
        ),
      );
      return parents;
    };
    const unknown = { error: { code: Code.NOT_FOUND, message: "no controller c here" } };
    assert.equal(await triggered(unknown, { parents: 2 }), 2);
    assert.equal(await triggered({ parents: 0 }, unknown), 0);
    await assert.rejects(triggered(unknown, unknown), {
      name: "TriggerError",
      code: Code.NOT_FOUND,
      message: "no controller c here",
    });
    lines.forEach(({ call }) => call.end());
  });
});

test("a function can send a trigger; before the Welcome it fails", async () => {
  let serverOf: (server: Server) => void = () => undefined;
  const itself = new Promise<Server>((resolve) => (serverOf = resolve));
  const asking = composite({
    sync: async () => ({ status: { parents: await (await itself).trigger({ reason: "from within" }) } }),
  });
  await serving([asking], async (client, server) => {
    const line = new Line(
      new Engine(),
      client.makeBidiStreamRequest(
        "/hookloop.stream.v1.HookStreamService/Connect",
        BYTES.requestSerialize,
        BYTES.responseDeserialize,
      ),
    );
    await assert.rejects(server.trigger({}), /no stream is open/);
    line.send(line.engine.hello());
    await line.next("welcome");
    serverOf(server);
    line.send(line.engine.call("p", entries()));
    line.send({ case: "triggered", value: { id: (await line.next("trigger")).id, parents: 2 } });
    assert.equal(statusOf(line.engine, await line.next("answer")), '{"parents":2}');
    line.call.end();
    await line.ended();
  });
});

test("a session that is resumed early ends its previous stream", async () => {
  const { hook, entered, aborted, release } = blocking();
  await serving([hook], async (client) => {
    const engine = new Engine("same");
    const first = await connect(client, engine);
    first.send(engine.call("p", entries("a")));
    await entered;
    const second = new Line(
      engine,
      client.makeBidiStreamRequest(
        "/hookloop.stream.v1.HookStreamService/Connect",
        BYTES.requestSerialize,
        BYTES.responseDeserialize,
      ),
    );
    second.send(engine.hello());
    assert.deepEqual(
      (await second.next("welcome")).holdings.map(({ subject }) => subject),
      ["p"],
    );
    await aborted;
    assert.equal((await first.statusOfEnd()).code, Code.ABORTED);
    release();
    second.send(engine.call("p", entries("a", "b")));
    assert.equal(statusOf(engine, await second.next("answer")), '{"done":true}');
    second.call.end();
    await second.ended();
  });
});

test("a broken stream cancels its calls, and the next stream continues", async () => {
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => (release = resolve));
  let signals: AbortSignal[] = [];
  const slow = composite({
    sync: async (_, { signal }) => {
      signals.push(signal);
      await released;
      return { status: { done: true } };
    },
  });
  await serving([slow], async (client) => {
    const engine = new Engine("same");
    for (let round = 0; round < 5; round++) {
      signals = [];
      const line = await connect(client, engine);
      ["p", "q", "r"].forEach((subject) =>
        line.send(engine.call(subject, entries("a"), { timeout: { seconds: 3600n } })),
      );
      await until(() => signals.length === 3);
      (line.call as ClientDuplexStream<Uint8Array, Buffer>).cancel();
      await until(() => signals.every(({ aborted }) => aborted));
    }
    release();
    const last = await connect(client, engine);
    last.send(engine.call("p", entries("a", "b")));
    assert.equal(statusOf(engine, await last.next("answer")), '{"done":true}');
    last.call.end();
    await last.ended();
  });
});

/** A gateway in a test. */
class Gateway {
  readonly #server = new GrpcServer();
  readonly #lines: Line[] = [];
  readonly tokens: unknown[] = [];
  #wake: () => void = () => undefined;
  port = 0;
  /** Statuses for the next attempts. */
  refusals: { code: Code; details: string }[] = [];

  constructor(readonly engine: Engine) {}

  async start(cert: string, key: string): Promise<void> {
    const attachMethod = { path: `/${GatewayService.typeName}/Attach`, ...BYTES };
    const triggerMethod = {
      path: `/${GatewayService.typeName}/Trigger`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (_: unknown) => Buffer.alloc(0),
      requestDeserialize: (data: Buffer) => fromBinary(TriggerRequestSchema, data),
      responseSerialize: (value: number) =>
        Buffer.from(toBinary(TriggerResponseSchema, create(TriggerResponseSchema, { parents: value }))),
      responseDeserialize: () => 0,
    };
    this.#server.addService(
      { attach: attachMethod, trigger: triggerMethod },
      {
        attach: (call: ServerDuplexStream<Buffer, Uint8Array>) => this.#attach(call),
        trigger: (call: any, done: any) =>
          call.request.worker === "w"
            ? done(null, 7)
            : done({ code: Code.PERMISSION_DENIED, details: `may not serve ${call.request.worker}` }),
      },
    );
    const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
    this.port = await new Promise((resolve, reject) =>
      this.#server.bindAsync("127.0.0.1:0", ServerCredentials.createSsl(null, [pair]), (error, port) =>
        error ? reject(error) : resolve(port),
      ),
    );
  }

  #attach(call: ServerDuplexStream<Buffer, Uint8Array>): void {
    this.tokens.push(call.metadata.get("authorization")[0]);
    const refusal = this.refusals.shift();
    if (refusal) {
      call.emit("error", refusal);
      return;
    }
    this.#lines.push(new Line(this.engine, call));
    this.#wake();
  }

  /** Resolves to the next stream and its Attach message. */
  async accept(): Promise<{ line: Line; attached: Extract<Sent, { case: "attach" }>["value"] }> {
    while (this.#lines.length === 0) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const line = this.#lines.shift()!;
    return { line, attached: await line.next("attach") };
  }

  stop(): void {
    this.#server.forceShutdown();
  }
}

const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
const files = { ca: join(folder, "ca.pem"), token: join(folder, "token") };
let gateway: Gateway;

before(async () => {
  const { cert, key } = selfSigned();
  writeFileSync(files.ca, cert);
  writeFileSync(files.token, "first\n");
  gateway = new Gateway(new Engine("kept"));
  await gateway.start(cert, key);
});

after(() => {
  gateway.stop();
  rmSync(folder, { recursive: true });
});

function options(more: Partial<AttachOptions> = {}): AttachOptions {
  return {
    address: `127.0.0.1:${gateway.port}`,
    serverName: "localhost",
    caFile: files.ca,
    tokenFile: files.token,
    worker: "w",
    backoff: { initial: 1, maximum: 5, refused: 2 },
    ...more,
  };
}

test("an attached hook reconnects, and resumes its session", async () => {
  gateway.tokens.length = 0;
  const attachment = attach([echo], options());
  const first = await gateway.accept();
  assert.deepEqual([first.attached.worker, first.attached.sessionId, first.attached.intercept], ["w", "", undefined]);
  first.line.send(gateway.engine.hello());
  await attachment.attached();
  first.line.send(gateway.engine.call("p", entries("a")));
  assert.match(statusOf(gateway.engine, await first.line.next("answer")), /\["a"\]/);

  writeFileSync(files.token, "second\n");
  first.line.send({ case: "farewell", value: { code: Code.PERMISSION_DENIED, message: "the right is gone" } });
  first.line.call.emit("error", { code: Code.PERMISSION_DENIED, details: "the right is gone" });
  const second = await gateway.accept();
  assert.equal(second.attached.sessionId, "kept");
  assert.deepEqual(gateway.tokens, ["Bearer first", "Bearer second"]);
  second.line.send(gateway.engine.hello());
  assert.equal((await second.line.next("welcome")).holdings.length, 1);
  const parents = attachment.trigger({ reason: "news" });
  second.line.send({ case: "triggered", value: { id: (await second.line.next("trigger")).id, parents: 2 } });
  assert.equal(await parents, 2);

  const stopped = attachment.stop();
  await second.line.next("drain");
  await second.line.ended();
  (second.line.call as ServerDuplexStream<Buffer, Uint8Array>).end();
  await stopped;
});

test("a refusal and a missing file are retried", async (t) => {
  const logged = t.mock.method(console, "error", () => writeFileSync(late, "third"));
  gateway.refusals = [
    { code: Code.PERMISSION_DENIED, details: "may not serve w" },
    { code: Code.UNAVAILABLE, details: "later" },
  ];
  const late = join(folder, "late");
  const attachment = attach([echo], options({ tokenFile: late }));
  const { line } = await gateway.accept();
  const lines = logged.mock.calls.map(({ arguments: [text] }) => text as string);
  assert.match(lines[0]!, /UNAVAILABLE: ENOENT.*trying again/);
  assert.match(lines[1]!, /PERMISSION_DENIED: may not serve w; trying again/);
  assert.match(lines[2]!, /UNAVAILABLE: later/);
  assert.equal(gateway.tokens.at(-1), "Bearer third");
  line.send(gateway.engine.hello());
  await line.next("welcome");
  const stopped = attachment.stop();
  await line.ended();
  (line.call as ServerDuplexStream<Buffer, Uint8Array>).end();
  await stopped;
});

test("only consecutive refusals wait long", async (t) => {
  const logged = t.mock.method(console, "error", () => undefined);
  const attachment = attach([echo], options({ backoff: { initial: 1, maximum: 5, refused: 3_600_000 } }));
  for (const code of [Code.UNAUTHENTICATED, Code.FAILED_PRECONDITION, Code.INVALID_ARGUMENT]) {
    // each ends a session
    const { line } = await gateway.accept();
    line.send(gateway.engine.hello());
    await line.next("welcome");
    line.call.emit("error", { code, details: "no longer" });
  }
  gateway.refusals = [
    { code: Code.UNAVAILABLE, details: "later" },
    { code: Code.UNAUTHENTICATED, details: "first" },
    { code: Code.UNAUTHENTICATED, details: "second" },
  ];
  await until(() => logged.mock.callCount() === 6);
  const waits = logged.mock.calls.map(({ arguments: [text] }) =>
    Number(/trying again in ([\d.]+) s$/.exec(text as string)![1]),
  );
  assert.deepEqual(
    waits.map((wait) => wait > 1000),
    [false, false, false, false, false, true],
  );
  await attachment.stop();
});

test("a function that never returns blocks neither the next stream nor stop", async () => {
  let calls = 0;
  const stuck = composite({
    sync: () => {
      calls++;
      return new Promise<never>(() => undefined);
    },
  });
  const attachment = attach([stuck], options());
  for (const subject of ["p", "q"]) {
    const { line } = await gateway.accept();
    line.send(gateway.engine.hello());
    await line.next("welcome");
    gateway.engine.forget(subject);
    const before = calls;
    line.send(gateway.engine.call(subject, entries()));
    await until(() => calls === before + 1);
    if (subject === "p") {
      line.call.emit("error", { code: Code.UNAVAILABLE, details: "going down" });
    }
  }
  await attachment.stop(0);
  await serving([stuck], async (client) => {
    // it stops the server without a grace period
    const line = await connect(client);
    line.send(line.engine.call("p", entries()));
    await until(() => calls === 3);
  });
});

test("a stop before a stream is open", async () => {
  const attachment = attach([echo], options());
  await assert.rejects(attachment.trigger({}), /no stream is open/);
  await attachment.stop(0);
});

test("an attachment can intercept parents of a controller", async () => {
  const { worker: _, ...rest } = options();
  const attachment = attach([echo], {
    ...rest,
    intercept: { controllerKind: "CompositeController", controllerName: "web", labelSelector: "team=blue" },
  });
  const { line, attached } = await gateway.accept();
  assert.deepEqual(
    [
      attached.worker,
      attached.intercept?.controllerKind,
      attached.intercept?.controllerName,
      attached.intercept?.labelSelector,
    ],
    ["", "CompositeController", "web", "team=blue"],
  );
  const stopped = attachment.stop();
  await line.ended();
  (line.call as ServerDuplexStream<Buffer, Uint8Array>).end();
  await stopped;
});

test("a program attaches", async () => {
  await withPrograms(async (start) => {
    const running = start(
      "--attach",
      `127.0.0.1:${gateway.port}`,
      "--server-name",
      "localhost",
      "--worker",
      "w",
      "--ca-file",
      files.ca,
      "--token-file",
      files.token,
    );
    const { line: stream, attached } = await gateway.accept();
    assert.equal(attached.worker, "w");
    assert.match(String(gateway.tokens.at(-1)), /^Bearer \S+$/);
    stream.send(gateway.engine.hello());
    assert.match(await line(running.stdout), /^attached to 127.0.0.1:\d+$/);
    const exit = once(running, "exit");
    running.kill("SIGTERM");
    await stream.next("drain");
    stream.send({ case: "drain", value: {} });
    await stream.ended();
    (stream.call as ServerDuplexStream<Buffer, Uint8Array>).end();
    assert.deepEqual(await exit, [0, null]);
  });
});

test("an attachment needs one of worker and intercept", () => {
  const { worker: _, ...rest } = options();
  assert.throws(() => attach([echo], rest), /expected one of worker and intercept/);
  assert.throws(() => attach([], options()), /got no hook/);
});

test("a trigger does not need a session", async () => {
  assert.equal(await trigger(options(), "w", { reason: "news" }), 7);
  await assert.rejects(trigger(options(), "other"), {
    name: "TriggerError",
    code: Code.PERMISSION_DENIED,
    message: "may not serve other",
  });
  await assert.rejects(trigger(options({ clientCert: "a" }), "w"), /expected both files, or neither/);
});
