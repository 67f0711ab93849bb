// The hook is a function, so a test calls it directly.
import assert from "node:assert/strict";
import { test } from "node:test";
import { call, type CheckedSyncResponse } from "@hookloop/hook/testing";
import { sync } from "./hook.js";

const metadata = { name: "shop", namespace: "web" };
const children = ["ConfigMap.v1", "Deployment.apps/v1", "Service.v1"];

/** Calls the hook with a Website and, if readyReplicas is given, its Deployment. */
function callSync(html: Record<string, string>, readyReplicas?: number): Promise<CheckedSyncResponse> {
  const website = { apiVersion: "demo.example.com/v1", kind: "Website", metadata, spec: { html, replicas: 2 } };
  const servers = { apiVersion: "apps/v1", kind: "Deployment", metadata, status: { readyReplicas } };
  return call(sync, readyReplicas === undefined ? [website] : [website, servers], { children });
}

test("children depend on each other", async () => {
  const { desired, status } = await callSync({ "index.html": "Open" });
  assert.deepEqual(desired.map(({ object }) => object.kind), ["ConfigMap", "Deployment", "Service"]);
  assert.ok(desired.every(({ object }) => object.metadata.name === "shop"));
  const dependencies = desired.map(({ dependsOn }) => dependsOn.map(({ kind }) => kind));
  assert.deepEqual(dependencies, [[], ["ConfigMap"], ["Deployment"]]);
  assert.deepEqual(status, { url: "http://shop.web.svc", replicas: 2, ready: 0 });
});

test("new pages roll", async () => {
  const pages = ["1", "2", "2"];
  const [first, second, same] = await Promise.all(pages.map(async (page) => (await callSync({ page })).children[1]));
  assert.notDeepEqual(first, second);
  assert.deepEqual(second, same);
});

test("a site is ready when its servers are", async () => {
  for (const [up, status] of [[undefined, "False"], [1, "False"], [2, "True"]] as const) {
    assert.equal((await callSync({}, up)).conditions![0]!.status, status);
  }
});
