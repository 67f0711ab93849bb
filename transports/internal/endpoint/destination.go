package endpoint

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// AllowedHostsAnnotation is set on a Secret by its owner. It lists the hosts to which the values of
// the Secret may be sent, besides the Services of its own namespace:
// "hooks.example.com, other.example.com:8443".
const AllowedHostsAnnotation = "hookloop.dev/allowed-hosts"

// DefaultClusterDomain is the domain of a cluster's Services, unless it is configured otherwise.
const DefaultClusterDomain = "cluster.local"

// anyNamespace in Policy.Unrestricted means all namespaces.
const anyNamespace = "*"

// Policy restricts where the values of Secrets may be sent. Without it, everyone who may create a
// controller could have any Secret sent to an address of their choice. The zero value applies the
// rules of [Destination] and makes no exception.
type Policy struct {
	// ClusterDomain is the domain of Services; empty means DefaultClusterDomain.
	ClusterDomain string
	// Unrestricted lists namespaces with Secrets that may be sent anywhere, as in Metacontroller; "*"
	// means all namespaces.
	Unrestricted []string
}

// Destination is where a hook is, and thus where the values of its Secrets would be sent. A value may
// go to a Service in the Secret's own namespace, or to a host that the Secret's annotation allows
// (see [AllowedHostsAnnotation]), over TLS or on loopback.
type Destination struct {
	// Hosts are the addresses of the hook as host:port. All of them must be allowed.
	Hosts []string
	// Plain is set if the hook is called without TLS.
	Plain bool
	Policy
}

// allows reports whether the values of a Secret, which is in a namespace and has an annotation, may be
// sent to the destination. All destinations are allowed from an unrestricted namespace. The
// namespace of the engine is like any other.
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

// refusal returns the error for a Secret that may not be sent to the destination. It does not tell
// whether the Secret exists.
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

// service is a Service's name in cluster DNS.
type service struct{ namespace, full string }

// service parses NAME.NAMESPACE, NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.DOMAIN, and names of
// single Pods below the latter two. It returns nil for other hosts. A trailing dot makes a name
// fully qualified.
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
		labels = strings.Split(bare, ".")
		if len(labels) != 2 {
			return nil
		}
	}
	if len(labels) < 2 ||
		slices.ContainsFunc(labels, func(l string) bool { return len(validation.IsDNS1123Label(l)) > 0 }) {
		return nil
	}
	return &service{labels[len(labels)-1], strings.Join(labels, ".") + ".svc." + p.domain() + "."}
}

// Resolved returns the name that should be resolved to reach a host. This is the full name of a
// Service if a Secret of the Service's namespace is sent to it: a search path, or a public domain
// with the same name as the namespace (such as dev or com), must not lead elsewhere. direct is then
// true, and no proxy may be used, because it would resolve the name itself. For any other host, it is
// the host.
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

// SendsSecrets reports whether the hook is sent the value of any Secret.
func (s *Security) SendsSecrets() bool { return len(s.secrets()) > 0 }

// secrets returns the Secrets with values that the hook receives.
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

// names reports whether an annotation lists a host. An entry without a port matches all ports.
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

// splitHost returns a host in lower case and its port, which may be empty.
func splitHost(host string) (name, port string) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
		port = ""
	}
	return lower(name), port
}

// lower returns a text with its ASCII letters in lower case. Unlike strings.ToLower, it does not
// map İ to i, as in DNS.
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
