package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// DefaultTimeout is how long a call may take where the spec names no timeout, or one that is not above 0.
const DefaultTimeout = 10 * time.Second

// config is the field webhook of a hook's spec (compatibility: Webhook).
type config struct {
	URL     string `json:"url"`
	Service *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Port      int32  `json:"port"`
		Protocol  string `json:"protocol"`
	} `json:"service"`
	Path      string `json:"path"`
	Timeout   string `json:"timeout"`
	Unmarshal string `json:"responseUnMarshallMode"`
	CABundle  *struct {
		Inline       string          `json:"inline"`
		SecretRef    json.RawMessage `json:"secretRef"`
		ConfigMapRef json.RawMessage `json:"configMapRef"`
	} `json:"caBundle"`
	Etag *struct {
		Enabled bool `json:"enabled"`
	} `json:"etag"`
	ClientTLS     json.RawMessage `json:"clientTLS"`
	Authorization json.RawMessage `json:"authorization"`
	BasicAuth     json.RawMessage `json:"basicAuth"`
}

// parse reads the field and refuses what this version does not do.
func parse(field json.RawMessage) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(field, c); err != nil {
		return nil, err
	}
	for name, set := range map[string]bool{
		"clientTLS": c.ClientTLS != nil, "authorization": c.Authorization != nil, "basicAuth": c.BasicAuth != nil,
		"etag":                  c.Etag != nil && c.Etag.Enabled,
		"caBundle.secretRef":    c.CABundle != nil && c.CABundle.SecretRef != nil,
		"caBundle.configMapRef": c.CABundle != nil && c.CABundle.ConfigMapRef != nil,
	} {
		if set {
			return nil, fmt.Errorf("%s: not supported by this version", name)
		}
	}
	return c, nil
}

// address is the URL to post to: url, or else service and path.
func (c *config) address() (*url.URL, error) {
	raw := c.URL
	if raw == "" {
		var err error
		if raw, err = c.serviceURL(); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("url: is no URL; expected http://host/path")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("url: %s is no URL of a hook; expected http://host/path or https://host/path", u.Redacted())
	}
	return u, nil
}

func (c *config) serviceURL() (string, error) {
	s := c.Service
	if s == nil {
		return "", errors.New("url: is missing; expected url, or service and path")
	}
	if s.Name == "" || s.Namespace == "" {
		return "", errors.New("service: name and namespace are needed")
	}
	protocol, port := s.Protocol, s.Port
	if protocol == "" {
		protocol = "http"
	}
	if port == 0 {
		port = 80
	}
	return fmt.Sprintf("%s://%s.%s:%d/%s", protocol, s.Name, s.Namespace, port, strings.TrimPrefix(c.Path, "/")), nil
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

// strict says whether an unknown field in an answer is an error: unset, it is for v2 and is not for v1.
func (c *config) strict(version string) (bool, error) {
	switch c.Unmarshal {
	case "":
		return version == "v2", nil
	case "strict", "loose":
		return c.Unmarshal == "strict", nil
	}
	return false, fmt.Errorf("responseUnMarshallMode: %q; expected loose or strict", c.Unmarshal)
}

func (c *config) tls() (*tls.Config, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CABundle == nil || c.CABundle.Inline == "" {
		return settings, nil
	}
	settings.RootCAs = x509.NewCertPool()
	if !settings.RootCAs.AppendCertsFromPEM([]byte(c.CABundle.Inline)) {
		return nil, errors.New("caBundle.inline: has no certificate; expected PEM")
	}
	return settings, nil
}
