package grpc

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// DefaultTimeout is how long a call may take where the spec names no timeout, or one that is not above 0.
const DefaultTimeout = 10 * time.Second

// config is the field grpc of a hook's spec.
type config struct {
	Target  string `json:"target"`
	Service *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Port      int32  `json:"port"`
	} `json:"service"`
	Mode     string `json:"mode"`
	Timeout  string `json:"timeout"`
	CABundle *struct {
		Inline       string          `json:"inline"`
		SecretRef    json.RawMessage `json:"secretRef"`
		ConfigMapRef json.RawMessage `json:"configMapRef"`
	} `json:"caBundle"`
	ClientTLS     json.RawMessage `json:"clientTLS"`
	Authorization json.RawMessage `json:"authorization"`
	Insecure      bool            `json:"insecure"`
	ServerName    string          `json:"serverName"`
}

// parse reads the field and refuses what this version does not do.
func parse(field json.RawMessage) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(field, c); err != nil {
		return nil, err
	}
	for name, set := range map[string]bool{
		"mode: Stream":                         c.Mode == "Stream",
		"clientTLS":                            c.ClientTLS != nil,
		"authorization":                        c.Authorization != nil,
		"caBundle: secretRef and configMapRef": c.CABundle != nil && (c.CABundle.SecretRef != nil || c.CABundle.ConfigMapRef != nil),
	} {
		if set {
			return nil, fmt.Errorf("%s: not supported by this version", name)
		}
	}
	return c, nil
}

// address is the target in gRPC's syntax. A Service is resolved by DNS, so that calls are balanced over its endpoints where it is headless.
func (c *config) address() (string, error) {
	switch s := c.Service; {
	case c.Target != "" && s == nil:
		return c.Target, nil
	case c.Target == "" && s != nil && s.Name != "" && s.Namespace != "" && s.Port > 0:
		return fmt.Sprintf("dns:///%s.%s:%d", s.Name, s.Namespace, s.Port), nil
	case s != nil && c.Target == "":
		return "", errors.New("service: name, namespace and port are needed")
	}
	return "", errors.New("target: expected exactly one of target and service")
}

func (c *config) timeout() (time.Duration, error) {
	if c.Timeout == "" {
		return DefaultTimeout, nil
	}
	d, err := time.ParseDuration(c.Timeout)
	if err != nil {
		return 0, fmt.Errorf("timeout: %q is no duration; expected for example 10s", c.Timeout)
	}
	if d <= 0 {
		return DefaultTimeout, nil
	}
	return d, nil
}

// credentials are TLS, unless the spec says plain text in so many words.
func (c *config) credentials() (credentials.TransportCredentials, error) {
	if c.Insecure {
		if c.CABundle != nil || c.ServerName != "" {
			return nil, errors.New("insecure: excludes caBundle and serverName")
		}
		return insecure.NewCredentials(), nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CABundle != nil && c.CABundle.Inline != "" {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM([]byte(c.CABundle.Inline)) {
			return nil, errors.New("caBundle.inline: has no certificate; expected PEM")
		}
	}
	return credentials.NewTLS(settings), nil
}
