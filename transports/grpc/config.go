package grpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
)

// config is the field grpc of a hook's spec.
type config struct {
	Target  string `json:"target"`
	Service *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Port      int32  `json:"port"`
	} `json:"service"`
	Worker     string `json:"worker"`
	Mode       string `json:"mode"`
	Timeout    string `json:"timeout"`
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName"`
	endpoint.Security

	// specAuthority is the host and port in the spec if another name is dialled.
	specAuthority string
	// dialSocket connects to the unix socket of the target; nil if the target has an address.
	dialSocket func(context.Context) (net.Conn, error)
}

// The modes. The default is the stream if the hook implements it, else unary calls.
const (
	streamMode = "Stream"
	unaryMode  = "Unary"
)

// parse decodes the field.
func parse(field json.RawMessage) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(field, c); err != nil {
		return nil, err
	}
	if c.Mode != "" && c.Mode != unaryMode && c.Mode != streamMode {
		return nil, fmt.Errorf("mode: %q; expected %s or %s", c.Mode, streamMode, unaryMode)
	}
	return c, nil
}

var errOneOf = errors.New("target: expected exactly one of target, service and worker")

// schemes are the supported schemes of targets: network addresses only.
var schemes = []string{"dns", "ipv4", "ipv6", "passthrough"}

// address returns the target in gRPC's syntax. A Service is resolved by DNS, so that calls to a
// headless one are balanced over its endpoints.
func (c *config) address() (string, error) {
	s := c.Service
	switch {
	case (c.Target == "") == (s == nil):
		return "", errOneOf
	case s == nil:
		return c.Target, checkTarget(c.Target)
	case s.Name == "" || s.Namespace == "" || s.Port < 1 || s.Port > 65535:
		return "", fmt.Errorf("service: name is %q, namespace %q and port %d; expected all three", s.Name,
			s.Namespace, s.Port)
	}
	return fmt.Sprintf("dns:///%s.%s:%d", s.Name, s.Namespace, s.Port), nil
}

// checkTarget rejects targets that gRPC would not resolve over the network, such as local sockets.
// It also rejects names in lists of addresses, because these would be resolved at dial time without
// the rules for names.
func checkTarget(target string) error {
	for _, address := range targetAddresses(target) {
		if _, err := netip.ParseAddrPort(address); err != nil {
			return fmt.Errorf("target: %q has %q; expected IP addresses, or dns:///host:port", target, address)
		}
	}
	if _, found := endpoint.SocketPath(target); found {
		return nil // the transport checks its folder
	}
	scheme, rest, _ := strings.Cut(target, ":")
	named := strings.HasPrefix(rest, "/") || scheme == "unix-abstract"
	if !named || slices.Contains(schemes, scheme) {
		return nil
	}
	return fmt.Errorf("target: %q; expected host:port, dns:///host:port or unix:///path", target)
}

// socketTarget is dialled in place of a unix socket. Its host is the authority of calls, as gRPC has
// it for unix sockets.
const socketTarget = "passthrough:///localhost"

// useSocket makes connections to the unix socket of the target, if it names one. Nobody can listen
// in or answer in place of the hook but those who can write in the folder, so that plain text is
// enough. It returns the target to dial.
func (c *config) useSocket(sockets endpoint.Sockets) (string, error) {
	path, found := endpoint.SocketPath(c.Target)
	if !found {
		return c.Target, nil
	}
	if err := sockets.Check("target", path); err != nil {
		return "", err
	}
	if c.Security != (endpoint.Security{}) || c.ServerName != "" {
		return "", errors.New(
			"target: a unix socket is plain text, which excludes caBundle, clientTLS, authorization and serverName")
	}
	c.Insecure = true
	c.specAuthority = "localhost"
	c.dialSocket = func(ctx context.Context) (net.Conn, error) { return sockets.Dial(ctx, path) }
	return socketTarget, nil
}

// keyring returns the TLS configuration and credentials. TLS is required unless the spec sets
// insecure. It also returns the address to dial: a Service that receives a Secret is dialled by its
// full name, and c.specAuthority keeps the name in the spec.
func (c *config) keyring(s hook.Config, address string, secrets endpoint.Policy) (*endpoint.Keyring, string, error) {
	if c.Insecure {
		if c.Security != (endpoint.Security{}) || c.ServerName != "" {
			return nil, "", errors.New(
				"insecure: is plain text, which excludes caBundle, clientTLS, authorization and serverName")
		}
		keyring, err := endpoint.NewKeyring(endpoint.Security{}, "", "", endpoint.Destination{}, s)
		return keyring, address, err
	}
	host := address[strings.LastIndex(address, "/")+1:]
	security, at, err := endpoint.Choose(c.Security, s.EndpointConfigs, host, "443")
	if err != nil {
		return nil, "", err
	}
	to := endpoint.Destination{Hosts: targetAddresses(address), Policy: secrets}
	if to.Hosts == nil {
		to.Hosts = []string{authority(address)}
		if security.SendsSecrets() { // dial the checked name with the local resolver
			resolved, _ := security.Resolved(secrets, to.Hosts[0])
			c.specAuthority = to.Hosts[0]
			address = "dns:///" + resolved
		}
	}
	keyring, err := endpoint.NewKeyring(security, at, c.ServerName, to, s)
	return keyring, address, err
}
