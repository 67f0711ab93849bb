package hookprocess

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// security lists the fields that protect the connection to a hook's declared address. They are
// removed for a hook on loopback, which is called in plain text.
var security = []string{"caBundle", "clientTLS", "authorization", "basicAuth", "serverName"}

// Redirect makes a controller call its hooks at the given address (host:port), in plain text.
// Webhooks keep their path and gRPC hooks their mode. A hook that would dial in is called at the
// address instead.
func Redirect(controller *unstructured.Unstructured, address string) error {
	return eachHook(controller, func(hook map[string]any) error {
		if transport, ok := hook["transport"].(map[string]any); ok {
			if hook["webhook"] == nil {
				return fmt.Errorf("transport.name: %q is a transport that another program adds; "+
					"expected webhook or grpc, which this program can call at %s", transport["name"], address)
			}
			delete(hook, "transport")
		}
		if webhook, ok := hook["webhook"].(map[string]any); ok {
			path, err := pathOf(webhook)
			if err != nil {
				return err
			}
			webhook["url"] = "http://" + address + path
			remove(webhook, "service", "path")
			remove(webhook, security...)
		}
		if grpc, ok := hook["grpc"].(map[string]any); ok {
			grpc["target"], grpc["insecure"] = "dns:///"+address, true
			remove(grpc, "service", "worker")
			remove(grpc, security...)
		}
		return nil
	})
}

// Declared returns the loopback addresses (host:port) at which a controller expects its hooks.
func Declared(controller *unstructured.Unstructured) []string {
	var all []string
	_ = eachHook(controller, func(hook map[string]any) error { // the function returns no error
		address, _, _ := unstructured.NestedString(hook, "grpc", "target")
		address = address[strings.LastIndex(address, "/")+1:]
		if text, _, _ := unstructured.NestedString(hook, "webhook", "url"); text != "" {
			if u, err := url.Parse(text); err == nil {
				address = u.Host
			}
		}
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
			all = append(all, address)
		}
		return nil
	})
	return all
}

// eachHook calls f with each entry of spec.hooks.
func eachHook(controller *unstructured.Unstructured, f func(map[string]any) error) error {
	spec, _ := controller.Object["spec"].(map[string]any)
	hooks, _ := spec["hooks"].(map[string]any)
	for op, value := range hooks {
		hook, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if err := f(hook); err != nil {
			return fmt.Errorf("spec.hooks.%s: %w", op, err)
		}
	}
	return nil
}

// pathOf returns the path and the query of a webhook.
func pathOf(webhook map[string]any) (string, error) {
	if text, ok := webhook["url"].(string); ok && text != "" {
		u, err := url.Parse(text)
		if err != nil {
			return "", fmt.Errorf("webhook.url: %w", err)
		}
		return u.RequestURI(), nil
	}
	path, _ := webhook["path"].(string)
	return "/" + strings.TrimPrefix(path, "/"), nil
}

func remove(m map[string]any, keys ...string) {
	for _, key := range keys {
		delete(m, key)
	}
}
