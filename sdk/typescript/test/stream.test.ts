/** Streams over loopback that the engine opens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Metadata, status as Code, type ClientDuplexStream } from "@grpc/grpc-js";
import { composite, decorator, RetryAfter, type Server } from "../src/index.js";
import type { Answer } from "../src/gen/hookloop/stream/v1/stream_pb.js";
import { MAX_CONCURRENT_CALLS } from "../src/limiter.js";
import { BYTES } from "../src/streamserver.js";
import { Engine } from "./engine.js";
import { BIG, serving } from "./requests.js";
import { until } from "./until.js";
import { blocking, connect, echo, entries, Line, statusOf } from "./line.js";

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
    assert.deepEqual((await line.next("welcome")).methods, [
      "/hookloop.composite.v1.CompositeHookService/Sync",
      "/hookloop.decorator.v1.DecoratorHookService/Finalize",
    ]);
    call.end();
  });
});

function errorOf({ outcome }: Answer): { code: Code; message: string; details: number } {
  assert.equal(outcome.case, "error");
  const { code, message, details } = outcome.value as Extract<Answer["outcome"], { case: "error" }>["value"];
  return { code, message, details: details.length };
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
      (await second.next("welcome")).subjects.map(({ subject }) => subject),
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
      [Code.DEADLINE_EXCEEDED, "/hookloop.composite.v1.CompositeHookService/Sync took longer than 1 ms"],
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
    line.send(line.engine.call("p", entries(), { method: "/hookloop.composite.v1.CompositeHookService/Finalize" }));
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
    const parents = server.trigger(
      { controllerName: "c", parents: [{ namespace: "shop", name: "hi" }], reason: "news" });
    const { id, controllerName, parents: names, reason } = await line.next("trigger");
    assert.deepEqual(
      [controllerName, names.map(({ namespace, name }) => `${namespace}/${name}`), reason],
      ["c", ["shop/hi"], "news"],
    );
    line.send({ case: "triggerResult", value: { id, parents: 3 } });
    assert.equal(await parents, 3);
    const refused = server.trigger({ labelSelector: "!!" });
    line.send({
      case: "triggerResult",
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
      const parents = server.trigger({ controllerName: "c" });
      await Promise.all(
        lines.map(async (line, index) =>
          line.send({ case: "triggerResult", value: { id: (await line.next("trigger")).id, ...answers[index] } }),
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
    line.send({ case: "triggerResult", value: { id: (await line.next("trigger")).id, parents: 2 } });
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
      (await second.next("welcome")).subjects.map(({ subject }) => subject),
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
