/**
 * Code that must compile, and mistakes that the compiler must find. It never runs; "npm test" fails
 * if a line under @ts-expect-error compiles.
 */
import {
  child,
  childrenOf,
  composite,
  ConditionStatus,
  decorator,
  dependency,
  mapper,
  requireRelated,
  serve,
  type DecorateRequest,
  type Group,
  type KubernetesKinds,
  type KubernetesObject,
  type MapResponse,
  type SyncRequest,
  type SyncResponse,
} from "../src/index.js";

interface Website extends KubernetesObject {
  spec: { replicas?: number; html?: Record<string, string> };
}

declare module "../src/kinds.js" {
  interface KubernetesKinds {
    "Website.demo.example.com/v1": Website;
  }
}

/** Observed objects of built-in kinds need no cast. */
export function observed(request: SyncRequest<Website>): (string | number | undefined)[] {
  const { parent, children, related } = request;
  const server = childrenOf(request, "Deployment.apps/v1")["web"];
  const replicas: number | undefined = server?.spec?.replicas;
  const name: string | undefined = server?.metadata.name;
  const ready: number | undefined = children["Deployment.apps/v1"]?.["web"]?.status?.readyReplicas;
  const page: string | undefined = related["configmaps.v1"]?.objects["pages"]?.data?.["index.html"];
  const path = related["ingresses.networking.k8s.io/v1"]?.objects["web"]?.spec?.rules?.[0]?.http?.paths[0]?.path;
  const site: number | undefined = childrenOf(request, "Website.demo.example.com/v1")["web"]?.spec.replicas;
  const other: Group = childrenOf(request, "Widget.example.com/v1");
  // @ts-expect-error readyReplicas is misspelt
  server?.status?.readyReplica;
  // @ts-expect-error replicas is misspelt
  children["Deployment.apps/v1"]?.["web"]?.spec?.replica;
  // @ts-expect-error data is misspelt
  related["configmaps.v1"]?.objects["pages"]?.daat;
  // @ts-expect-error spec is misspelt
  parent.sepc;
  // @ts-expect-error html is misspelt
  parent.spec.htlm;
  // @ts-expect-error requests are frozen
  parent.spec.replicas = 2;
  return [replicas, name, ready, page, path, site, Object.keys(other).length];
}

/** The compiler checks desired objects of built-in kinds. */
export function desired({
  parent: {
    spec,
    metadata: { name },
  },
}: SyncRequest<Website>): SyncResponse {
  const metadata = { name };
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [{ name: "web", image: "nginx" }] } };
  const selector = { matchLabels: labels };
  return {
    conditions: [
      { type: "Ready", status: ConditionStatus.True, reason: "AllUp" },
      { type: "Paid", status: "Unknown", reason: "NoInvoice" },
      // @ts-expect-error expected True, False or Unknown
      { type: "Paid", status: "Yes", reason: "Paid" },
    ],
    events: [
      { reason: "Scaled" },
      // @ts-expect-error expected Normal or Warning
      { reason: "Scaled", type: "Error" },
    ],
    children: [
      child({ apiVersion: "v1", kind: "ConfigMap", metadata, data: spec.html ?? {} }),
      child(
        { apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { replicas: spec.replicas, selector, template } },
        { dependsOn: [dependency("v1", "ConfigMap", name)] },
      ),
      child({ apiVersion: "example.com/v1", kind: "Widget", metadata, spec: { anything: 1 } }),
      { apiVersion: "example.com/v1", kind: "Widget", metadata },
      // @ts-expect-error data is misspelt
      child({ apiVersion: "v1", kind: "ConfigMap", metadata, daat: {} }),
      // @ts-expect-error replicas is misspelt
      child({ apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { repilcas: 1, selector, template } }),
      // @ts-expect-error replicas must be a number
      child({ apiVersion: "apps/v1", kind: "Deployment", metadata, spec: { replicas: "1", selector, template } }),
      // @ts-expect-error spec has no html of this type
      child({ apiVersion: "demo.example.com/v1", kind: "Website", metadata, spec: { html: 1 } }),
      // @ts-expect-error the kind is missing
      child({ apiVersion: "v1", metadata }),
    ],
  };
}

/** A requirement's resource determines the type of its objects. */
export function required(request: SyncRequest<Website>): SyncResponse {
  const response: SyncResponse = {};
  const rule = { name: "settings", apiVersion: "v1", resource: "configmaps" } as const;
  const settings = requireRelated(request, response, rule)?.["web"];
  // @ts-expect-error data is misspelt
  settings?.daat;
  return settings?.data?.["theme"] ? { ...response, status: { theme: settings.data["theme"] } } : response;
}

/** Attachments have the same types. */
export function decorated(request: DecorateRequest): { labels: Record<string, string> } {
  const phase: string = childrenOf(request, "Pod.v1")["web"]?.status?.phase ?? "Unknown";
  return { labels: { phase } };
}

/** The input of a map hook has the type that mapper names; a response needs its outputs. */
export const copies = mapper<Website, KubernetesKinds["PersistentVolumeClaim.v1"]>({
  map: (request) => {
    const name = request.input.metadata?.name ?? "";
    const pages: string[] = Object.keys(request.parent.spec.html ?? {});
    // @ts-expect-error spec has no such field
    request.input.spec?.volumeNmae;
    const observed: string | undefined = childrenOf(request, "ConfigMap.v1")[name]?.data?.["pages"];
    const data = { pages: observed ?? pages.join() };
    return { outputs: [child({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data })] };
  },
  finalize: ({ input }) => ({ outputs: [], finalized: input === null }),
  tombstone: (request) => {
    // @ts-expect-error the input is gone
    request.input;
    return { outputs: Object.values(childrenOf(request, "ConfigMap.v1")), resyncAfterSeconds: 60 };
  },
});
// @ts-expect-error outputs are missing
export const incomplete = mapper({ map: () => ({ events: [] }) });
// @ts-expect-error Hookloop computes the status
export const withStatus: MapResponse = { outputs: [], status: {} };

/** A type by key, for a variable of one's own. */
export const service: KubernetesKinds["Service.v1"] = { spec: { ports: [{ port: 80 }] } };

export const run = (): Promise<void> => serve(composite({ sync: desired }), decorator({ sync: decorated }));
