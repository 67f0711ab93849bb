/** The helpers for tests of functions. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  child,
  childrenOf,
  dependency,
  type DecorateRequest,
  type KubernetesObject,
  type SyncRequest,
} from "../src/index.js";
import { call, customize, decorate, finalizeInput, mapInput, replay, tombstone } from "../src/testing.js";

const YAML = `apiVersion: example.com/v1
kind: Web
metadata: {name: web, namespace: shop}
spec: {n: 9007199254740993}
---
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop}}
`;

interface Web extends KubernetesObject {
  spec: { n: bigint };
}

function sync({ parent, children, related }: SyncRequest<Web>): object {
  const pods = Object.keys(childrenOf(parent && { children }, "Pod.v1"));
  const maps = Object.keys(related["configmaps.v1"]?.objects ?? {});
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, n: parent.spec.n };
  return {
    status: { pods, maps },
    children: [child(map, { ready: true })],
    resyncAfterSeconds: 1.5,
    conditions: [{ type: "Ready", status: "True", reason: "Up", message: "all" }],
    events: [{ type: "Warning", reason: "Odd" }],
    results: [{ severity: "Info", reason: "Noted" }],
  };
}

test("a file of objects is a request", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const file = join(folder, "web.yaml");
  writeFileSync(file, YAML);
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "related" } };
  const answer = await call(sync, file, { children: ["ConfigMap.v1"], related: { "configmaps.v1": [map] } });
  rmSync(folder, { recursive: true });
  assert.deepEqual(answer.status, { pods: ["a"], maps: ["related"] });
  assert.equal(answer.children[0]!["n"], 2n ** 53n + 1n);
  assert.equal(answer.resyncAfterSeconds, 1.5);
  assert.deepEqual(answer.conditions, [{ type: "Ready", status: "True", reason: "Up", message: "all" }]);
  assert.deepEqual(answer.events, [{ type: "Warning", reason: "Odd", message: "" }]);
  assert.deepEqual(answer.results, [{ severity: "Info", reason: "Noted", message: "" }]);
});

test("invalid input and invalid responses are errors", async () => {
  const web = { apiVersion: "example.com/v1", kind: "Web", metadata: { name: "web" } };
  await assert.rejects(
    call(() => ({ childen: [] }) as never, [web]),
    /has the field childen/,
  );
  await assert.rejects(call(sync, [web]), /children of kind Pod.v1: the controller does not declare it/);
  await assert.rejects(call(sync, []), /got no object, expected the parent/);
  await assert.rejects(
    customize(() => ({ relatedResources: [{}] }) as never, [web]),
    /relatedResources\[0\].apiVersion/,
  );
});

test("an object is decorated", async () => {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", labels: { old: "1" } } };
  const answer = await decorate(
    ({ object }: DecorateRequest) => ({ labels: { seen: object.metadata.name, old: null } }),
    [pod],
  );
  assert.deepEqual([answer.labels, answer.attachments], [{ seen: "a", old: null }, []]);
});

interface Named {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
}

interface State extends Named {
  ready?: boolean;
  dependsOn?: (Named & { condition?: string })[];
}

interface Case {
  name: string;
  parent?: string;
  hook?: string;
  answer: Record<string, unknown> & { childStates?: State[] };
  repeat?: Record<string, number>;
  error?: string[];
}

/** The engine's tests use this table too. */
const TABLE = JSON.parse(readFileSync(new URL("../../../testdata/answers.json", import.meta.url), "utf8")) as {
  declared: string[];
  parents: Record<string, object>;
  cases: Case[];
  map: { mapKey: string; input: object; outputs: object[]; cases: Case[] };
};

/**
 * Returns a case's response as a function returns it: with the results of child among the children.
 */
function responseOf({ answer: { childStates = [], ...answer }, repeat = {} }: Case): object {
  for (const [field, count] of Object.entries(repeat)) {
    answer[field] = new Array(count).fill((answer[field] as object[])[0]);
  }
  for (const field of ["children", "attachments", "outputs"]) {
    if (answer[field] && childStates.length > 0) {
      answer[field] = (answer[field] as KubernetesObject[]).map((object) => withState(object, childStates));
    }
  }
  return answer;
}

function withState(object: KubernetesObject, states: State[]): object {
  const { name, namespace } = object.metadata;
  const state = states.find((one) => one.kind === object.kind && one.name === name && one.namespace === namespace);
  const dependsOn = state?.dependsOn?.map((d) => dependency(d.apiVersion, d.kind, d.name, d.condition, d.namespace));
  return state ? child(object, { ready: state.ready, dependsOn }) : object;
}

async function errorOf(one: Case, standard: string): Promise<string> {
  const [parent, answer] = [TABLE.parents[one.parent ?? "namespaced"]!, responseOf(one) as never];
  const { input, outputs, mapKey } = TABLE.map;
  const kinds = { outputs: TABLE.declared };
  const calls: Record<string, () => Promise<object>> = {
    composite: () => call(() => answer, [parent], { children: TABLE.declared }),
    decorator: () => decorate(() => answer, [parent], { children: TABLE.declared }),
    map: () => mapInput(() => answer, [parent, input, ...outputs], kinds),
    finalize: () => finalizeInput(() => answer, [parent, input, ...outputs], kinds),
    tombstone: () => tombstone(() => answer, [parent, ...outputs], { ...kinds, mapKey }),
  };
  try {
    await calls[one.hook ?? standard]!();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

for (const [kind, cases] of [["composite", TABLE.cases], ["map", TABLE.map.cases]] as const) {
  for (const one of cases) {
    test(`a response of a ${kind} hook with ${one.name}`, async () => {
      const error = await errorOf(one, kind);
      assert.equal(error !== "", one.error !== undefined, error);
      for (const part of one.error ?? []) {
        assert.ok(error.toLowerCase().includes(part.toLowerCase()), `${error}: expected ${part}`);
      }
    });
  }
}

test("invalid kinds are errors", async () => {
  for (const kind of ["Pod", "Pod.v1:cluster", ".v1"]) {
    await assert.rejects(
      call(() => ({}), [TABLE.parents["namespaced"]!], { children: [kind] }),
      /expected one such as Pod.v1/,
    );
  }
});

/** The recording that tests the helpers of all SDKs and the engine. */
const SAMPLE = new URL("../../../testdata/recording.json", import.meta.url).pathname;

interface Recorded extends KubernetesObject {
  spec: { count: bigint };
}

test("a recording is a question", async () => {
  const response = await replay(({ parent, children, related }: SyncRequest<Recorded>) => {
    const login = related["login"]?.objects["login"] as unknown as { data: object };
    const page = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "pages" }, data: login.data };
    const pages = Object.keys(childrenOf({ children }, "ConfigMap.v1")).length;
    return { status: { count: parent.spec.count, pages }, children: [page] };
  }, SAMPLE);
  assert.deepEqual(response["status"], { count: 9007199254740993n, pages: 1 });
  assert.deepEqual(response.desired[0]!.object["data"], { password: "bWFza2VkLTE=" });
});

test("a file that is no recording of this version is an error", async () => {
  const folder = mkdtempSync(join(tmpdir(), "recording-"));
  const text = readFileSync(SAMPLE, "utf8");
  try {
    for (const [from, to, expected] of [
      ["recording/v1", "recording/v2", /got "hookloop.dev\/recording\/v2", expected/],
      ["{", "no recording", /is no recording.*expected a file of hookloop serve/],
      [text.slice(text.length / 2), "", /is no recording.*expected a file of hookloop serve/],
      ['"operation": "sync"', '"operation": "customize"', /operation: got "customize"/],
    ] as const) {
      const file = join(folder, "recording.json");
      writeFileSync(file, text.replace(from, to));
      await assert.rejects(replay(() => ({}), file), expected);
    }
    await assert.rejects(replay(() => ({}), folder), /is no recording: .*EISDIR.*expected a file of hookloop serve/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
