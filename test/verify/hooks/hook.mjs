// A hook on the TypeScript SDK for the tests of "hookloop verify". It is a good one, except for a parent with the name
// of a fault.

import { createHash, randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { composite, parse, serve, stringify } from "../../../sdk/typescript/dist/index.js";

function customize() {
  return {
    relatedResources: [
      { apiVersion: "v1", resource: "configmaps", labelSelector: { matchLabels: { for: "demos" } } },
      { apiVersion: "v1", resource: "secrets", names: ["login"] },
    ],
  };
}

function sync({ parent, children, related }) {
  const { spec = {}, metadata: { name: fault } } = parent;
  const { settings = {} } = spec;
  const objects = related["configmaps.v1"]?.objects ?? {};
  const status = { settings: Object.keys(settings).length, related: Object.keys(objects).length };
  const names = Object.keys(settings).sort();
  const data = {};
  let web = deployment(spec);
  const now = new Date().toISOString();
  switch (fault) {
    case "map-order":
      names.splice(0, names.length, ...Object.keys(settings));
      break;
    case "hash-of-spec":
      status.hash = createHash("sha256").update(stringify(spec)).digest("hex");
      break;
    case "first-related":
      status.first = Object.keys(objects)[0] ?? "";
      break;
    case "time":
      data.at = now;
      break;
    case "seconds":
      status.at = Math.floor(Date.now() / 1000);
      break;
    case "time-without-spec":
      if (parent.spec === undefined) status.at = now;
      break;
    case "random":
      data.id = randomUUID();
      break;
    case "counter":
      status.syncs = (parent.status?.syncs ?? 0) + 1;
      break;
    case "echo":
    case "compare":
      web = observed(children["Deployment.apps/v1"].web, fault, web);
  }
  data.settings = names.map((name) => `${name}=${settings[name]}`).join("\n");
  const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data };
  return { status, children: [config, web] };
}

/** Plants the faults of a hook that reads the observed Deployment. */
function observed(before, fault, web) {
  if (before === undefined) return web;
  if (fault === "echo") { // also the defaults of the server
    const echoed = parse(stringify(before));
    echoed.spec.replicas = web.spec.replicas;
    echoed.spec.template.spec.containers[0].image = web.spec.template.spec.containers[0].image;
    return echoed;
  }
  if (!isDeepStrictEqual(before.spec, web.spec)) { // the server's defaults differ, too
    web.spec.minReadySeconds = before.metadata.generation;
  }
  return web;
}

function deployment({ image = "", replicas = 1 }) {
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "web", image }] } };
  return {
    apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web" },
    spec: { replicas, selector: { matchLabels: labels }, template },
  };
}

function finalize(request) {
  const gone = Object.keys(request.children["ConfigMap.v1"]).length === 0;
  switch (request.parent.metadata.name) {
    case "never-finalized":
      return { status: { deleting: true }, children: [], finalized: false };
    case "waits-for-what-it-keeps":
      return { status: { deleting: true }, children: sync(request).children, finalized: gone };
    case "random-when-deleted":
      return { status: { id: randomUUID() }, children: [], finalized: true };
  }
  return { status: { deleting: true }, children: [], finalized: gone };
}

serve(composite({ sync, finalize, customize }));
