// Copies a Secret to every namespace with certain labels, and keeps the copies up to date.

export function customize({ parent }) {
  return {
    relatedResources: [
      { apiVersion: "v1", resource: "secrets", namespace: parent.spec.sourceNamespace, names: [parent.spec.sourceName] },
      { apiVersion: "v1", resource: "namespaces", labelSelector: parent.spec.targetNamespaceLabelSelector },
    ],
  };
}

export function sync({ parent, children, related }) {
  const { sourceName, sourceNamespace } = parent.spec;
  const source = related["Secret.v1"][`${sourceNamespace}/${sourceName}`];
  const targets = Object.values(related["Namespace.v1"])
    .filter((n) => !n.metadata.deletionTimestamp && n.metadata.name !== sourceNamespace)
    .map((n) => n.metadata.name);
  return {
    status: { wanted: targets.length, copies: Object.keys(children["Secret.v1"]).length },
    children: source ? targets.map((namespace) => copy(source, namespace)) : [],
  };
}

const copy = ({ metadata, type, data }, namespace) => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: metadata.name, namespace },
  type,
  data,
});
