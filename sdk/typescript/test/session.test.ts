/** The hook's half of a stream against a small engine's half: what is asked is whole, what is answered is put together again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { decode, encode } from "../src/codec.js";
import { CompositeHookServiceSyncRequestSchema, CompositeHookServiceSyncResponseSchema } from "../src/gen/hookloop/hook/v1/composite_pb.js";
import type { Answer, HookMessage } from "../src/gen/hookloop/stream/v1/stream_pb.js";
import type { SyncRequest } from "../src/hooks.js";
import { ProtocolError } from "../src/session/error.js";
import { Hook, type SessionSettings, type Received, type Work } from "../src/session/hook.js";
import { SessionStates, SessionState } from "../src/session/state.js";
import { Engine, fragments, say, type Entry } from "./engine.js";
import { BIG, object } from "./requests.js";

type Message = Parameters<typeof say>[0];

/** Both halves, and what goes between them. */
class World {
  readonly hook: Hook;
  constructor(readonly engine = new Engine(), settings: Partial<SessionSettings> = {}) {
    this.hook = new Hook({ memory: () => new SessionState(), ...settings });
  }

  send(message: Message): Received {
    return this.hook.receive(say(message));
  }

  open(): HookMessage["message"] {
    this.send(this.engine.hello());
    return this.read()[0]!;
  }

  read(): HookMessage["message"][] {
    return this.hook.outbox().map((data) => this.engine.read(data)).filter((message) => message !== undefined);
  }

  work(message: Message): Work {
    const received = this.send(message);
    assert.equal(received.kind, "work");
    return (received as { work: Work }).work;
  }

  /** The one answer among what is sent. */
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

function questionOf({ method: { shape, op }, question }: Work): SyncRequest {
  return decode(shape, op, question) as SyncRequest;
}

/** Answers with ConfigMaps of some names. */
function answer(world: World, { id, method }: Work, names: readonly string[], status?: object): void {
  const children = names.map((name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, n: BIG }));
  world.hook.answer(id, encode(method.shape, method.op, method.desc, { children, ...(status ? { status } : {}) }));
}

function namesOf(world: World): string[] {
  return world.engine.response("p", world.answer()).children.map(({ body }) => /"name":"([^"]*)"/.exec(Buffer.from(body).toString())![1]!);
}

test("the session opens with what the hook accepts", () => {
  const world = new World(new Engine(), { build: "b1", calls: 3, callBytes: 1000, messageBytes: 2000 });
  const welcome = world.open();
  assert.equal(welcome.case, "welcome");
  const { version, buildId, window, maxMessageBytes, holdings } = welcome.value as Extract<typeof welcome, { case: "welcome" }>["value"];
  assert.deepEqual([version, buildId, window?.calls, window?.bytes, maxMessageBytes, holdings], [1, "b1", 3, 1000n, 2000n, []]);
});

test("a snapshot is the whole question, and the answer a whole list", () => {
  const world = new World();
  world.open();
  const work = world.work(world.engine.call("p", entries(["a", "b"], ["s"]), { timeout: { seconds: 2n, nanos: 5e8 }, traceContext: { traceparent: "x" } }));
  assert.deepEqual([work.timeout, work.trace], [2500, { traceparent: "x" }]);
  const question = questionOf(work);
  assert.equal(question.parent["kind"], "Greeting");
  assert.deepEqual(question.parent["spec"], { n: BIG });
  assert.deepEqual(Object.keys(question.children["Pod.v1"]!), ["a", "b"]);
  assert.deepEqual(Object.keys(question.related["secrets.v1"]!.objects), ["s"]);
  answer(world, work, ["x", "y"], { n: BIG });
  const said = world.answer();
  const response = world.engine.response("p", said);
  assert.equal(Buffer.from(response.status!).toString(), `{"n":${BIG}}`);
  assert.match(Buffer.from(response.children[0]!.body).toString(), new RegExp(`"n":${BIG}`));
});

test("only what changes travels, and what does not change is read once", () => {
  const world = new World();
  world.open();
  const first = world.work(world.engine.call("p", entries(["a", "b", "d"])));
  const a = questionOf(first).children["Pod.v1"]!["a"];
  answer(world, first, ["x", "y", "z"]);
  assert.deepEqual(namesOf(world), ["x", "y", "z"]);

  const call = world.engine.call("p", entries(["a", "c", "d"]));
  assert.deepEqual([call.value!.removed!.length, call.value!.upserts!.length], [1, 1]);
  const second = world.work(call);
  const pods = questionOf(second).children["Pod.v1"]!;
  assert.deepEqual(Object.keys(pods), ["a", "c", "d"]);
  assert.equal(pods["a"], a);
  answer(world, second, ["x", "new", "z"]);
  const said = world.answer();
  assert.equal(said.outcome.case, "desired");
  assert.deepEqual(said.outcome.value!.$typeName && (said.outcome.value as { pieces: { content: { case?: string } }[] }).pieces.map((piece) => piece.content.case), ["keep", "insert", "keep"]);
  assert.equal(world.engine.response("p", said).children.length, 3);

  const third = world.work(world.engine.call("p", entries(["a", "c", "d"])));
  assert.equal(questionOf(third).children["Pod.v1"], pods);
});

test("what a function is given cannot be changed", () => {
  const world = new World();
  world.open();
  const { children, parent } = questionOf(world.work(world.engine.call("p", entries(["a"])))) as { children: any; parent: any };
  assert.throws(() => (parent.spec.n = 1), TypeError);
  assert.throws(() => (children["Pod.v1"]["a"].metadata.labels = {}), TypeError);
  assert.throws(() => delete children["Pod.v1"]["a"], TypeError);
  const copy = structuredClone(parent);
  copy.spec.n = 1;
  assert.equal(parent.spec.n, BIG);
});

test("what nobody looks at is not read", () => {
  const world = new World();
  world.open();
  const broken = { ...object("v1", "Pod", "shop", "broken"), body: Buffer.from("{") };
  const question = questionOf(world.work(world.engine.call("p", [...entries(["a"]), { slot: 2, object: broken }])));
  assert.deepEqual(Object.keys(question.children["Pod.v1"]!), ["a", "broken"]);
  assert.equal(question.children["Pod.v1"]!["a"]!.kind, "Pod");
  assert.throws(() => question.children["Pod.v1"]!["broken"], /Pod "broken": /);
});

test("a hook that lacks something asks for everything, and gets on", () => {
  const world = new World();
  world.open();
  const elsewhere = new Engine();
  elsewhere.call("p", entries(["a"]));
  assert.equal(world.nack({ ...elsewhere.call("p", entries(["a", "b"])) }), 1, "unknown base: nothing held");

  elsewhere.call("other", entries(["z"]));
  world.work({ ...elsewhere.call("q", entries(["new"]), { id: 10n, upserts: entries(["new"]).map((e) => upsert(e)) }) });
  elsewhere.call("q", entries(["two"]));
  assert.equal(world.nack(elsewhere.call("q", entries(["three"]), { id: 11n })), 1, "unknown base: another digest");
  assert.equal(world.nack(elsewhere.call("r", entries(["new"]), { id: 12n })), 2, "unknown object");
  assert.equal(world.nack(elsewhere.call("t", entries(["fresh"]), { id: 13n, upserts: entries(["fresh", "fresher"]).map((e) => upsert(e)) })), 3, "digest mismatch");
  world.work(elsewhere.call("t2", entries(["fresh"]), { id: 14n, upserts: entries(["fresh"]).map((e) => upsert(e)) }));
});

function upsert({ slot, object: value }: Entry): object {
  const said = new Engine().call("", [{ slot, object: value }]).value!.upserts![0]!;
  return said;
}

test("large messages travel in fragments, both ways", () => {
  const world = new World();
  world.open();
  const call = world.engine.call("p", entries(["a"], [], "x".repeat(3 << 20)));
  const parts = fragments(call, 1 << 20);
  assert.equal(parts.length, 4);
  const received = parts.map((part) => world.hook.receive(part));
  assert.deepEqual(received.map(({ kind }) => kind), ["nothing", "nothing", "nothing", "work"]);
  const { work } = received[3] as { work: Work };
  world.hook.answer(work.id, encode(work.method.shape, work.method.op, work.method.desc, { status: { text: "y".repeat(2 << 20) } }));
  const out = world.hook.outbox();
  assert.equal(out.length, 3);
  assert.ok(out.every((data) => data.length < (1 << 20) + 100));
  const message = out.map((data) => world.engine.read(data)).at(-1)!;
  assert.equal(world.engine.response("p", message.value as Answer).status!.length, (2 << 20) + 11);
});

test("what the protocol does not allow ends the stream", () => {
  const cases: [string, RegExp, (world: World) => void][] = [
    ["no Hello", /without a Hello/, (world) => world.send({ case: "drain", value: {} })],
    ["no common version", /versions 2, 3 .* speaks 1/, (world) => world.send({ case: "hello", value: { versions: [2, 3] } })],
    ["a second Hello", /second Hello/, (world) => [world.open(), world.open()]],
    ["bytes", /no hookloop.stream.v1.EngineMessage/, (world) => world.hook.receive(Uint8Array.of(255))],
    ["a fragment that is missing", /expected fragment 0/, (world) => world.hook.receive(fragments(world.engine.hello(), 5)[1]!)],
    ["a message between fragments", /drain between fragments/, (world) => {
      world.hook.receive(fragments(world.engine.hello(), 5)[0]!);
      world.send({ case: "drain", value: {} });
    }],
    ["a large message", /larger than the maximum of 67108864/, (world) =>
      world.send({ case: "fragment", value: { total: 1n << 40n, data: Uint8Array.of(1) } })],
    ["an upsert of nothing", /neither object nor hash/, (world) => {
      world.open();
      world.send(world.engine.call("p", [], { upserts: [{}] }));
    }],
  ];
  for (const [name, text, spoil] of cases) {
    assert.throws(() => spoil(new World()), (error: Error) => error instanceof ProtocolError && text.test(error.message), name);
  }
});

test("a request that cannot be rebuilt ends its call only", () => {
  const shell = toBinary(CompositeHookServiceSyncRequestSchema, create(CompositeHookServiceSyncRequestSchema, { parent: { name: "p" } }));
  const cases: [string, RegExp, Parameters<Engine["call"]>[2]][] = [
    ["objects in the request", /holds objects, expected them in the slots/, { request: shell }],
    ["a request of another type", /the request is no hookloop.hook.v1.CompositeHookServiceSyncRequest/, { request: Uint8Array.of(255) }],
    ["no place for the objects", /has places for 2 of its 3 objects/, { request: new Uint8Array() }],
  ];
  for (const [name, text, more] of cases) {
    const world = new World();
    world.open();
    assert.equal(world.send(world.engine.call("p", entries(["a"]), more)).kind, "nothing", name);
    const { outcome } = world.answer();
    const { code, message } = outcome.value as { code: number; message: string };
    assert.deepEqual([outcome.case, code], ["error", 13], name);
    assert.match(message, text, name);
    const next = world.engine.call("p", entries(["a", "b"]));
    assert.equal(next.value!.upserts!.length, 1);
    assert.deepEqual(Object.keys(questionOf(world.work(next)).children["Pod.v1"]!), ["a", "b"], name);
  }
});

test("holdings fit into one message, those used last first", () => {
  const limit = 4096;
  const memory = new SessionState();
  const first = new World(new Engine(), { memory: () => memory });
  first.open();
  const names = Array.from({ length: 100 }, (_, n) => `${"a".repeat(100)}-${n}`);
  names.forEach((name) => answer(first, first.work(first.engine.call(name, entries([]))), []));
  first.hook.lost();

  const second = new World(new Engine(), { memory: () => memory });
  second.send(second.engine.hello(BigInt(limit)));
  const [data, ...more] = second.hook.outbox();
  assert.equal(more.length, 0);
  assert.ok(data!.length <= limit && data!.length > limit - 130, `the message has ${data!.length} bytes`);
  const { holdings } = second.engine.read(data!)!.value as { holdings: { subject: string }[] };
  const held = holdings.map(({ subject }) => subject);
  assert.deepEqual(held, names.slice(-held.length).reverse());
  assert.equal(memory.holdings(Infinity).length, held.length, "the engine forgets the others");
});

test("the whole message is measured", () => {
  const sizeOf = (accepts: number): { size: number; case: string } => {
    const world = new World();
    world.send(world.engine.hello(BigInt(accepts)));
    world.read();
    answer(world, world.work(world.engine.call("p", entries([]))), Array.from({ length: 20 }, (_, n) => `name-${n}`));
    const [data] = world.hook.outbox();
    return { size: data!.length, case: (world.engine.read(data!)!.value as Answer).outcome.case! };
  };
  const { size } = sizeOf(0);
  assert.equal(sizeOf(size).case, "desired");
  assert.equal(sizeOf(size - 1).case, "error");
});

test("what is not known is ignored, an old call dropped, a method that is not known refused", () => {
  const world = new World();
  world.open();
  assert.equal(world.hook.receive(Uint8Array.of(0x72, 0)).kind, "nothing");
  world.work(world.engine.call("p", entries([])));
  assert.equal(world.send(world.engine.call("p", entries([]), { id: 1n })).kind, "nothing");
  assert.deepEqual(world.read(), []);
  world.send(world.engine.call("p", entries([]), { id: 5n, method: "/hookloop.hook.v9.MapHookService/Sync" }));
  const { outcome } = world.answer();
  assert.deepEqual([outcome.case, (outcome.value as { code?: number }).code], ["error", 12]);
});

test("a call that is given up is answered once", () => {
  const world = new World();
  world.open();
  const work = world.work(world.engine.call("p", entries([])));
  assert.deepEqual(world.send({ case: "cancel", value: { callId: work.id } }), { kind: "cancelled", work });
  world.hook.refuse(work.id, { code: 1, message: "given up" });
  answer(world, work, ["late"]);
  assert.equal((world.answer().outcome.value as { code?: number }).code, 1);
  assert.equal(world.send({ case: "cancel", value: { callId: work.id } }).kind, "nothing");
  assert.equal(world.hook.busy, false);
});

test("an answer that is too large is refused, and names both sizes", () => {
  const world = new World();
  world.send(world.engine.hello(100n));
  world.read();
  answer(world, world.work(world.engine.call("p", entries([]))), ["a", "b"]);
  assert.match((world.answer().outcome.value as { message: string }).message, /^the answer has \d+ bytes, which is larger than max \(100\)$/);
});

test("the next stream of a session goes on with what is held", () => {
  const memories = new SessionStates();
  const engine = new Engine("same");
  const taken: SessionState[] = [];
  const memory = (session: string): SessionState => {
    taken.push(memories.take(session, () => assert.fail("nobody else takes it")));
    return taken.at(-1)!;
  };
  const first = new World(engine, { memory });
  first.open();
  first.work(engine.call("p", entries(["a"])));
  first.hook.lost();
  memories.leave("same", taken[0]!);

  const second = new World(engine, { memory });
  const welcome = second.open() as { value: { holdings: { subject: string }[] } };
  assert.deepEqual(welcome.value.holdings.map(({ subject }) => subject), ["p"]);
  const call = engine.call("p", entries(["a", "b"]), { id: 1n });
  assert.equal(call.value!.upserts!.length, 1);
  assert.deepEqual(Object.keys(questionOf(second.work(call)).children["Pod.v1"]!), ["a", "b"]);
});

test("a session that another stream takes is left by the one before", () => {
  const memories = new SessionStates();
  const first: SessionState = memories.take("same", () => memories.leave("same", first));
  assert.notEqual(memories.take("other", () => assert.fail("nobody else takes it")), first);
  assert.equal(memories.take("same", () => undefined), first);
  const [own, another] = ["", ""].map((none) => memories.take(none, () => assert.fail("a memory of its own is not taken")));
  assert.notEqual(own, another);
});

test("what was used longest ago is forgotten first, and said to be", () => {
  const memory = new SessionState(4000);
  const world = new World(new Engine(), { memory: () => memory });
  world.open();
  for (const subject of ["p", "q", "r"]) {
    const work = world.work(world.engine.call(subject, entries([subject], [], subject.repeat(1500))));
    answer(world, work, []);
  }
  const forgotten = world.read().flatMap((message) => (message.case === "forget" ? message.value.subjects : []));
  assert.deepEqual(forgotten, ["p"]);
  assert.ok(memory.bytes <= 4000);
  world.send({ case: "forget", value: { subjects: ["q", "r", "none"] } });
  assert.equal(memory.bytes, 0);
});

test("whatever bytes come, they are understood or refused", () => {
  let seed = 11;
  const random = (below: number): number => (seed = (seed * 48271) % 0x7fffffff) % below;
  for (let round = 0; round < 2000; round++) {
    const world = new World();
    world.open();
    const data = say(world.engine.call("p", entries(["a", "b"], ["s"])));
    for (let changes = random(4); changes >= 0; changes--) {
      data[random(data.length)] = random(256);
    }
    try {
      const received = world.hook.receive(data.subarray(0, data.length - random(3)));
      if (received.kind === "work") {
        answer(world, received.work, ["x"]);
      }
    } catch (error) {
      assert.ok(error instanceof ProtocolError, `${error}`);
    }
  }
});

test("any history of changes gives the questions and answers that whole ones would", () => {
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 48271) % 0x7fffffff) % below;
  const some = (count: number): string[] => Array.from({ length: count }, (_, n) => `n${n}`).filter(() => random(3) > 0);
  const world = new World(new Engine(), { memory: () => new SessionState(20_000) });
  world.open();
  for (let step = 0; step < 400; step++) {
    const subject = `p${random(3)}`;
    const [pods, secrets, desired] = [some(12), some(4), some(10)];
    desired.sort(() => random(3) - 1);
    if (random(20) === 0) {
      world.engine.forget(subject);
    }
    const more = random(4) === 0 ? "changed" : "";
    const snapshot = (): Work => {
      world.engine.forget(subject);
      return world.work(world.engine.call(subject, entries(pods, secrets, more), { upserts: entries(pods, secrets, more).map(upsert) }));
    };
    const received = world.send(world.engine.call(subject, entries(pods, secrets, more)));
    const work = received.kind === "work" ? received.work : (world.read(), snapshot());
    const question = questionOf(work);
    assert.deepEqual(Object.keys(question.children["Pod.v1"]!), [...pods].sort());
    assert.deepEqual(Object.keys(question.related["secrets.v1"]!.objects), [...secrets].sort());
    assert.ok(Object.values(question.children["Pod.v1"]!).every((pod) => (pod["more"] ?? "") === more));
    answer(world, work, desired);
    const said = world.read().find((message) => message.case === "answer")!;
    const got = world.engine.response(subject, said.value as Answer).children.map(({ body }) => JSON.parse(Buffer.from(body).toString()).metadata.name);
    assert.deepEqual(got, desired);
  }
});

test("a response keeps its objects", () => {
  const world = new World();
  world.open();
  const work = world.work(world.engine.call("p", entries([])));
  const response = create(CompositeHookServiceSyncResponseSchema, { children: [{ body: Uint8Array.of(1) }] });
  world.hook.answer(work.id, response);
  assert.equal(response.children.length, 1);
});
