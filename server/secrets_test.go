package server

import "testing"

func TestClusterDomain(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"nameserver 10.0.0.10\nsearch home\n": "",
		"search hookloop.svc.k8s.test svc.k8s.test k8s.test\nnameserver 10.0.0.10\noptions ndots:5\n": "k8s.test",
	} {
		if got := clusterDomain(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
