package grpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/transports/endpoint"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// config is the field grpc of a hook's spec.
type config struct {
	Target  string `json:"target"`
	Service *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Port      int32  `json:"port"`
	} `json:"service"`
	Mode          string             `json:"mode"`
	Timeout       string             `json:"timeout"`
	CABundle      *endpoint.CABundle `json:"caBundle"`
	ClientTLS     json.RawMessage    `json:"clientTLS"`
	Authorization json.RawMessage    `json:"authorization"`
	Insecure      bool               `json:"insecure"`
	ServerName    string             `json:"serverName"`
}

// parse reads the field and refuses what this version does not do.
func parse(field json.RawMessage) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(field, c); err != nil {
		return nil, err
	}
	switch c.Mode {
	case "", "Unary":
	case "Stream":
		return nil, errors.New("mode: Stream is not supported by this version; expected Unary")
	default:
		return nil, fmt.Errorf("mode: %q; expected Unary", c.Mode)
	}
	return c, endpoint.Unsupported(slices.Concat([]endpoint.Field{
		{Name: "clientTLS", Set: c.ClientTLS != nil},
		{Name: "authorization", Set: c.Authorization != nil},
	}, c.CABundle.Unsupported())...)
}

// schemes of targets that lead to addresses of the network.
var schemes = []string{"dns", "ipv4", "ipv6", "passthrough"}

// address is the target in gRPC's syntax. A Service is resolved by DNS, so that calls are balanced over its endpoints where it is headless.
func (c *config) address() (string, error) {
	s := c.Service
	switch {
	case (c.Target == "") == (s == nil):
		return "", errors.New("target: expected exactly one of target and service")
	case s == nil:
		return c.Target, checkTarget(c.Target)
	case s.Name == "" || s.Namespace == "" || s.Port < 1 || s.Port > 65535:
		return "", fmt.Errorf("service: name is %q, namespace %q and port %d; expected all three", s.Name, s.Namespace, s.Port)
	}
	return fmt.Sprintf("dns:///%s.%s:%d", s.Name, s.Namespace, s.Port), nil
}

// checkTarget refuses what gRPC would resolve in other ways than by the network, such as sockets of this machine.
func checkTarget(target string) error {
	scheme, rest, _ := strings.Cut(target, ":")
	named := strings.HasPrefix(rest, "/") || scheme == "unix" || scheme == "unix-abstract"
	if !named || slices.Contains(schemes, scheme) {
		return nil
	}
	return fmt.Errorf("target: %q; expected host:port or dns:///host:port", target)
}

// credentials are TLS, unless the spec says plain text in so many words.
func (c *config) credentials() (credentials.TransportCredentials, error) {
	if c.Insecure {
		if c.CABundle != nil || c.ServerName != "" {
			return nil, errors.New("insecure: excludes caBundle and serverName")
		}
		return insecure.NewCredentials(), nil
	}
	settings, err := c.CABundle.TLS(c.ServerName)
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(settings), nil
}
