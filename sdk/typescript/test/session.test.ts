/** The hook's side of a stream against a small engine: requests and responses arrive complete. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { allCacheStats, CacheMeter } from "../src/cachestats.js";
import { decodeRequest, encodeResponse } from "../src/codec.js";
import {
  SyncRequestSchema, SyncResponseSchema,
} from "../src/gen/hookloop/composite/v1/composite_pb.js";
import { Capability, type Answer, type HookMessage } from "../src/gen/hookloop/stream/v1/stream_pb.js";
import type { SyncRequest } from "../src/hooks.js";
import { ProtocolError } from "../src/session/error.js";
import { HookSession, type SessionSettings, type Received, type HookCall } from "../src/session/hook.js";
import { SessionStates, SessionState } from "../src/session/state.js";
import { CAPABILITIES, Engine, fragments, serialize, type Entry } from "./engine.js";
import { BIG, object } from "./requests.js";

type Message = Parameters<typeof serialize>[0];

/** Both sides of a stream. */
class Pair {
  readonly hook: HookSession;
  constructor(
    readonly engine = new Engine(),
    settings: Partial<SessionSettings> = {},
  ) {
    this.hook = new HookSession({ state: () => new SessionState(), ...settings });
  }

  send(message: Message): Received {
    return this.hook.receive(serialize(message));
  }

  open(): HookMessage["message"] {
    this.send(this.engine.hello());
    return this.read()[0]!;
  }

  read(): HookMessage["message"][] {
    return this.hook
      .outbox()
      .map((data) => this.engine.read(data))
      .filter((message) => message !== undefined);
  }

  call(message: Message): HookCall {
    const received = this.send(message);
    assert.equal(received.kind, "call");
    return (received as { call: HookCall }).call;
  }

  /** Returns the only answer among the messages to send. */
  answer(): Answer {
    const [answer, ...more] = this.read().filter(({ case: name }) => name === "answer");
    assert.equal(more.length, 0);
    return answer!.value as Answer;
  }

  nack(message: Message): unknown {
    assert.equal(this.send(message).kind, "nothing");
    return (this.answer().outcome.value as { reason?: number }).reason;
  }
}

function entries(pods: readonly string[], secrets: readonly string[] = [], more = ""): Entry[] {
  return [
    { slot: 0, object: object("metacontroller.k8s.io/v1alpha1", "CompositeController", "", "c") },
    { slot: 1, object: object("example.com/v1", "Greeting", "shop", "hi") },
    ...pods.map((name) => ({ slot: 2, object: object("v1", "Pod", "shop", name, more) })),
    ...secrets.map((name) => ({ slot: 3, object: object("v1", "Secret", "shop", name) })),
  ];
}

function requestOf({ method: { shape, operation }, request }: HookCall): SyncRequest {
  return decodeRequest(shape, operation, request) as SyncRequest;
}

/** Answers a call with ConfigMaps of some names. */
function answer(pair: Pair, { id, method }: HookCall, names: readonly string[], status?: object): void {
  const children = names.map((name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, n: BIG }));
  pair.hook.answer(
    id,
    encodeResponse(method.shape, method.operation, method.desc, { children, ...(status ? { status } : {}) }),
  );
}

function namesOf(pair: Pair): string[] {
  return pair.engine
    .response("p", pair.answer())
    .children.map(({ body }) => /"name":"([^"]*)"/.exec(Buffer.from(body).toString())![1]!);
}

test("the session opens with what the hook accepts", () => {
  const pair = new Pair(new Engine(), { build: "b1", calls: 3, callBytes: 1000, messageBytes: 2000 });
  const welcome = pair.open();
  assert.equal(welcome.case, "welcome");
  const { version, buildId, window, maxMessageBytes, subjects } = welcome.value as Extract<
    typeof welcome,
    { case: "welcome" }
  >["value"];
  assert.deepEqual(
    [version, buildId, window?.calls, window?.bytes, maxMessageBytes, subjects],
    [1, "b1", 3, 1000n, 2000n, []],
  );
});

test("a snapshot has the whole set, and its answer the whole list", () => {
  const pair = new Pair();
  pair.open();
  const work = pair.call(
    pair.engine.call("p", entries(["a", "b"], ["s"]), {
      timeout: { seconds: 2n, nanos: 5e8 },
      traceContext: { traceparent: "x" },
    }),
  );
  assert.deepEqual([work.timeout, work.trace], [2500, { traceparent: "x" }]);
  const request = requestOf(work);
  assert.equal(request.parent["kind"], "Greeting");
  assert.deepEqual(request.parent["spec"], { n: BIG });
  assert.deepEqual(Object.keys(request.children["Pod.v1"]!), ["a", "b"]);
  assert.deepEqual(Object.keys(request.related["secrets.v1"]!.objects), ["s"]);
  answer(pair, work, ["x", "y"], { n: BIG });
  const reply = pair.answer();
  const response = pair.engine.response("p", reply);
  assert.equal(Buffer.from(response.status!).toString(), `{"n":${BIG}}`);
  assert.match(Buffer.from(response.children[0]!.body).toString(), new RegExp(`"n":${BIG}`));
});

test("only changes are sent, and unchanged objects are parsed once", () => {
  const pair = new Pair();
  pair.open();
  const first = pair.call(pair.engine.call("p", entries(["a", "b", "d"])));
  const a = requestOf(first).children["Pod.v1"]!["a"];
  answer(pair, first, ["x", "y", "z"]);
  assert.deepEqual(namesOf(pair), ["x", "y", "z"]);

  const call = pair.engine.call("p", entries(["a", "c", "d"]));
  assert.deepEqual([call.value!.removed!.length, call.value!.upserts!.length], [1, 1]);
  const second = pair.call(call);
  const pods = requestOf(second).children["Pod.v1"]!;
  assert.deepEqual(Object.keys(pods), ["a", "c", "d"]);
  assert.equal(pods["a"], a);
  answer(pair, second, ["x", "new", "z"]);
  const reply = pair.answer();
  assert.equal(reply.outcome.case, "desired");
  assert.deepEqual(
    reply.outcome.value!.$typeName &&
      (reply.outcome.value as { pieces: { content: { case?: string } }[] }).pieces.map((piece) => piece.content.case),
    ["keep", "insert", "keep"],
  );
  assert.equal(pair.engine.response("p", reply).children.length, 3);

  const third = pair.call(pair.engine.call("p", entries(["a", "c", "d"])));
  assert.equal(requestOf(third).children["Pod.v1"], pods);
});

test("a request cannot be changed", () => {
  const pair = new Pair();
  pair.open();
  const { children, parent } = requestOf(pair.call(pair.engine.call("p", entries(["a"])))) as {
    children: any;
    parent: any;
  };
  assert.throws(() => (parent.spec.n = 1), TypeError);
  assert.throws(() => (children["Pod.v1"]["a"].metadata.labels = {}), TypeError);
  assert.throws(() => delete children["Pod.v1"]["a"], TypeError);
  const copy = structuredClone(parent);
  copy.spec.n = 1;
  assert.equal(parent.spec.n, BIG);
});

test("an object is parsed on first access", () => {
  const pair = new Pair();
  pair.open();
  const broken = { ...object("v1", "Pod", "shop", "broken"), body: Buffer.from("{") };
  const request = requestOf(pair.call(pair.engine.call("p", [...entries(["a"]), { slot: 2, object: broken }])));
  assert.deepEqual(Object.keys(request.children["Pod.v1"]!), ["a", "broken"]);
  assert.equal(request.children["Pod.v1"]!["a"]!.kind, "Pod");
  assert.throws(() => request.children["Pod.v1"]!["broken"], /Pod "broken": /);
});

test("a hook without the base sends a Nack, and accepts a snapshot", () => {
  const pair = new Pair();
  pair.open();
  const elsewhere = new Engine();
  elsewhere.call("p", entries(["a"]));
  assert.equal(pair.nack({ ...elsewhere.call("p", entries(["a", "b"])) }), 1, "unknown base: no set");

  elsewhere.call("other", entries(["z"]));
  pair.call({ ...elsewhere.call("q", entries(["new"]), { id: 10n, upserts: entries(["new"]).map((e) => upsert(e)) }) });
  elsewhere.call("q", entries(["two"]));
  assert.equal(pair.nack(elsewhere.call("q", entries(["three"]), { id: 11n })), 1, "unknown base: another digest");
  assert.equal(pair.nack(elsewhere.call("r", entries(["new"]), { id: 12n })), 2, "unknown object");
  assert.equal(
    pair.nack(
      elsewhere.call("t", entries(["fresh"]), {
        id: 13n,
        upserts: entries(["fresh", "fresher"]).map((e) => upsert(e)),
      }),
    ),
    3,
    "digest mismatch",
  );
  pair.call(elsewhere.call("t2", entries(["fresh"]), { id: 14n, upserts: entries(["fresh"]).map((e) => upsert(e)) }));
});

function upsert({ slot, object: value }: Entry): object {
  const reply = new Engine().call("", [{ slot, object: value }]).value!.upserts![0]!;
  return reply;
}

test("large messages are fragmented in both directions", () => {
  const pair = new Pair();
  pair.open();
  const call = pair.engine.call("p", entries(["a"], [], "x".repeat(3 << 20)));
  const parts = fragments(call, 1 << 20);
  assert.equal(parts.length, 4);
  const received = parts.map((part) => pair.hook.receive(part));
  assert.deepEqual(
    received.map(({ kind }) => kind),
    ["nothing", "nothing", "nothing", "call"],
  );
  const { call: work } = received[3] as { call: HookCall };
  pair.hook.answer(
    work.id,
    encodeResponse(work.method.shape, work.method.operation, work.method.desc, {
      status: { text: "y".repeat(2 << 20) },
    }),
  );
  const out = pair.hook.outbox();
  assert.equal(out.length, 3);
  assert.ok(out.every((data) => data.length < (1 << 20) + 100));
  const message = out.map((data) => pair.engine.read(data)).at(-1)!;
  assert.equal(pair.engine.response("p", message.value as Answer).status!.length, (2 << 20) + 11);
});

test("a violation of the protocol ends the stream", () => {
  const cases: [string, RegExp, (pair: Pair) => void][] = [
    ["no Hello", /not a Hello/, (pair) => pair.send({ case: "drain", value: {} })],
    [
      "no common version",
      /versions 2, 3 .* has 1/,
      (pair) => pair.send({ case: "hello", value: { versions: [2, 3] } }),
    ],
    ["a second Hello", /second Hello/, (pair) => [pair.open(), pair.open()]],
    ["bytes", /not a hookloop.stream.v1.EngineMessage/, (pair) => pair.hook.receive(Uint8Array.of(255))],
    [
      "a fragment that is missing",
      /expected fragment 0/,
      (pair) => pair.hook.receive(fragments(pair.engine.hello(), 5)[1]!),
    ],
    [
      "a message between fragments",
      /drain between fragments/,
      (pair) => {
        pair.hook.receive(fragments(pair.engine.hello(), 5)[0]!);
        pair.send({ case: "drain", value: {} });
      },
    ],
    [
      "a large message",
      /larger than the maximum of 67108864/,
      (pair) => pair.send({ case: "fragment", value: { totalBytes: 1n << 40n, data: Uint8Array.of(1) } }),
    ],
    [
      "an upsert of nothing",
      /neither object nor hash/,
      (pair) => {
        pair.open();
        pair.send(pair.engine.call("p", [], { upserts: [{}] }));
      },
    ],
  ];
  for (const [name, text, spoil] of cases) {
    assert.throws(
      () => spoil(new Pair()),
      (error: Error) => error instanceof ProtocolError && text.test(error.message),
      name,
    );
  }
});

test("an invalid request ends only its call", () => {
  const envelope = toBinary(
    SyncRequestSchema,
    create(SyncRequestSchema, { parent: { name: "p" } }),
  );
  const cases: [string, RegExp, Parameters<Engine["call"]>[2]][] = [
    ["objects in the request", /has objects, expected them in the slots/, { envelope }],
    [
      "a request of another type",
      /the request is not a hookloop.composite.v1.SyncRequest/,
      { envelope: Uint8Array.of(255) },
    ],
    ["no slot for the objects", /has slots for 2 of its 3 objects/, { envelope: new Uint8Array() }],
  ];
  for (const [name, text, more] of cases) {
    const pair = new Pair();
    pair.open();
    assert.equal(pair.send(pair.engine.call("p", entries(["a"]), more)).kind, "nothing", name);
    const { outcome } = pair.answer();
    const { code, message } = outcome.value as { code: number; message: string };
    assert.deepEqual([outcome.case, code], ["error", 13], name);
    assert.match(message, text, name);
    const next = pair.engine.call("p", entries(["a", "b"]));
    assert.equal(next.value!.upserts!.length, 1);
    assert.deepEqual(Object.keys(requestOf(pair.call(next)).children["Pod.v1"]!), ["a", "b"], name);
  }
});

test("a feature is used only if both sides state it", () => {
  const state = new SessionState();
  for (const [capabilities, parts, kept] of [
    [CAPABILITIES, 3, 1],
    [[Capability.CHANGES, 99 as Capability], 1, 0],
  ] as const) {
    const pair = new Pair(new Engine(), { state: () => state });
    const hello = { ...(pair.engine.hello() as Message & { case: "hello" }).value, capabilities: [...capabilities] };
    pair.send({ case: "hello", value: hello });
    const welcome = pair.read()[0]!.value as { capabilities: Capability[]; subjects: object[] };
    assert.deepEqual(welcome.capabilities, CAPABILITIES);
    const call = pair.call(pair.engine.call("p", entries(["a"])));
    pair.hook.answer(call.id, encodeResponse(call.method.shape, "sync", call.method.desc, {
      status: { large: "x".repeat(2 << 20) },
    }));
    const sent = pair.hook.outbox();
    assert.equal(sent.length, parts);
    assert.ok(parts > 1 || sent[0]!.length < 1000, "an answer above one piece is an error");
    pair.hook.lost();
    assert.equal(state.subjects(Infinity).length, kept);
  }
});

test("subjects fit into one message, the most recently used first", () => {
  const limit = 4096;
  const state = new SessionState();
  const first = new Pair(new Engine(), { state: () => state });
  first.open();
  const names = Array.from({ length: 100 }, (_, n) => `${"a".repeat(100)}-${n}`);
  names.forEach((name) => answer(first, first.call(first.engine.call(name, entries([]))), []));
  first.hook.lost();

  const second = new Pair(new Engine(), { state: () => state });
  second.send(second.engine.hello(BigInt(limit)));
  const [data, ...more] = second.hook.outbox();
  assert.equal(more.length, 0);
  assert.ok(data!.length <= limit && data!.length > limit - 130, `the message has ${data!.length} bytes`);
  const { subjects } = second.engine.read(data!)!.value as { subjects: { subject: string }[] };
  const held = subjects.map(({ subject }) => subject);
  assert.deepEqual(held, names.slice(-held.length).reverse());
  assert.equal(state.subjects(Infinity).length, held.length, "the engine forgets the others");
});

test("the size limit covers the whole message", () => {
  const sizeOf = (accepts: number): { size: number; case: string } => {
    const pair = new Pair();
    pair.send(pair.engine.hello(BigInt(accepts)));
    pair.read();
    answer(
      pair,
      pair.call(pair.engine.call("p", entries([]))),
      Array.from({ length: 20 }, (_, n) => `name-${n}`),
    );
    const [data] = pair.hook.outbox();
    return { size: data!.length, case: (pair.engine.read(data!)!.value as Answer).outcome.case! };
  };
  const { size } = sizeOf(0);
  assert.equal(sizeOf(size).case, "desired");
  assert.equal(sizeOf(size - 1).case, "error");
});

test("an unknown message and an old call are ignored, an unknown method is an error", () => {
  const pair = new Pair();
  pair.open();
  assert.equal(pair.hook.receive(Uint8Array.of(0x72, 0)).kind, "nothing");
  pair.call(pair.engine.call("p", entries([])));
  assert.equal(pair.send(pair.engine.call("p", entries([]), { id: 1n })).kind, "nothing");
  assert.deepEqual(pair.read(), []);
  pair.send(pair.engine.call("p", entries([]), { id: 5n, method: "/hookloop.hook.v9.MapHookService/Sync" }));
  const { outcome } = pair.answer();
  assert.deepEqual([outcome.case, (outcome.value as { code?: number }).code], ["error", 12]);
});

test("a cancelled call is answered once", () => {
  const pair = new Pair();
  pair.open();
  const work = pair.call(pair.engine.call("p", entries([])));
  assert.deepEqual(pair.send({ case: "cancel", value: { callId: work.id } }), { kind: "cancelled", call: work });
  pair.hook.fail(work.id, { code: 1, message: "cancelled" });
  answer(pair, work, ["late"]);
  assert.equal((pair.answer().outcome.value as { code?: number }).code, 1);
  assert.equal(pair.send({ case: "cancel", value: { callId: work.id } }).kind, "nothing");
  assert.equal(pair.hook.busy, false);
});

test("an answer that is too large becomes an error with both sizes", () => {
  const pair = new Pair();
  pair.send(pair.engine.hello(100n));
  pair.read();
  answer(pair, pair.call(pair.engine.call("p", entries([]))), ["a", "b"]);
  assert.match(
    (pair.answer().outcome.value as { message: string }).message,
    /^the answer has \d+ bytes, which is larger than max \(100\)$/,
  );
});

test("the next stream of a session continues with its state", () => {
  const states = new SessionStates();
  const engine = new Engine("same");
  const acquired: SessionState[] = [];
  const state = (session: string): SessionState => {
    acquired.push(states.acquire(session, () => assert.fail("no other stream acquires it")));
    return acquired.at(-1)!;
  };
  const first = new Pair(engine, { state });
  first.open();
  first.call(engine.call("p", entries(["a"])));
  first.hook.lost();
  states.release("same", acquired[0]!);

  const second = new Pair(engine, { state });
  const welcome = second.open() as { value: { subjects: { subject: string }[] } };
  assert.deepEqual(
    welcome.value.subjects.map(({ subject }) => subject),
    ["p"],
  );
  const call = engine.call("p", entries(["a", "b"]), { id: 1n });
  assert.equal(call.value!.upserts!.length, 1);
  assert.deepEqual(Object.keys(requestOf(second.call(call)).children["Pod.v1"]!), ["a", "b"]);
});

test("a stream that acquires a session revokes it from the previous one", () => {
  const states = new SessionStates();
  const first: SessionState = states.acquire("same", () => states.release("same", first));
  assert.notEqual(
    states.acquire("other", () => assert.fail("no other stream acquires it")),
    first,
  );
  assert.equal(
    states.acquire("same", () => undefined),
    first,
  );
  const [own, another] = ["", ""].map((none) =>
    states.acquire(none, () => assert.fail("a state without ID is not shared")),
  );
  assert.notEqual(own, another);
});

test("idle states are limited by number and size", () => {
  const states = new SessionStates();
  for (let n = 0; n < 70; n++) {
    const state = states.acquire(`${n}`, () => undefined);
    state.answered(state.commit("p", { slots: new Map(), digest: 0n }), { items: [], digest: 0n, size: 1 });
    states.release(`${n}`, state);
  }
  assert.equal(states.acquire("5", () => undefined).bytes, 0, "dropped");
  assert.equal(states.acquire("6", () => undefined).bytes, 1, "kept");
  const large = states.acquire("large", () => undefined);
  large.answered(large.commit("p", { slots: new Map(), digest: 0n }), { items: [], digest: 0n, size: 256 << 20 });
  states.release("large", large);
  assert.equal(states.acquire("69", () => undefined).bytes, 0, "dropped because of the large one");
  assert.equal(states.acquire("large", () => undefined).bytes, 256 << 20);
});

test("states are metered until they are dropped", () => {
  const meter = new CacheMeter();
  const states = new SessionStates(undefined, meter);
  const answer = (session: string): SessionState => {
    const state = states.acquire(session, () => undefined);
    state.answered(state.commit("p", { slots: new Map(), digest: 0n }), { items: [], digest: 0n, size: 10 });
    return state;
  };
  for (let n = 0; n < 70; n++) {
    states.release(`${n}`, answer(`${n}`));
  }
  assert.deepEqual({ ...meter }, { bytes: 640, entries: 64, hits: 0, misses: 70 });
  states.release("69", answer("69"));
  assert.deepEqual({ ...meter }, { bytes: 640, entries: 64, hits: 1, misses: 70 });
  const alone = answer("");
  assert.equal(meter.entries, 65);
  states.release("", alone);
  assert.deepEqual({ ...meter }, { bytes: 640, entries: 64, hits: 1, misses: 71 });
  assert.deepEqual(allCacheStats().map(({ cache }) => cache), ["sessions", "objects"]);
});

test("the least recently used subject is evicted, and reported", () => {
  const state = new SessionState(4000);
  const pair = new Pair(new Engine(), { state: () => state });
  pair.open();
  for (const subject of ["p", "q", "r"]) {
    const work = pair.call(pair.engine.call(subject, entries([subject], [], subject.repeat(1500))));
    answer(pair, work, []);
  }
  const forgotten = pair.read().flatMap((message) => (message.case === "forget" ? message.value.subjects : []));
  assert.deepEqual(forgotten, ["p"]);
  assert.ok(state.bytes <= 4000);
  pair.send({ case: "forget", value: { subjects: ["q", "r", "none"] } });
  assert.equal(state.bytes, 0);
});

test("any bytes are accepted or a ProtocolError", () => {
  let seed = 11;
  const random = (below: number): number => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let round = 0; round < 2000; round++) {
    const pair = new Pair();
    pair.open();
    const data = serialize(pair.engine.call("p", entries(["a", "b"], ["s"])));
    for (let changes = random(4); changes >= 0; changes--) {
      data[random(data.length)] = random(256);
    }
    try {
      const received = pair.hook.receive(data.subarray(0, data.length - random(3)));
      if (received.kind === "call") {
        answer(pair, received.call, ["x"]);
      }
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `${error}`);
    }
  }
});

test("changes and snapshots give the same requests and responses", () => {
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48271) % 0x7fffffff) % below;
  const some = (count: number): string[] =>
    Array.from({ length: count }, (_, n) => `n${n}`).filter(() => random(3) > 0);
  const pair = new Pair(new Engine(), { state: () => new SessionState(20_000) });
  pair.open();
  for (let step = 0; step < 400; step++) {
    const subject = `p${random(3)}`;
    const [pods, secrets, desired] = [some(12), some(4), some(10)];
    desired.sort(() => random(3) - 1);
    if (random(20) === 0) {
      pair.engine.forget(subject);
    }
    const more = random(4) === 0 ? "changed" : "";
    const snapshot = (): HookCall => {
      pair.engine.forget(subject);
      return pair.call(
        pair.engine.call(subject, entries(pods, secrets, more), { upserts: entries(pods, secrets, more).map(upsert) }),
      );
    };
    const received = pair.send(pair.engine.call(subject, entries(pods, secrets, more)));
    const work = received.kind === "call" ? received.call : (pair.read(), snapshot());
    const request = requestOf(work);
    assert.deepEqual(Object.keys(request.children["Pod.v1"]!), [...pods].sort());
    assert.deepEqual(Object.keys(request.related["secrets.v1"]!.objects), [...secrets].sort());
    assert.ok(
      Object.values(request.children["Pod.v1"]!).every(
        (pod) => ((pod as unknown as { more?: string }).more ?? "") === more,
      ),
    );
    answer(pair, work, desired);
    const reply = pair.read().find((message) => message.case === "answer")!;
    const got = pair.engine
      .response(subject, reply.value as Answer)
      .children.map(({ body }) => JSON.parse(Buffer.from(body).toString()).metadata.name);
    assert.deepEqual(got, desired);
  }
});

test("a response keeps its objects", () => {
  const pair = new Pair();
  pair.open();
  const work = pair.call(pair.engine.call("p", entries([])));
  const response = create(SyncResponseSchema, { children: [{ body: Uint8Array.of(1) }] });
  pair.hook.answer(work.id, response);
  assert.equal(response.children.length, 1);
});
