package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hookloop/hookloop/transports/internal/endpoint"
)

// config is the field webhook of a hook's spec. It has the fields of Metacontroller's Webhook.
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
	Etag      *etag  `json:"etag"`
	endpoint.Security
}

// address returns the URL of the hook: the field url if it is set, otherwise service and path.
func (c *config) address() (*url.URL, error) {
	raw := c.URL
	if raw == "" {
		var err error
		raw, err = c.serviceURL()
		if err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(raw)
	if err != nil { // the error would repeat the URL, with a password that may be in it
		return nil, errors.New("url: cannot be parsed; expected http://host/path or https://host/path")
	}
	if _, found := endpoint.SocketPath(raw); found {
		return u, nil // useSocket checks it
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("url: %q; expected http://host/path or https://host/path", redacted(u))
	}
	return u, nil
}

// useSocket returns the URL to request of a hook that listens on a unix socket, and the path of the
// socket, which is empty if the hook has an address. The field path is the path of the URL. Nobody
// can listen in or answer in place of the hook but those who can write in the folder, so that plain
// text is enough.
func (c *config) useSocket(address *url.URL, sockets endpoint.Sockets) (requested *url.URL, socket string, err error) {
	if address.Scheme != "unix" {
		return address, "", nil
	}
	socket, _ = endpoint.SocketPath(c.URL)
	if err := sockets.Check("url", socket); err != nil {
		return nil, "", err
	}
	if c.Security != (endpoint.Security{}) {
		return nil, "", errors.New(
			"url: a unix socket is plain text, which excludes caBundle, clientTLS, authorization and basicAuth")
	}
	requested, err = url.Parse("http://localhost/" + strings.TrimPrefix(c.Path, "/"))
	if err != nil {
		return nil, "", errors.New("path: cannot be parsed; expected a path such as /sync")
	}
	return requested, socket, nil
}

// serviceURL makes the URL from the fields service and path.
func (c *config) serviceURL() (string, error) {
	s := c.Service
	if s == nil {
		return "", errors.New("url: is missing; expected url, or service and path")
	}
	if s.Name == "" || s.Namespace == "" {
		return "", fmt.Errorf("service: name is %q and namespace %q; expected both", s.Name, s.Namespace)
	}
	protocol := s.Protocol
	port := s.Port
	if protocol == "" {
		protocol = "http"
	}
	if port == 0 {
		port = 80
	}
	return fmt.Sprintf("%s://%s.%s:%d/%s", protocol, s.Name, s.Namespace, port, strings.TrimPrefix(c.Path, "/")), nil
}

// redacted returns a URL that may be shown in messages, spans and metrics. It has no credentials,
// query or fragment.
func redacted(u *url.URL) string {
	bare := *u
	bare.User = nil
	bare.RawQuery = ""
	bare.ForceQuery = false
	bare.Fragment = ""
	bare.RawFragment = ""
	return bare.String()
}

// strict reports whether an unknown field makes an answer invalid. By default it does in v2, and not
// in v1.
func (c *config) strict(version string) (bool, error) {
	switch c.Unmarshal {
	case "":
		return version == "v2", nil
	case "strict", "loose":
		return c.Unmarshal == "strict", nil
	}
	return false, fmt.Errorf("responseUnMarshallMode: %q; expected loose or strict", c.Unmarshal)
}
