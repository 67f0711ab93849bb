package verify

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	enginegrpc "github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/webhook"
)

// The transports, as reports name them.
const (
	overGRPC    = "gRPC"
	overWebhook = "webhook"
	overStream  = "stream"
)

// client asks over one transport and shows what came.
type client interface {
	ask(ctx context.Context, q *hook.Question) *reply
	close()
}

// target says how to call one operation.
type target struct {
	op      hook.Op
	address string
	timeout time.Duration
	// version and strict are those of a webhook; grpc is nil for one.
	version string
	strict  bool
	grpc    *grpcClient
	client  client
	// field is the spec of the engine's own client, without mode.
	field  map[string]any
	lookup hook.Lookup
}

func (t *target) over() string {
	if t.grpc != nil {
		return overGRPC
	}
	return overWebhook
}

func (t *target) close() { t.client.close() }

// open opens the engine's own hook. Mode is that of a gRPC hook.
func (t *target) open(s *subject, mode string) (*hook.Opened, error) {
	field := map[string]any{"timeout": t.timeout.String()}
	for key, value := range t.field {
		field[key] = value
	}
	opener := (&webhook.Transport{Secrets: anywhere, Sockets: everywhere}).Open
	if t.grpc != nil {
		field["mode"] = mode
		opener = (&enginegrpc.Transport{Build: "verify", Secrets: anywhere, Sockets: everywhere}).Open
	}
	data, err := json.Marshal(field)
	if err != nil {
		return nil, err
	}
	return opener(hook.Config{
		ControllerKind: s.kind.Declared, ControllerName: s.controller.Name(), ControllerUID: s.controller.UID(),
		Op: t.op, Kind: s.kind.ControllerKind, Version: t.version, Field: data, Lookup: t.lookup,
	})
}

// resolve returns the targets of the operations that have an address.
func resolve(s *subject, o Options) (map[hook.Op]*target, error) {
	if first := s.first(); len(o.Addresses) == 0 && s.plugged(first) != "" {
		return nil, usagef("--hook: is missing: %s, %q is a transport that another program adds; expected the address "+
			"of a webhook or a gRPC server to ask instead", s.transportField(first), s.plugged(first))
	}
	addresses, err := split(s.kind, o.Addresses)
	if err != nil {
		return nil, err
	}
	security, err := o.load()
	if err != nil {
		return nil, err
	}
	targets := map[hook.Op]*target{}
	for _, op := range s.kind.Operations {
		address := s.address(op, addresses)
		if address == "" {
			switch name := s.plugged(op); {
			case name != "":
				s.skipped = append(s.skipped, fmt.Sprintf("%s, %q is a transport that another program adds, and %s has no "+
					"address; expected --hook %s=ADDRESS of a webhook or a gRPC server", s.transportField(op), name, op, op))
			case s.requires(op):
				s.skipped = append(s.skipped, fmt.Sprintf("%s, which has no address; expected --hook %s=URL", op, op))
			}
			continue
		}
		targets[op], err = s.target(op, address, o, security)
		if err != nil {
			return nil, err
		}
		if name := s.plugged(op); name != "" {
			s.skipped = append(s.skipped, fmt.Sprintf(
				"%s, %q is a transport that another program adds: %s was asked instead",
				s.transportField(op), name, targets[op].address))
		}
	}
	return targets, nil
}

// plugged returns the name of the transport with which another program asks an operation; empty if
// this program can ask it itself.
func (s *subject) plugged(op hook.Op) string {
	h := s.hooks[op]
	if h == nil || h.Transport == nil {
		return ""
	}
	return h.Transport.Name
}

// transportField names the controller and the field of an operation's transport, for messages.
func (s *subject) transportField(op hook.Op) string {
	return fmt.Sprintf("%s %q: spec.hooks.%s.transport.name", s.kind.Declared, s.controller.Name(), op)
}

// everyOp is the key of an address without an operation.
const everyOp hook.Op = ""

// split parses [OPERATION=]ADDRESS.
func split(kind hook.Descriptor, list []string) (map[hook.Op]string, error) {
	if len(list) == 0 {
		return nil, usagef("--hook: is missing, expected an address such as 127.0.0.1:9443 or http://127.0.0.1:8080/sync")
	}
	addresses := map[hook.Op]string{}
	for _, text := range list {
		op := everyOp
		address := text
		if name, rest, named := strings.Cut(text, "="); named && !strings.ContainsAny(name, "/:") {
			op = hook.Op(name)
			address = rest
			if !slices.Contains(kind.Operations, op) {
				return nil, usagef("--hook: got operation %q, expected one of %v", name, kind.Operations)
			}
		}
		if _, twice := addresses[op]; twice {
			return nil, usagef("--hook: got %q after another address of the same operation, expected one", text)
		}
		addresses[op] = address
	}
	if first := kind.Operations[0]; addresses[first] == "" && addresses[everyOp] == "" {
		return nil, usagef("--hook: has no address of %s, expected one", first)
	}
	return addresses, nil
}

// address returns the address of an operation. One without an operation is that of all operations
// of a gRPC hook; the URL of a webhook is that of sync, with the paths of the controller for the
// others if it has no path itself.
func (s *subject) address(op hook.Op, addresses map[hook.Op]string) string {
	if own := addresses[op]; own != "" {
		return own
	}
	common := addresses[everyOp]
	isSocket := strings.HasPrefix(common, "unix://")
	if isSocket && isWebhook(s.hooks[s.first()]) && s.hooks[op] == nil {
		return "" // the controller has no path for it
	}
	if !isURL(common) {
		return common
	}
	u, err := url.Parse(common)
	if err == nil && (u.Path == "" || u.Path == "/") {
		if path := declaredPath(s.hooks[op]); path != "" {
			u.Path = path
			return u.String()
		}
	}
	if op == s.first() {
		return common
	}
	return ""
}

// declaredPath returns the path of a declared webhook.
func declaredPath(h *v1alpha1.Hook) string {
	if h == nil || h.Webhook == nil {
		return ""
	}
	if h.Webhook.URL != nil {
		if u, err := url.Parse(*h.Webhook.URL); err == nil && u.Scheme != "unix" {
			return u.Path
		}
	}
	if h.Webhook.Path != nil {
		return "/" + strings.TrimPrefix(*h.Webhook.Path, "/")
	}
	return ""
}

// isWebhook reports whether a declared hook has a webhook, which is no fallback of a gRPC hook.
func isWebhook(h *v1alpha1.Hook) bool { return h != nil && h.Webhook != nil && h.GRPC == nil }

// declaredHook returns the name of a declared hook at its server.
func declaredHook(h *v1alpha1.Hook) string {
	if h == nil || h.GRPC == nil {
		return ""
	}
	return h.GRPC.Hook
}

func isURL(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// target prepares the clients of one operation. It opens no connection.
func (s *subject) target(op hook.Op, address string, o Options, security *material) (*target, error) {
	t := &target{op: op, address: address, timeout: s.timeout(op, o), lookup: security.lookup}
	if isURL(address) {
		return t, s.webhook(t, o, security)
	}
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket {
		if isWebhook(s.hooks[op]) {
			return t, s.webhookAt(t, path, o, security)
		}
		t.field = security.spec(map[string]any{"target": address, "insecure": true})
		t.grpc = newSocketClient(path, t.timeout)
		t.client = t.grpc
		return t, nil
	}
	host, err := hostPort(address)
	if err != nil {
		return nil, err
	}
	named := declaredHook(s.hooks[op])
	t.field = security.spec(map[string]any{"target": address, "insecure": security.plain, "hook": named})
	t.grpc = newGRPCClient(host, t.timeout, security)
	t.grpc.named = named
	t.client = t.grpc
	return t, nil
}

func (s *subject) webhook(t *target, o Options, security *material) error {
	u, err := url.Parse(t.address)
	if err != nil || u.Host == "" {
		// not the address itself, which may hold a password
		return usagef("--hook: the address of %s is no URL, expected http://host/path or https://host/path", t.op)
	}
	if err := s.setVersion(t, o); err != nil {
		return err
	}
	t.field = security.spec(map[string]any{"url": t.address})
	s.setMode(t)
	u.User = nil
	t.client = newWebhookClient(t, security)
	t.address = u.String()
	return nil
}

// webhookAt prepares the clients of a webhook that listens on a unix socket. The controller has the
// path of its requests.
func (s *subject) webhookAt(t *target, socket string, o Options, security *material) error {
	if err := s.setVersion(t, o); err != nil {
		return err
	}
	path := declaredPath(s.hooks[t.op])
	t.field = security.spec(map[string]any{"url": t.address, "path": path})
	s.setMode(t)
	t.client = newSocketWebhookClient(t, socket, path)
	return nil
}

// setVersion sets the version of a webhook's JSON, and with it whether unknown fields are faults.
func (s *subject) setVersion(t *target, o Options) error {
	declared := s.hooks[t.op]
	t.version = cmp.Or(o.Version, "v1")
	if o.Version == "" && declared != nil {
		t.version = string(cmp.Or(declared.Version, v1alpha1.HookV1))
	}
	if t.version != "v1" && t.version != "v2" {
		return usagef("--hook-version: got %q, expected v1 or v2", t.version)
	}
	t.strict = t.version == "v2"
	return nil
}

// setMode sets how the engine reads unknown fields, if the controller says so.
func (s *subject) setMode(t *target) {
	if declared := s.hooks[t.op]; declared != nil && declared.Webhook != nil &&
		declared.Webhook.ResponseUnmarshalMode != "" {
		t.strict = declared.Webhook.ResponseUnmarshalMode == v1alpha1.UnmarshalStrict
		t.field["responseUnMarshallMode"] = string(declared.Webhook.ResponseUnmarshalMode)
	}
}

// hostPort returns the address to dial for a gRPC target with one address.
func hostPort(target string) (string, error) {
	rest := target
	if scheme, after, found := strings.Cut(target, ":///"); found {
		if scheme != "dns" && scheme != "passthrough" {
			return "", usagef("--hook: got %q, expected host:port, dns:///host:port or unix:///path", target)
		}
		rest = after
	} else if after, found := strings.CutPrefix(target, "dns:"); found {
		rest = after
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil {
		host = strings.Trim(rest, "[]")
		port = "443"
	}
	if host == "" || strings.ContainsAny(host, "/ ") {
		return "", usagef("--hook: got %q, expected host:port, dns:///host:port or the URL of a webhook", target)
	}
	return net.JoinHostPort(host, port), nil
}
