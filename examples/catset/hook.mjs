// A custom StatefulSet: numbered Pods, each with its own volumes, created in order, updated one at a time, deleted in reverse.

const index = (name) => Number(name.slice(name.lastIndexOf("-") + 1));
const ready = (pod) => pod?.status?.conditions?.some((c) => c.type === "Ready" && c.status === "True");

export function sync({ parent, children }) {
  const { replicas, template, volumeClaimTemplates = [], podManagementPolicy } = parent.spec;
  const observed = children["Pod.v1"];
  const pods = [];
  const claims = [];
  let waiting = false; // a Pod is made when all before it are ready; those that are there stay
  for (let i = 0; i < replicas; i++) {
    const name = `${parent.metadata.name}-${i}`;
    if (observed[name] || !waiting) {
      pods.push(pod(name, template, volumeClaimTemplates));
      claims.push(...volumeClaimTemplates.map((c) => claim(name, c)));
    }
    waiting ||= podManagementPolicy !== "Parallel" && !ready(observed[name]);
  }
  const all = Object.values(observed);
  return {
    status: { replicas: all.length, readyReplicas: all.filter(ready).length },
    children: [...claims, ...pods],
  };
}

// Pods are deleted one at a time, the last one first; volumes stay as long as the parent.
export function finalize({ parent, children }) {
  const left = Object.keys(children["Pod.v1"]).sort((a, b) => index(a) - index(b));
  const { template, volumeClaimTemplates = [] } = parent.spec;
  return {
    status: { replicas: left.length, readyReplicas: left.length },
    children: left.slice(0, -1).map((name) => pod(name, template, volumeClaimTemplates)),
    finalized: left.length === 0,
  };
}

const pod = (name, { metadata, spec }, claims) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { ...metadata, name },
  spec: {
    ...spec,
    hostname: name,
    volumes: [
      ...(spec.volumes ?? []),
      ...claims.map((c) => ({ name: c.metadata.name, persistentVolumeClaim: { claimName: `${c.metadata.name}-${name}` } })),
    ],
  },
});

const claim = (pod, { metadata, spec }) => ({
  apiVersion: "v1",
  kind: "PersistentVolumeClaim",
  metadata: { name: `${metadata.name}-${pod}` },
  spec,
});
