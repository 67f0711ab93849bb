// The hook is a function: a test asks it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "@hookloop/hook/testing";
import { sync } from "./hook.js";

const metadata = { name: "shop", namespace: "web" };

/** The answer about a Website whose Deployment, if there is one, has so many Pods that are ready. */
function ask(html: Record<string, string>, readyReplicas?: number) {
  const website = { apiVersion: "demo.example.com/v1", kind: "Website", metadata, spec: { html, replicas: 2 } };
  const servers = { apiVersion: "apps/v1", kind: "Deployment", metadata, status: { readyReplicas } };
  return call(sync, readyReplicas === undefined ? [website] : [website, servers], { children: ["ConfigMap.v1", "Deployment.apps/v1", "Service.v1"] });
}

test("children depend on each other", async () => {
  const { desired, status } = await ask({ "index.html": "Open" });
  assert.deepEqual(desired.map(({ object }) => [object.kind, object.metadata.name]), [["ConfigMap", "shop"], ["Deployment", "shop"], ["Service", "shop"]]);
  assert.deepEqual(desired.map(({ dependsOn }) => dependsOn.map(({ kind }) => kind)), [[], ["ConfigMap"], ["Deployment"]]);
  assert.deepEqual(status, { url: "http://shop.web.svc", replicas: 2, ready: 0 });
});

test("new pages roll", async () => {
  const [first, second, same] = await Promise.all(["1", "2", "2"].map(async (page) => (await ask({ page })).children[1]));
  assert.notDeepEqual(first, second);
  assert.deepEqual(second, same);
});

test("a site is ready when its servers are", async () => {
  for (const [up, status] of [[undefined, "False"], [1, "False"], [2, "True"]] as const) {
    assert.equal((await ask({}, up)).conditions![0]!.status, status);
  }
});
