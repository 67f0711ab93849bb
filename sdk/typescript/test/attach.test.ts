/** Attachments: streams over loopback that a hook opens to a gateway. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import promises from "node:timers/promises";
import { status as Code, type ServerDuplexStream } from "@grpc/grpc-js";
import { attach, composite, trigger, type AttachOptions } from "../src/index.js";
import { selfSigned } from "./certificate.js";
import { Engine } from "./engine.js";
import { line, withPrograms } from "./program.js";
import { serving } from "./requests.js";
import { until } from "./until.js";
import { Gateway } from "./gateway.js";
import { connect, echo, entries, statusOf } from "./line.js";

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
  const status = { code: Code.PERMISSION_DENIED, message: "the right is gone" };
  first.line.send({ case: "goAway", value: { status } });
  first.line.call.emit("error", { code: Code.PERMISSION_DENIED, details: "the right is gone" });
  const second = await gateway.accept();
  assert.equal(second.attached.sessionId, "kept");
  assert.deepEqual(gateway.tokens, ["Bearer first", "Bearer second"]);
  second.line.send(gateway.engine.hello());
  assert.equal((await second.line.next("welcome")).subjects.length, 1);
  const parents = attachment.trigger({ reason: "news" });
  second.line.send({ case: "triggerResult", value: { id: (await second.line.next("trigger")).id, parents: 2 } });
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

for (const [name, lifetime, calls, want] of [
  ["a session that the engine soon ends does not reset the backoff", 9_999, false, [200, 400, 800, 1600]],
  ["a session with a call resets the backoff", 0, true, [200, 200, 200, 200]],
  ["a session that lasted resets the backoff", 10_000, false, [200, 200, 200, 200]],
] as const) {
  test(name, async (t) => {
    t.mock.method(console, "error", () => undefined);
    let now = 0;
    t.mock.method(performance, "now", () => now);
    const delays: number[] = [];
    const sleep = t.mock.method(promises, "setTimeout", async (delay: number) => void delays.push(delay));
    syncBuiltinESMExports();
    const attachment = attach([echo], options({ backoff: {} }));
    for (const _ of want) {
      const { line } = await gateway.accept();
      line.send(gateway.engine.hello());
      await line.next("welcome");
      if (calls) {
        gateway.engine.forget("p");
        line.send(gateway.engine.call("p", entries("a")));
        await line.next("answer");
      }
      now += lifetime;
      line.call.emit("error", { code: Code.RESOURCE_EXHAUSTED, details: "too many sessions" });
    }
    await gateway.accept();
    sleep.mock.restore();
    syncBuiltinESMExports();
    await attachment.stop(0);
    want.forEach((longest, i) => {
      const delay = delays[i]!;
      assert.ok(longest / 2 <= delay && delay <= longest, `delay ${i} is ${delay}, want ${longest} with jitter`);
    });
  });
}

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
