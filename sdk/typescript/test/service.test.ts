/** Requests to functions and their responses, over a loopback connection. */
import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { test, type TestContext } from "node:test";
import type { Message } from "@bufbuild/protobuf";
import { status as Code, type ServiceError } from "@grpc/grpc-js";
import {
  child,
  composite,
  decorator,
  dependency,
  NotServed,
  Reject,
  RelatedUnknown,
  requireRelated,
  RetryAfter,
  type Call,
  type SyncResponse,
  type SyncRequest,
} from "../src/index.js";
import {
  CompositeHookService, type SyncResponse as SyncMessage,
} from "../src/gen/hookloop/composite/v1/composite_pb.js";
import {
  LabelSelectorRequirement_Operator as Operator, type RelatedResourceRule,
} from "../src/gen/hookloop/hook/v1/related_pb.js";
import {
  DecoratorHookService, type SyncResponse as DecorateMessage,
} from "../src/gen/hookloop/decorator/v1/decorator_pb.js";
import { ConditionStatus, EventType, Severity } from "../src/gen/hookloop/hook/v1/response_pb.js";
import { unaryCall, callSync, BIG, decoratorRequest, serving, syncRequest } from "./requests.js";
import { until } from "./until.js";
import { MAX_CONCURRENT_CALLS } from "../src/limiter.js";

/** Resolves to the request that a function gets. */
async function received(message: object, method = CompositeHookService.method.sync): Promise<SyncRequest> {
  let seen: SyncRequest | undefined;
  const see = (request: SyncRequest): object => {
    seen = request;
    return {};
  };
  await serving(
    [composite({ sync: see, finalize: see })],
    async (client) => void (await unaryCall(client, method, message)),
  );
  return seen!;
}

/** Resolves to the response message of a function's return value. */
async function encoded<T extends Message>(
  value: unknown,
  op: "sync" | "finalize" | "customize" = "sync",
  shape = "composite",
): Promise<T> {
  const functions = { [op]: () => value } as object;
  const [service, request] =
    shape === "composite" ? [CompositeHookService, syncRequest()] : [DecoratorHookService, decoratorRequest()];
  const { controller, parent } = syncRequest();
  let got: Message | undefined;
  await serving([composite(functions), decorator(functions)], async (client) => {
    got = await unaryCall(client, service.method[op], op === "customize" ? { controller, parent } : request);
  });
  return got as T;
}

const named = (name: string, more: object = {}) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name },
  ...more,
});
const textOf = (body: Uint8Array | undefined): string => Buffer.from(body!).toString();

test("children are found by kind and name", async () => {
  const { controller, parent, children, finalizing } = await received(syncRequest());
  assert.deepEqual([controller.kind, parent["spec"], finalizing], ["CompositeController", { n: BIG }, false]);
  assert.deepEqual(Object.keys(children), ["Pod.v1", "Deployment.apps/v1"]);
  assert.deepEqual(Object.keys(children["Pod.v1"]!), ["other/far", "near"]);
  assert.equal(children["Pod.v1"]!["near"]!.metadata.name, "near");
  assert.deepEqual(Object.keys(children["Deployment.apps/v1"]!), []);
  assert.throws(() => ((parent as any).spec = 1), TypeError);
});

test("finalizing is true in finalize", async () => {
  assert.equal((await received(syncRequest(), CompositeHookService.method.finalize as never)).finalizing, true);
});

test("an unknown group does not look empty", async () => {
  const { related } = await received(syncRequest());
  assert.equal(related["namespaces.v1"]!.objects["shop"]!.kind, "Namespace");
  const response: SyncResponse = {};
  assert.deepEqual(
    { ...requireRelated({ related }, response, { name: "spaces", apiVersion: "v1", resource: "namespaces" }) },
    {},
  );
  assert.equal(
    requireRelated({ related }, response, { name: "later", apiVersion: "v1", resource: "namespaces" }),
    undefined,
  );
  assert.deepEqual(
    response.requirements?.map((rule) => rule.name),
    ["spaces", "later"],
  );
  assert.throws(
    () => requireRelated({ related }, response, { apiVersion: "v1", resource: "namespaces" }),
    /name is undefined/,
  );
  assert.throws(
    () => related["certificates.cert-manager.io/v1"]!.objects,
    (error) => error instanceof NotServed && /no certificates/.test(error.message),
  );
  assert.throws(
    () => related["secrets.v1"]!.objects,
    (error) => error instanceof RelatedUnknown && /is unknown: not allowed/.test(error.message),
  );
});

test("an invalid request is an error", async (t) => {
  t.mock.method(console, "error", () => undefined);
  const parent = syncRequest().parent!;
  const cases: [RegExp, object][] = [
    [/parent is missing/, { ...syncRequest(), parent: undefined }],
    [/Greeting "hi": encoding is 7, expected ENCODING_JSON/, { ...syncRequest(), parent: { ...parent, encoding: 7 } }],
    [/Greeting "hi": Unexpected end/, { ...syncRequest(), parent: { ...parent, body: new Uint8Array() } }],
    [
      /Greeting "hi": the body is not a JSON object/,
      { ...syncRequest(), parent: { ...parent, body: Buffer.from("[]") } },
    ],
  ];
  for (const [text, request] of cases) {
    await assert.rejects(
      received(request),
      (error: ServiceError) => text.test(error.details) && error.code === Code.INTERNAL,
    );
  }
});

test("children, status and time", async () => {
  const got = await encoded<SyncMessage>({
    status: { n: BIG },
    children: [named("a", { n: BIG }), named("b")],
    resyncAfterSeconds: 1.5,
  });
  assert.equal(textOf(got.status), `{"n":${BIG}}`);
  assert.match(textOf(got.children[0]!.body), new RegExp(`"n":${BIG}`));
  const resync = got.details?.resyncAfter;
  assert.deepEqual([got.children.length, resync?.seconds, resync?.nanos], [2, 1n, 5e8]);
  const nothing = await encoded<SyncMessage>({});
  assert.deepEqual([nothing.status, nothing.children, nothing.details?.resyncAfter], [undefined, [], undefined]);
  assert.equal(((await encoded({ finalized: true }, "finalize")) as Message & { finalized?: boolean }).finalized, true);
});

test("labels are set and removed", async () => {
  const got = await encoded<DecorateMessage>(
    {
      labels: { a: "1", b: null },
      annotations: { c: "" },
      attachments: [named("x")],
      events: [{ type: "Warning", reason: "Odd" }],
    },
    "sync",
    "decorator",
  );
  assert.deepEqual(
    [got.labels?.set, got.labels?.remove, got.annotations?.set, got.attachments.length, got.details?.events[0]!.type],
    [{ a: "1" }, ["b"], { c: "" }, 1, EventType.WARNING],
  );
});

test("details and child options", async () => {
  const got = await encoded<SyncMessage>({
    conditions: [
      { type: "Ready", status: "False", reason: "Waiting", message: "for pods" },
      { type: "Seen", status: "Unknown", reason: "New" },
    ],
    events: [
      { type: "Normal", reason: "Scaled", message: "to 3" },
      { type: "Warning", reason: "Odd" },
    ],
    results: [
      { severity: "Info", reason: "A" },
      { severity: "Warning", reason: "B" },
      { severity: "Fatal", reason: "C", message: "no" },
    ],
    requirements: [{ apiVersion: "v1", resource: "secrets", names: ["a"], name: "keys" }],
    children: [
      child(named("a"), {
        ready: false,
        dependsOn: [dependency("v1", "ConfigMap", "b", "Ready"), dependency("v1", "Secret", "c", "", "far")],
      }),
      child(named("b"), { ready: true }),
      child(named("c"), {}),
    ],
  });
  assert.deepEqual(
    got.details!.conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
    [
      ["Ready", ConditionStatus.FALSE, "Waiting", "for pods"],
      ["Seen", ConditionStatus.UNKNOWN, "New", ""],
    ],
  );
  assert.deepEqual(
    got.details!.events.map(({ type, reason, message }) => [type, reason, message]),
    [
      [EventType.NORMAL, "Scaled", "to 3"],
      [EventType.WARNING, "Odd", ""],
    ],
  );
  assert.deepEqual(
    got.details!.results.map(({ severity, reason }) => [severity, reason]),
    [
      [Severity.INFO, "A"],
      [Severity.WARNING, "B"],
      [Severity.FATAL, "C"],
    ],
  );
  assert.deepEqual(
    got.details!.requirements.map(({ resource, names, name }) => [resource, names, name]),
    [["secrets", ["a"], "keys"]],
  );
  assert.deepEqual(
    got.children.map(({ ready }) => ready),
    [false, true, undefined],
  );
  assert.deepEqual(
    got.children[0]!.dependsOn.map(({ apiVersion, kind, namespace, name, condition }) => [
      apiVersion,
      kind,
      namespace,
      name,
      condition,
    ]),
    [
      ["v1", "ConfigMap", "", "b", "Ready"],
      ["v1", "Secret", "far", "c", ""],
    ],
  );
});

test("rules", async () => {
  const rules = [
    { apiVersion: "v1", resource: "configmaps", namespace: "shop", names: ["a"] },
    {
      apiVersion: "v1",
      resource: "secrets",
      namespaceSelector: {},
      labelSelector: {
        matchLabels: { a: "b" },
        matchExpressions: [{ key: "k", operator: "NotIn", values: ["v"] }],
      },
    },
  ];
  const got = (
    await encoded<Message & { relatedResources: RelatedResourceRule[] }>({ relatedResources: rules }, "customize")
  ).relatedResources;
  assert.deepEqual(
    [got[0]!.resource, got[0]!.namespace, got[0]!.names, got[0]!.labelSelector],
    ["configmaps", "shop", ["a"], undefined],
  );
  assert.ok(got[1]!.namespaceSelector);
  const [expression] = got[1]!.labelSelector!.matchExpressions;
  assert.deepEqual([expression!.key, expression!.operator, expression!.values], ["k", Operator.NOT_IN, ["v"]]);
});

test("an error of a response has the item", async (t) => {
  t.mock.method(console, "error", () => undefined);
  const cycle: unknown[] = [];
  cycle.push(cycle);
  const condition = { type: "Ready", status: "True", reason: "Up" };
  const cases: [unknown, string][] = [
    [undefined, "the hook's function returned undefined, expected an object"],
    [[], "the response is a list, expected an object"],
    [
      { childen: [] },
      "the response has the field childen, expected one of children, conditions, events, finalized, " +
        "requirements, results, resyncAfterSeconds, status",
    ],
    [{ children: {} }, "children is of type object, expected a list"],
    [{ children: ["a"] }, "children[0] is of type string, expected an object"],
    [
      { children: [named("a"), { kind: "Pod" }] },
      "children[1]: apiVersion is undefined, expected a string that is not empty",
    ],
    [{ children: [named("")] }, 'children[0]: metadata.name is "", expected a string'],
    [{ children: [named("a", { data: NaN })] }, "children[0] is not valid JSON: data is NaN"],
    [{ children: [named("a", { data: cycle })] }, "children[0] is not valid JSON"],
    [
      { children: [child(named("a"), { ready: "yes" as never })] },
      "children[0].ready is of type string, expected true or false",
    ],
    [
      { children: [child(named("a"), { dependsOn: [{} as never] })] },
      "children[0].dependsOn[0].apiVersion is undefined, expected a string",
    ],
    [
      { children: [child(named("a"), { dependsOn: {} as never })] },
      "children[0].dependsOn is of type object, expected a list",
    ],
    [{ status: 5 }, "status is 5, expected an object"],
    [{ resyncAfterSeconds: -1 }, "resyncAfterSeconds is -1, expected a number from 0"],
    [{ finalized: "false" }, "finalized is of type string, expected true or false"],
    [{ conditions: [condition, { ...condition }] }, 'conditions[1].type is "Ready" as in an earlier condition'],
    [
      { conditions: [{ ...condition, status: true }] },
      "conditions[0].status is true, expected one of True, False, Unknown",
    ],
    [
      { conditions: [{ ...condition, reason: "not up" }] },
      'conditions[0].reason is "not up", expected one word in CamelCase',
    ],
    [{ conditions: [{ ...condition, lastTransitionTime: "" }] }, "conditions[0] has the field lastTransitionTime"],
    [{ events: [{ type: "Bad", reason: "A" }] }, 'events[0].type is "Bad", expected one of Normal, Warning'],
    [{ events: [{ type: "Normal" }] }, "events[0].reason is undefined, expected a string that is not empty"],
    [
      { results: [{ severity: "Bad", reason: "A" }] },
      'results[0].severity is "Bad", expected one of Info, Warning, Fatal',
    ],
    [
      { requirements: [{ apiVersion: "v1", resource: "" }] },
      'requirements[0].resource is "", expected a string that is not empty',
    ],
  ];
  for (const [answer, text] of cases) {
    await assert.rejects(encoded(answer), (error: ServiceError) => {
      assert.ok(error.details.includes(text), `${error.details}, expected ${text}`);
      return error.code === Code.INTERNAL;
    });
  }
});

test("errors become status codes", async (t) => {
  t.mock.method(console, "error", () => undefined);
  const cases: [Error, Code, string][] = [
    [new Reject("TooMany", "at most 3"), Code.FAILED_PRECONDITION, "at most 3"],
    [new RetryAfter(1.5, "later"), Code.RESOURCE_EXHAUSTED, "later"],
    [new TypeError("oops"), Code.INTERNAL, "TypeError: oops"],
  ];
  for (const [error, code, text] of cases) {
    const failing = composite({
      sync: () => {
        throw error;
      },
    });
    await serving([failing], async (client) => {
      await assert.rejects(callSync(client), { code, details: text });
    });
  }
  await serving([composite({ sync: () => ({}) })], async (client) => {
    await assert.rejects(unaryCall(client, CompositeHookService.method.finalize, syncRequest()), {
      code: Code.UNIMPLEMENTED,
    });
  });
});

test("an error of any text ends only its call", async (t) => {
  t.mock.method(console, "error", () => undefined);
  for (const text of ["lone \ud800", `large ${"ü".repeat(1 << 20)}`]) {
    for (const error of [new Reject("Bad", text), new Error(text)]) {
      const failing = composite({
        sync: () => {
          throw error;
        },
      });
      await serving([failing], async (client) => {
        for (let call = 0; call < 2; call++) { // the connection is open after the first
          await assert.rejects(callSync(client), ({ details }: ServiceError) => {
            assert.match(details, /lone \ufffd|large ü/);
            return Buffer.byteLength(details) <= 1100;
          });
        }
      });
    }
  }
});

test("the signal aborts when the caller cancels", async (t) => {
  t.mock.method(console, "error", () => undefined);
  let aborted: () => void = () => undefined;
  const aborts = new Promise<void>((resolve) => (aborted = resolve));
  const waiting = composite({
    sync: (_, { signal }: Call) =>
      new Promise((resolve) =>
        signal.addEventListener("abort", () => {
          aborted();
          resolve({});
        }),
      ),
  });
  await serving([waiting], async (client) => {
    await assert.rejects(unaryCall(client, CompositeHookService.method.sync, syncRequest(), Date.now() + 200), {
      code: Code.DEADLINE_EXCEEDED,
    });
    await aborts;
  });
});

/** Resolves to the log lines of a function. */
async function logged(t: TestContext, run: () => Promise<void>): Promise<string[]> {
  const error = t.mock.method(console, "error", () => undefined);
  await run();
  const lines = error.mock.calls.map(({ arguments: values }) => values.map(String).join(" "));
  error.mock.restore();
  return lines;
}

test("a failed function is logged once, with its parent; Reject and RetryAfter are not", async (t) => {
  const cases: [() => object | undefined, RegExp | undefined][] = [
    [
      () => {
        throw new TypeError("no database");
      },
      /^\/hookloop.composite.v1.CompositeHookService\/Sync of Greeting shop\/hi failed: TypeError: no database/,
    ],
    [() => undefined, /of Greeting shop\/hi failed: the hook's function returned undefined/],
    [
      () => {
        throw new Reject("Bad", "no");
      },
      undefined,
    ],
    [
      () => {
        throw new RetryAfter(1, "busy");
      },
      undefined,
    ],
    [() => ({}), undefined],
  ];
  for (const [sync, text] of cases) {
    const lines = await logged(t, () =>
      serving([composite({ sync: sync as never })], async (client) => {
        await callSync(client).catch(() => undefined);
      }),
    );
    assert.equal(lines.length, text ? 1 : 0, `${lines}`);
    assert.match(lines[0] ?? "", text ?? /^$/);
    assert.doesNotMatch(lines.join(), /spec/);
  }
});

test("the limiter bounds running unary calls, and cancelled calls do not begin", async (t) => {
  let called = 0;
  const release: (() => void)[] = [];
  const stuck = composite({
    sync: () =>
      new Promise<object>((resolve) => {
        called++;
        release.push(() => resolve({}));
      }),
  });
  const error = t.mock.method(console, "error", () => undefined);
  await serving([stuck], async (client) => {
    const cancel = new AbortController();
    setMaxListeners(0, cancel.signal);
    const calls = Array.from({ length: 2 * MAX_CONCURRENT_CALLS }, () =>
      unaryCall(client, CompositeHookService.method.sync, syncRequest(), undefined, cancel.signal),
    );
    await until(() => called === MAX_CONCURRENT_CALLS);
    cancel.abort();
    const ended = await Promise.allSettled(calls);
    assert.ok(ended.every(({ status }) => status === "rejected"));
    await until(() => error.mock.calls.length >= MAX_CONCURRENT_CALLS);
    assert.match(String(error.mock.calls[0]!.arguments), /Sync of Greeting shop\/hi was cancelled/);
    assert.equal(called, MAX_CONCURRENT_CALLS);
    release.forEach((go) => go());
  });
});
