// The hook of the website controller: a Website becomes a ConfigMap with its pages, a Deployment
// that serves them, and a Service.
import { createHash } from "node:crypto";
import {
  child, childrenOf, composite, dependency, serve, type KubernetesObject, type SyncRequest, type SyncResponse,
} from "@hookloop/hook";

interface Website extends KubernetesObject {
  // unreachableSeconds is a bigint beyond 2^53.
  spec: { html?: Record<string, string>; replicas?: number; image?: string; unreachableSeconds?: number };
}

export function sync(request: SyncRequest<Website>): SyncResponse {
  const { name, namespace } = request.parent.metadata;
  const { html = {}, replicas = 1, image = "nginx:1.29-alpine", unreachableSeconds } = request.parent.spec;
  const labels = { app: name };
  const metadata = { name, labels };
  const servers = childrenOf(request, "Deployment.apps/v1")[name];
  const up = servers?.status?.readyReplicas ?? 0;
  const ready = servers !== undefined && up >= replicas;
  const annotations = { "website.example.com/pages": digest(html) };
  const volumeMounts = [{ name: "pages", mountPath: "/usr/share/nginx/html" }];
  const containers = [{ name: "web", image, ports: [{ containerPort: 80 }], volumeMounts }];
  const unreachable = { key: "node.kubernetes.io/unreachable", operator: "Exists", effect: "NoExecute" };
  const tolerations = unreachableSeconds === undefined
    ? undefined
    : [{ ...unreachable, tolerationSeconds: unreachableSeconds }];
  const template = {
    metadata: { labels, annotations },
    spec: { containers, tolerations, volumes: [{ name: "pages", configMap: { name } }] },
  };
  const spec = { replicas, selector: { matchLabels: labels }, template };
  const status = ready ? "True" : "False";
  const reason = ready ? "AllUp" : "Starting";
  return {
    status: { url: `http://${name}.${namespace}.svc`, replicas, ready: up },
    conditions: [{ type: "Ready", status, reason, message: `${up} of ${replicas} servers are ready` }],
    children: [
      child({ apiVersion: "v1", kind: "ConfigMap", metadata, data: html }),
      child({ apiVersion: "apps/v1", kind: "Deployment", metadata, spec },
        { dependsOn: [dependency("v1", "ConfigMap", name)] }),
      child({ apiVersion: "v1", kind: "Service", metadata, spec: { selector: labels, ports: [{ port: 80 }] } },
        { dependsOn: [dependency("apps/v1", "Deployment", name)] }),
    ],
  };
}

/** Returns a hash of the pages. It is an annotation of the Pods, so that new pages replace them. */
function digest(html: Readonly<Record<string, string>>): string {
  const pages = Object.keys(html).sort().map((name) => `${name}\0${html[name]}\0`);
  return createHash("sha256").update(pages.join("")).digest("hex");
}

if (import.meta.filename === process.argv[1]) {
  await serve(composite({ sync }));
}
