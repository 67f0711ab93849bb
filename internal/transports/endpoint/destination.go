package endpoint

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllowedHostsAnnotation on a Secret names the hosts, apart from Services in its own namespace, to
// which hooks may have its values sent: "hooks.example.com, other.example.com:8443".
const AllowedHostsAnnotation = "hookloop.dev/allowed-hosts"

// DefaultClusterDomain ends the full names of Services where nothing else is known.
const DefaultClusterDomain = "cluster.local"

// anyNamespace among Policy.Unrestricted stands for all namespaces.
const anyNamespace = "*"

// Policy says where values of Secrets may go. Whoever may declare a controller could otherwise have
// any Secret sent to an address of theirs. The zero value is the rule without exceptions.
type Policy struct {
	// ClusterDomain ends the full names of Services; empty means DefaultClusterDomain.
	ClusterDomain string
	// Unrestricted are the namespaces whose Secrets may go anywhere, as Metacontroller lets them;
	// "*" stands for all.
	Unrestricted []string
}

// Destination is where a hook is asked.
type Destination struct {
	// Hosts are its addresses, each with its port: host:port. All of them must be allowed.
	Hosts []string
	// Plain is without TLS.
	Plain bool
	Policy
}

// allows reports whether values of a Secret with the given annotation may go there: to a Service in
// the Secret's own namespace; to hosts that the annotation names, over TLS or on the loopback;
// anywhere from an unrestricted namespace. The engine's own namespace is like any other.
func (d Destination) allows(namespace, annotation string) bool {
	if d.unrestricted(namespace) {
		return true
	}
	for _, host := range d.Hosts {
		if service := d.service(host); service == nil || service.namespace != namespace {
			if !names(annotation, host) || d.Plain && !loopback(host) {
				return false
			}
		}
	}
	return len(d.Hosts) > 0
}

// refusal is the error for a Secret whose values may not go there. It is the same whether or not
// there is such a Secret, which is nobody's business who may not use it.
func (d Destination) refusal(at, field string, from Reference) error {
	how := "over TLS"
	if d.Plain {
		how = "in plain text"
	}
	return fmt.Errorf(
		"%s%s: there is no Secret %s/%s that may be sent to %s %s; expected a Service in namespace %s (NAME.%s.svc), "+
			"or TLS and the host in the Secret's annotation %s, or the namespace in --unrestricted-secret-namespaces",
		at,
		field,
		from.Namespace,
		from.Name,
		strings.Join(d.Hosts, ", "),
		how,
		from.Namespace,
		from.Namespace,
		AllowedHostsAnnotation,
	)
}

func (p Policy) unrestricted(namespace string) bool {
	return slices.Contains(p.Unrestricted, namespace) || slices.Contains(p.Unrestricted, anyNamespace)
}

func (p Policy) domain() string {
	if p.ClusterDomain == "" {
		return DefaultClusterDomain
	}
	return strings.ToLower(strings.Trim(p.ClusterDomain, "."))
}

// service is a Service's name in the DNS of the cluster.
type service struct{ namespace, full string }

// service reads NAME.NAMESPACE, NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.DOMAIN, and the names of
// single Pods below the latter two; nil for other hosts. A name with a dot at its end is a whole
// one.
func (p Policy) service(host string) *service {
	name, _ := splitHost(host)
	if _, err := netip.ParseAddr(name); err == nil {
		return nil
	}
	bare, whole := strings.CutSuffix(name, ".")
	inDomain, full := strings.CutSuffix(bare, ".svc."+p.domain())
	inCluster, short := strings.CutSuffix(bare, ".svc")
	var labels []string
	switch {
	case full:
		labels = strings.Split(inDomain, ".")
	case whole:
		return nil
	case short:
		labels = strings.Split(inCluster, ".")
	default:
		if labels = strings.Split(bare, "."); len(labels) != 2 {
			return nil
		}
	}
	if len(labels) < 2 ||
		slices.ContainsFunc(labels, func(l string) bool { return len(validation.IsDNS1123Label(l)) > 0 }) {
		return nil
	}
	return &service{labels[len(labels)-1], strings.Join(labels, ".") + ".svc." + p.domain() + "."}
}

// Resolved is the name by which a host is to be resolved: for a Service in the namespace of a
// Secret that is sent there its whole name, so that no search path and no public domain (a
// namespace may be called dev, or com) leads elsewhere. Otherwise it is the host itself, and direct
// is false. direct also forbids a proxy, which would resolve the name in its own way.
func (s *Security) Resolved(p Policy, host string) (resolved string, direct bool) {
	found := p.service(host)
	if found == nil {
		return host, false
	}
	for _, from := range s.secrets() {
		if from.Namespace == found.namespace && !p.unrestricted(from.Namespace) {
			_, port := splitHost(host)
			return joinHost(found.full, port), true
		}
	}
	return host, false
}

// SendsSecrets reports whether values of Secrets go to the hook.
func (s *Security) SendsSecrets() bool { return len(s.secrets()) > 0 }

// secrets are the Secrets whose values go to the hook.
func (s *Security) secrets() []Reference {
	var out []Reference
	if s.Authorization != nil {
		out = append(out, s.Authorization.SecretRef)
	}
	if s.BasicAuth != nil {
		out = append(out, s.BasicAuth.SecretRef)
	}
	if s.ClientTLS != nil {
		out = append(out, s.ClientTLS.SecretRef)
	}
	return out
}

// names reports whether an annotation names a host. Without a port it names all ports.
func names(annotation, host string) bool {
	name, port := splitHost(host)
	entries := strings.FieldsFunc(annotation, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' })
	return slices.ContainsFunc(entries, func(entry string) bool {
		entryName, entryPort := splitHost(entry)
		return strings.TrimSuffix(entryName, ".") == strings.TrimSuffix(name, ".") && (entryPort == "" || entryPort == port)
	})
}

func loopback(host string) bool {
	name, _ := splitHost(host)
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// splitHost is a host in lower case and its port, which may be missing.
func splitHost(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), ""
	}
	return lower(name), port
}

// lower is a text with its ASCII letters in lower case. Other letters stay: İ is an i to
// strings.ToLower, and not in the names of DNS.
func lower(text string) string {
	out := []byte(text)
	for i, b := range out {
		if 'A' <= b && b <= 'Z' {
			out[i] = b - 'A' + 'a'
		}
	}
	return string(out)
}

func joinHost(name, port string) string {
	if port == "" {
		return name
	}
	return net.JoinHostPort(name, port)
}
