package localplane

import "fmt"

// auditPolicy logs all writes without their bodies. It leaves out Leases and Events, which no test
// counts.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: "", resources: [events]}
  - {group: events.k8s.io, resources: [events]}
- level: Metadata
`

func (c *Cluster) etcdArgs() []string {
	client := fmt.Sprintf("https://127.0.0.1:%d", c.ports.etcd)
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.ports.peer)
	args := []string{
		"--data-dir=" + c.path("etcd-data"),
		"--cert-file=" + c.path("etcd.crt"), "--key-file=" + c.path("etcd.key"), "--trusted-ca-file=" + c.path("ca.crt"),
	}
	if c.assets.embedded {
		return append(args, "--listen-client-url="+client, "--listen-peer-url="+peer)
	}
	return append(args,
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer,
		"--client-cert-auth", "--unsafe-no-fsync", "--log-level=warn",
	)
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.api),
		"--advertise-address=127.0.0.1",
		fmt.Sprintf("--etcd-servers=https://127.0.0.1:%d", c.ports.etcd),
		"--etcd-cafile=" + c.path("ca.crt"),
		"--etcd-certfile=" + c.path("etcd-client.crt"),
		"--etcd-keyfile=" + c.path("etcd-client.key"),
		"--tls-cert-file=" + c.path("apiserver.crt"),
		"--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.path("sa.pub"),
		"--service-account-signing-key-file=" + c.path("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		// The endpoint reconciler would refuse a loopback address.
		"--endpoint-reconciler-type=none",
		"--audit-policy-file=" + c.path("audit-policy.yaml"),
		"--audit-log-path=" + c.path("audit.log"),
		"--audit-log-mode=blocking",
		"--audit-log-maxsize=0",
		"--enable-priority-and-fairness=true",
		"--shutdown-delay-duration=0s",
	}
	if c.assets.ControllerManager.IsZero() {
		// It would refuse all Pods, because nothing creates the ServiceAccount default.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return args
}

func (c *Cluster) managerArgs() []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.manager),
		"--kubeconfig=" + c.path("controller-manager.kubeconfig"),
		"--authentication-kubeconfig=" + c.path("controller-manager.kubeconfig"),
		"--authorization-kubeconfig=" + c.path("controller-manager.kubeconfig"),
		"--tls-cert-file=" + c.path("apiserver.crt"),
		"--tls-private-key-file=" + c.path("apiserver.key"),
		"--client-ca-file=" + c.path("ca.crt"),
		"--root-ca-file=" + c.path("ca.crt"),
		"--service-account-private-key-file=" + c.path("sa.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		// Controllers that need nodes or a cloud are off.
		"--controllers=*,-node-lifecycle-controller,-node-ipam-controller,-service-lb-controller,-node-route-controller," +
			"-cloud-node-lifecycle-controller,-horizontal-pod-autoscaler-controller",
	}
}
