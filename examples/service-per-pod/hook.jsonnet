// A Service for each Pod of a StatefulSet with the annotation service-per-pod-port.
{
  sync(request):: {
    local set = request.object,
    attachments: [
      {
        local pod = '%s-%d' % [set.metadata.name, i],
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: pod, labels: { app: 'service-per-pod' } },
        spec: {
          selector: { 'statefulset.kubernetes.io/pod-name': pod },
          ports: [{ port: std.parseInt(set.metadata.annotations['service-per-pod-port']) }],
        },
      }
      for i in std.range(0, set.spec.replicas - 1)
    ],
  },

  // The StatefulSet is deleted, or has lost the annotation: it is released when all Services are gone.
  finalize(request):: {
    attachments: [],
    finalized: std.length(request.attachments['Service.v1']) == 0,
  },
}
