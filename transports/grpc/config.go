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
	Hook       string `json:"hook"`
	Mode       string `json:"mode"`
	Timeout    string `json:"timeout"`
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName"`
	endpoint.Security

	// specAuthority is the host and port of the spec, if the transport dials another name.
	specAuthority string
	// dialSocket connects to the unix socket of the target; nil if the target has an address.
	dialSocket func(context.Context) (net.Conn, error)
}

// The modes. Without one, the stream is used if the hook serves it, and unary calls otherwise.
const (
	streamMode = "Stream"
	unaryMode  = "Unary"
)

// parse decodes and checks the field grpc.
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

// schemes lists the schemes that a target may have.
var schemes = []string{"dns", "ipv4", "ipv6", "passthrough"}

// address returns the target in gRPC's syntax. A Service is resolved by DNS, so that the calls to a
// headless Service are balanced over its endpoints.
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

// checkTarget rejects targets with a scheme that is not supported. It also rejects names in a list of
// addresses: they would be resolved when they are dialled, and the rules for names would not apply.
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

// socketTarget is given to gRPC in place of a unix socket, which useSocket dials. Calls have its host
// as their authority; this is gRPC's own rule for unix sockets.
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

// keyring returns the TLS configuration and credentials, and the address to dial. TLS is required
// unless the spec sets insecure. A Service that gets the value of a Secret is dialled by its full
// name; c.specAuthority then keeps the name of the spec.
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
