/** Map hooks: unary calls over a loopback connection, and requests of a stream. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { status as Code, type ServiceError } from "@grpc/grpc-js";
import { callHook, decodeRequest, hasInput, pathOf, SHAPES } from "../src/codec.js";
import {
  type FinalizeResponse, MapHookService, MapRequestSchema, type MapResponse as MapMessage, type TombstoneResponse,
} from "../src/gen/hookloop/map/v1/map_pb.js";
import type { Response } from "../src/codec.js";
import {
  childrenOf, mapper, type CustomizeRequest, type MapFinalizeRequest, type MapFunctions, type MapRequest,
  type MapResponse, type TombstoneRequest,
} from "../src/index.js";
import { HookSession } from "../src/session/hook.js";
import { SessionState } from "../src/session/state.js";
import { Engine, serialize } from "./engine.js";
import { BIG, object, serving, unaryCall } from "./requests.js";

/** Returns one output with values of the request. */
function copy(request: MapRequest | MapFinalizeRequest): MapResponse {
  const { input, mapKey, finalizing } = request;
  const output = {
    apiVersion: "v1", kind: "Secret", metadata: { name: input?.metadata.name ?? "gone" }, key: mapKey, finalizing,
    n: (input?.["spec"] as { n: bigint } | undefined)?.n ?? 0,
    observed: Object.keys(childrenOf(request, "ConfigMap.v1")),
  };
  return { outputs: [output], events: [{ reason: "Mapped", message: mapKey }], finalized: input === null };
}

const functions: MapFunctions = {
  map: copy,
  finalize: copy,
  tombstone: (request: TombstoneRequest) => ({
    outputs: [childrenOf(request, "ConfigMap.v1")["one"]!], resyncAfterSeconds: 60,
  }),
  customize: ({ parent }: CustomizeRequest) => ({
    relatedResources: [{ apiVersion: "v1", resource: "secrets", names: [parent.metadata.name] }],
  }),
};

const input = object("v1", "Pod", "shop", "in");
const outputs = [object("v1", "ConfigMap", "shop", "one"), object("v1", "ConfigMap", "shop", "two")];
const controller = object("metacontroller.k8s.io/v1alpha1", "MapController", "", "hello");
const parent = object("example.com/v1", "Greeting", "shop", "hi");
const groups = [{ apiVersion: "v1", kind: "ConfigMap", objects: outputs }, { apiVersion: "v1", kind: "Secret" }];
const request = { controller, parent, mapKey: "Pod/shop/in", outputs: groups };

const bodyOf = ({ outputs = [] }: Response): Record<string, unknown> =>
  JSON.parse(new TextDecoder().decode(outputs[0]!.body)) as Record<string, unknown>;

test("a map hook gets the input and its outputs", async () => {
  await serving([mapper(functions)], async (client) => {
    const { map, tombstone, finalize, customize } = MapHookService.method;
    const mapped = await unaryCall(client, map, { ...request, input }) as MapMessage;
    assert.ok(new TextDecoder().decode(mapped.outputs[0]!.body).includes(`"n":${BIG}`));
    const { n: _, ...rest } = bodyOf(mapped);
    assert.deepEqual(rest, {
      apiVersion: "v1", kind: "Secret", metadata: { name: "in" }, key: "Pod/shop/in", finalizing: false,
      observed: ["one", "two"],
    });
    assert.equal(mapped.details?.events[0]?.message, "Pod/shop/in");
    const kept = await unaryCall(client, tombstone, request) as TombstoneResponse;
    const metadata = { namespace: "shop", name: "one" };
    assert.deepEqual(bodyOf(kept), { apiVersion: "v1", kind: "ConfigMap", metadata });
    assert.equal(kept.details?.resyncAfter?.seconds, 60n);
    const finalized = await unaryCall(client, finalize, request) as FinalizeResponse;
    assert.equal(finalized.finalized, true);
    assert.deepEqual(bodyOf(finalized)["metadata"], { name: "gone" });
    const rules = await unaryCall(client, customize, { controller, parent }) as unknown as
      { relatedResources: { names: string[] }[] };
    assert.deepEqual(rules.relatedResources[0]?.names, ["hi"]);
  });
});

test("functions that are missing are not served", async () => {
  await serving([mapper({ map: copy })], async (client) => {
    await assert.rejects(unaryCall(client, MapHookService.method.tombstone, request), (error: ServiceError) =>
      error.code === Code.UNIMPLEMENTED && error.details.includes("no tombstone function"));
    await assert.rejects(unaryCall(client, MapHookService.method.map, request), /input is missing/);
  });
});

test("invalid responses are errors", async () => {
  const cases: [keyof MapFunctions, unknown, RegExp][] = [
    ["map", {}, /outputs: is missing/],
    ["map", { outputs: [], status: {} }, /status/],
    ["map", { outputs: [], conditions: [] }, /conditions/],
    ["tombstone", { outputs: [], finalized: true }, /finalized/],
    ["tombstone", { outputs: [{ kind: "Pod" }] }, /outputs\[0\]: apiVersion/],
    ["finalize", { outputs: [], finalized: 1 }, /finalized is 1/],
  ];
  for (const [operation, response, expected] of cases) {
    const hook = mapper({ [operation]: () => response } as MapFunctions);
    const message = hasInput(SHAPES.map, operation) ? { ...request, input } : request;
    await serving([hook], async (client) => {
      await assert.rejects(unaryCall(client, MapHookService.method[operation], message), expected);
    });
  }
});

test("a stream carries the inputs of one parent as subjects of their own", async () => {
  const engine = new Engine();
  const hook = new HookSession({ state: () => new SessionState() });
  hook.receive(serialize(engine.hello()));
  hook.outbox();
  for (const name of ["in", "other"]) {
    const found = object("v1", "Pod", "shop", name);
    const entries = [
      { slot: 0, object: controller }, { slot: 1, object: parent }, { slot: 2, object: found },
      ...outputs.map((output) => ({ slot: 4, object: output })),
    ];
    const emptied = groups.map(({ apiVersion, kind }) => ({ apiVersion, kind }));
    const mapKey = `Pod/shop/${name}`;
    const envelope = toBinary(MapRequestSchema, create(MapRequestSchema, { mapKey, outputs: emptied }));
    const call = engine.call(mapKey, entries, { method: pathOf(MapHookService.method.map), envelope });
    const sent = call.value!.upserts!.filter(({ content }) => content?.case === "object");
    assert.equal(sent.length, name === "in" ? 5 : 1, "objects that travel");
    const received = hook.receive(serialize(call));
    assert.equal(received.kind, "call");
    const { method, request: rebuilt } = (received as Extract<typeof received, { kind: "call" }>).call;
    const decoded = decodeRequest(method.shape, method.operation, rebuilt) as MapRequest;
    assert.equal(decoded.input.metadata.name, name);
    const response = await callHook(method, copy, rebuilt, new AbortController().signal);
    assert.deepEqual(bodyOf(response)["observed"], ["one", "two"]);
  }
});
