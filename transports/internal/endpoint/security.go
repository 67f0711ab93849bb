package endpoint

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// Security says whom to trust and how to authenticate: it has the fields caBundle, clientTLS,
// authorization and basicAuth of a hook, or of an entry of endpointConfigs.
type Security struct {
	CABundle      *CABundle      `json:"caBundle"`
	ClientTLS     *ClientTLS     `json:"clientTLS"`
	Authorization *Authorization `json:"authorization"`
	BasicAuth     *BasicAuth     `json:"basicAuth"`
}

// Reference names a Secret or ConfigMap, and a key if it means one value.
type Reference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Key       string `json:"key"`
}

// CABundle holds the CA certificates to trust instead of the system's. Exactly one of its fields
// should be set.
type CABundle struct {
	Inline       string     `json:"inline"`
	SecretRef    *Reference `json:"secretRef"`
	ConfigMapRef *Reference `json:"configMapRef"`
}

// ClientTLS is the engine's client certificate.
type ClientTLS struct {
	SecretRef     Reference `json:"secretRef"`
	CertKey       string    `json:"certKey"`
	PrivateKeyKey string    `json:"privateKeyKey"`
}

// Authorization is the header Authorization: a type, and credentials from a Secret.
type Authorization struct {
	Type      string    `json:"type"`
	SecretRef Reference `json:"secretRef"`
}

// BasicAuth is a user name and a password from a Secret.
type BasicAuth struct {
	SecretRef   Reference `json:"secretRef"`
	UsernameKey string    `json:"usernameKey"`
	PasswordKey string    `json:"passwordKey"`
}

// empty reports whether no field is set.
func (s *Security) empty() bool { return *s == Security{} }

// Choose returns the Security to use for a hook at a host. These are the hook's own fields if any of
// them is set, and otherwise the first entry of endpointConfigs for the host; the two are never
// merged. host may lack a port, which is then defaultPort. at is the path of the chosen entry, which
// messages should put before the name of a field; it is empty for the hook's own fields.
func Choose(
	own Security,
	endpointConfigs json.RawMessage,
	host, defaultPort string,
) (chosen Security, at string, err error) {
	if !own.empty() || len(endpointConfigs) == 0 {
		return own, "", nil
	}
	var entries []struct {
		Host string `json:"host"`
		Security
	}
	if err := json.Unmarshal(endpointConfigs, &entries); err != nil {
		return own, "", fmt.Errorf("endpointConfigs: %w", err)
	}
	for i, e := range entries {
		if withPort(e.Host, defaultPort) == withPort(host, defaultPort) {
			return e.Security, fmt.Sprintf("endpointConfigs[%d].", i), nil
		}
	}
	return own, "", nil
}

// withPort returns a host in lower case, with the default port if it has none.
func withPort(host, defaultPort string) string {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
		port = defaultPort
	}
	return net.JoinHostPort(strings.ToLower(name), port)
}
