package server

import (
	"cmp"
	"os"
	"strings"

	"github.com/hookloop/hookloop/internal/transports/endpoint"
)

// resolver is where a Pod finds its search path.
const resolver = "/etc/resolv.conf"

// secrets says where values of Secrets may go.
func (p *process) secrets() endpoint.Policy {
	text, _ := os.ReadFile(resolver) // what cannot be read says nothing about the cluster
	return endpoint.Policy{
		ClusterDomain: cmp.Or(p.ClusterDomain, clusterDomain(string(text))),
		Unrestricted:  p.UnrestrictedSecretNamespaces,
	}
}

// clusterDomain finds the cluster's domain in a Pod's search path, which has an entry "svc.DOMAIN";
// empty if there is none.
func clusterDomain(resolvConf string) string {
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, entry := range fields[1:] {
			if domain, found := strings.CutPrefix(entry, "svc."); found {
				return domain
			}
		}
	}
	return ""
}
