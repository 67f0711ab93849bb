// The hook of the website controller: a Website becomes a ConfigMap with its pages, a Deployment that serves them, and a Service.
import { createHash } from "node:crypto";
import { child, childrenOf, composite, dependency, serve, type KubernetesObject, type SyncResponse, type SyncRequest } from "@hookloop/hook";

interface Website extends KubernetesObject {
  spec: { html?: Record<string, string>; replicas?: number; image?: string };
}

interface Deployment extends KubernetesObject {
  status?: { readyReplicas?: number };
}

export function sync(request: SyncRequest<Website>): SyncResponse {
  const { metadata: { name, namespace }, spec: { html = {}, replicas = 1, image = "nginx:1.29-alpine" } } = request.parent;
  const labels = { app: name };
  const metadata = { name, labels };
  const observed = childrenOf<Deployment>(request, "Deployment.apps/v1")[name];
  const up = observed?.status?.readyReplicas ?? 0;
  const ready = observed !== undefined && up >= replicas;
  const pages = { apiVersion: "v1", kind: "ConfigMap", metadata, data: html };
  const servers = { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: {
    replicas,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels, annotations: { "website.example.com/pages": digest(html) } },
      spec: {
        containers: [{ name: "web", image, ports: [{ containerPort: 80 }], volumeMounts: [{ name: "pages", mountPath: "/usr/share/nginx/html" }] }],
        volumes: [{ name: "pages", configMap: { name } }],
      },
    },
  } };
  const service = { apiVersion: "v1", kind: "Service", metadata, spec: { selector: labels, ports: [{ port: 80 }] } };
  return {
    status: { url: `http://${name}.${namespace}.svc`, replicas, ready: up },
    conditions: [{
      type: "Ready", status: ready ? "True" : "False", reason: ready ? "AllUp" : "Starting", message: `${up} of ${replicas} servers are ready`,
    }],
    children: [
      pages,
      child(servers, { dependsOn: [dependency("v1", "ConfigMap", name)] }),
      child(service, { dependsOn: [dependency("apps/v1", "Deployment", name)] }),
    ],
  };
}

/** A hash of the pages. It stands in the Pods' template, so that new pages make new Pods. */
function digest(html: Readonly<Record<string, string>>): string {
  return createHash("sha256").update(Object.keys(html).sort().map((name) => `${name}\0${html[name]}\0`).join("")).digest("hex");
}

if (import.meta.filename === process.argv[1]) {
  await serve(composite({ sync }));
}
