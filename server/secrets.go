package server

import (
	"cmp"
	"os"
	"strings"

	"github.com/hookloop/hookloop/transports"
)

// resolver is the file with a Pod's search path.
const resolver = "/etc/resolv.conf"

// secrets returns the policy for sending values of Secrets.
func (p *process) secrets() transports.SecretPolicy {
	text, _ := os.ReadFile(resolver) // without the file the domain is unknown
	return transports.SecretPolicy{
		ClusterDomain: cmp.Or(p.ClusterDomain, clusterDomain(string(text))),
		Unrestricted:  p.UnrestrictedSecretNamespaces,
	}
}

// clusterDomain returns the cluster's domain from the entry "svc.DOMAIN" of a Pod's search path;
// empty if there is no such entry.
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
