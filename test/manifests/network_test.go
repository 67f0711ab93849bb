package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// TestNetworkPolicies select the engine's Pods, and open the gateway's port to labelled Pods only.
func TestNetworkPolicies(t *testing.T) {
	gateway := []string{"--set=gateway.enabled=true", "--set=gateway.tlsSecret=certificate"}
	for name, text := range map[string]string{"kustomize": kustomize(t, "gateway"), "chart": chart(t, gateway...)} {
		t.Run(name, func(t *testing.T) {
			all := objects(t, text)
			pod := workloadLabels(t, all)
			open := map[string]string{}
			for _, o := range all {
				if o.GetKind() != "NetworkPolicy" {
					continue
				}
				policy := &networkingv1.NetworkPolicy{}
				into(t, o.Object, policy)
				if !selects(t, policy.Spec.PodSelector, pod) {
					t.Errorf("NetworkPolicy %s does not select the engine's Pods", policy.Name)
				}
				for _, rule := range policy.Spec.Ingress {
					for _, port := range rule.Ports {
						open[port.Port.StrVal] += from(rule.From)
					}
				}
			}
			want := map[string]string{"metrics": "anywhere", "health": "anywhere", "gateway": "hookloop.dev/dials-in=true"}
			if diff := cmp.Diff(want, open); diff != "" {
				t.Errorf("open ports (-want +got):\n%s", diff)
			}
		})
	}
	if all := objects(t, chart(t)); count(all, "NetworkPolicy") > 0 {
		t.Error("the chart has a NetworkPolicy though no gateway is enabled")
	}
}

// TestNetworkPolicyOfHooks admits only the engine's Pods to hooks, for each way of installation.
func TestNetworkPolicyOfHooks(t *testing.T) {
	for name, c := range map[string]struct{ engine, hooks, system string }{
		"kustomize": {kustomize(t, "production"), kustomize(t, "hooks"), system},
		"chart":     {chart(t), chart(t, "--set=networkPolicy.hookNamespaces={chart-hooks}"), "chart-test"},
	} {
		t.Run(name, func(t *testing.T) {
			policy := &networkingv1.NetworkPolicy{}
			for _, o := range objects(t, c.hooks) {
				if o.GetKind() == "NetworkPolicy" {
					into(t, o.Object, policy)
				}
			}
			peer := policy.Spec.Ingress[0].From[0]
			namespace := map[string]string{corev1.LabelMetadataName: c.system}
			if !selects(t, *peer.PodSelector, workloadLabels(t, objects(t, c.engine))) ||
				!selects(t, *peer.NamespaceSelector, namespace) {
				t.Errorf("%v does not select the engine's Pods", peer)
			}
			if !selects(t, policy.Spec.PodSelector, map[string]string{"hookloop.dev/hook": "true"}) {
				t.Errorf("%v does not select hooks", policy.Spec.PodSelector)
			}
			if name == "kustomize" {
				k := kit.New(t)
				k.Apply(c.hooks)
			}
		})
	}
}

func count(all []*unstructured.Unstructured, kind string) (n int) {
	for _, o := range all {
		if o.GetKind() == kind {
			n++
		}
	}
	return n
}

// workloadLabels returns the labels of the engine's Pods.
func workloadLabels(t *testing.T, all []*unstructured.Unstructured) map[string]string {
	t.Helper()
	out, _, err := unstructured.NestedStringMap(workload(t, all).Object, "spec", "template", "metadata", "labels")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func selects(t *testing.T, s metav1.LabelSelector, has map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(has))
}

// from returns the text of a rule's peers.
func from(peers []networkingv1.NetworkPolicyPeer) string {
	if len(peers) == 0 {
		return "anywhere"
	}
	out := ""
	for _, p := range peers {
		out += metav1.FormatLabelSelector(p.PodSelector)
	}
	return out
}
