package endpoint

import "testing"

// TestWhereSecretsMayGo checks the destinations of Secrets in namespace hooks.
func TestWhereSecretsMayGo(t *testing.T) {
	const annotation = "API.example.com, other.example.com:8443 127.0.0.1 [::1]:80 localhost"
	tests := []struct {
		name, host string
		plain, tls bool
	}{
		{"a Service beside the Secret", "web.hooks:80", true, true},
		{"in capitals", "WEB.Hooks.SVC:80", true, true},
		{"with svc", "web.hooks.svc:8080", true, true},
		{"by its whole name", "web.hooks.svc.cluster.local:80", true, true},
		{"by its whole name and a dot", "web.hooks.svc.cluster.local.:80", true, true},
		{"a Pod of it", "pod-0.web.hooks.svc:80", true, true},
		{"a Service elsewhere", "web.shop.svc:80", false, false},
		{"a Service elsewhere, named like one here", "web.hooks.shop.svc:80", false, false},
		{"a Pod elsewhere, of a Service named like the namespace", "web.hooks.svc.shop.svc:80", false, false},
		{"a public domain, with a dot", "web.hooks.:80", false, false},
		{"a public domain that begins like a Service", "web.hooks.svc.evil.com:80", false, false},
		{"another cluster's domain", "web.hooks.svc.other.local:80", false, false},
		{"a public domain that ends like a Service", "web.evil.hooks:80", false, false},
		{"one label", "hooks:80", false, false},
		{"no name", ".hooks:80", false, false},
		{"what another parser takes for a query", "evil.com?.hooks.svc:80", false, false},
		{"what another parser takes for a fragment", "evil.com#.hooks.svc:80", false, false},
		{"what another parser takes for a user", "x@evil.hooks.svc:80", false, false},
		{"an address", "10.0.0.1:80", false, false},
		{"a host that is named", "api.example.com:443", false, true},
		{"with a dot", "api.example.com.:443", false, true},
		{"at a port that is named", "other.example.com:8443", false, true},
		{"at another port", "other.example.com:443", false, false},
		{"below a host that is named", "x.api.example.com:443", false, false},
		{"not named", "example.com:443", false, false},
		{"like one that is named, with a letter whose lower case is ASCII", "ap\u0130.example.com:443", false, false},
		{"like a Service here, with such a letter", "web.hoo\u212as.svc:80", false, false},
		{"the loopback, which is named", "127.0.0.1:8080", true, true},
		{"by name", "localhost:8080", true, true},
		{"of IPv6, at its port", "[::1]:80", true, true},
		{"of IPv6, at another", "[::1]:81", false, false},
		{"the loopback, which is not named", "127.0.0.2:80", false, false},
	}
	for _, c := range tests {
		for plain, want := range map[bool]bool{true: c.plain, false: c.tls} {
			d := Destination{Hosts: []string{c.host}, Plain: plain}
			if got := d.allows("hooks", annotation); got != want {
				t.Errorf("%s, %s, in plain text %t: allowed %t, want %t", c.name, c.host, plain, got, want)
			}
		}
	}
}

func TestPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		Destination
		want bool
	}{
		"an unrestricted namespace": {
			Destination{Hosts: []string{"evil.com:80"}, Plain: true, Policy: Policy{Unrestricted: []string{"hooks"}}},
			true,
		},
		"all namespaces": {
			Destination{Hosts: []string{"evil.com:80"}, Plain: true, Policy: Policy{Unrestricted: []string{"*"}}},
			true,
		},
		"another namespace": {
			Destination{Hosts: []string{"evil.com:80"}, Policy: Policy{Unrestricted: []string{"shop"}}},
			false,
		},
		"the cluster's domain": {
			Destination{Hosts: []string{"web.hooks.svc.k8s.test:80"}, Policy: Policy{ClusterDomain: "K8s.test."}},
			true,
		},
		"not the default one then": {
			Destination{Hosts: []string{"web.hooks.svc.cluster.local:80"}, Policy: Policy{ClusterDomain: "k8s.test"}},
			false,
		},
		"one of two addresses is not": {Destination{Hosts: []string{"web.hooks:80", "10.0.0.1:80"}}, false},
		"no address":                  {Destination{}, false},
	} {
		if got := c.allows("hooks", ""); got != c.want {
			t.Errorf("%s: allowed %t, want %t", name, got, c.want)
		}
	}
}

// TestServicesAreResolvedByTheirWholeName prevents a name with two labels from resolving to a
// public domain.
func TestServicesAreResolvedByTheirWholeName(t *testing.T) {
	s := Security{Authorization: &Authorization{SecretRef: Reference{Name: "token", Namespace: "dev"}}}
	for host, want := range map[string]string{
		"web.dev:80":                   "web.dev.svc.cluster.local.:80",
		"Web.Dev.svc:80":               "web.dev.svc.cluster.local.:80",
		"web.dev.svc.cluster.local:80": "web.dev.svc.cluster.local.:80",
		"pod.web.dev.svc:80":           "pod.web.dev.svc.cluster.local.:80",
		"web.dev.:80":                  "web.dev.:80",
		"web.shop:80":                  "web.shop:80",
		"10.0.0.1:80":                  "10.0.0.1:80",
	} {
		if got, direct := s.Resolved(Policy{}, host); got != want || direct != (got != host) {
			t.Errorf("%s: resolved as %s (direct %t), want %s", host, got, direct, want)
		}
	}
	if got, direct := s.Resolved(Policy{Unrestricted: []string{"dev"}}, "web.dev:80"); got != "web.dev:80" || direct {
		t.Errorf("unrestricted: resolved as %s", got)
	}
	if got, _ := (&Security{}).Resolved(Policy{}, "web.dev:80"); got != "web.dev:80" {
		t.Errorf("without credentials: resolved as %s", got)
	}
}
