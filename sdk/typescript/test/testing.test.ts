/** Functions are tested without a server. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { child, childrenOf, type DecorateRequest, type KubernetesObject, type SyncRequest } from "../src/index.js";
import { call, customize, decorate } from "../src/testing.js";

const YAML = `{apiVersion: example.com/v1, kind: Web, metadata: {name: web}, spec: {n: 9007199254740993}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}}
`;

interface Web extends KubernetesObject {
  spec: { n: bigint };
}

function sync({ parent, children, related }: SyncRequest<Web>): object {
  const pods = Object.keys(childrenOf(parent && { children }, "Pod.v1"));
  const maps = Object.keys(related["configmaps.v1"]?.objects ?? {});
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" }, n: parent.spec.n };
  return {
    status: { pods, maps }, children: [child(map, { ready: true })], resyncAfterSeconds: 1.5,
    conditions: [{ type: "Ready", status: "True", reason: "Up", message: "all" }], events: [{ type: "Warning", reason: "Odd" }],
    results: [{ severity: "Info", reason: "Noted" }],
  };
}

test("a file of objects is a question", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hookloop-"));
  const file = join(folder, "web.yaml");
  writeFileSync(file, YAML);
  const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "related" } };
  const answer = await call(sync, file, { related: { "configmaps.v1": [map] } });
  rmSync(folder, { recursive: true });
  assert.deepEqual(answer.status, { pods: ["a"], maps: ["related"] });
  assert.equal(answer.children[0]!["n"], 2n ** 53n + 1n);
  assert.equal(answer.resyncAfterSeconds, 1.5);
  assert.deepEqual(answer.conditions, [{ type: "Ready", status: "True", reason: "Up", message: "all" }]);
  assert.deepEqual(answer.events, [{ type: "Warning", reason: "Odd", message: "" }]);
  assert.deepEqual(answer.results, [{ severity: "Info", reason: "Noted", message: "" }]);
});

test("mistakes show", async () => {
  const web = { apiVersion: "example.com/v1", kind: "Web", metadata: { name: "web" } };
  await assert.rejects(call(() => ({ childen: [] }) as never, [web]), /has the field childen/);
  await assert.rejects(call(sync, [web]), /children of kind Pod.v1: the controller does not declare it/);
  await assert.rejects(call(sync, []), /got no object, expected the parent/);
  await assert.rejects(customize(() => ({ relatedResources: [{}] }) as never, [web]), /relatedResources\[0\].apiVersion/);
});

test("an object is decorated", async () => {
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "a", labels: { old: "1" } } };
  const answer = await decorate(({ object }: DecorateRequest) => ({ labels: { seen: object.metadata.name, old: null } }), [pod]);
  assert.deepEqual([answer.labels, answer.attachments], [{ seen: "a", old: null }, []]);
});
