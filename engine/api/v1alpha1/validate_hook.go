package v1alpha1

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// placedHook is a hook and where the spec has it.
type placedHook struct {
	name string
	hook *Hook
	at   *field.Path
}

// hooks are the declared hooks, in the order of their names in this list.
func (c *CompositeController) hooks() []placedHook {
	h := c.Spec.Hooks
	if h == nil {
		return nil
	}
	return placed(map[string]*Hook{
		"customize": h.Customize, "finalize": h.Finalize, "postUpdateChild": h.PostUpdateChild,
		"preUpdateChild": h.PreUpdateChild, "sync": h.Sync,
	}, "customize", "finalize", "postUpdateChild", "preUpdateChild", "sync")
}

// hooks are the declared hooks, in the order of their names in this list.
func (d *DecoratorController) hooks() []placedHook {
	h := d.Spec.Hooks
	if h == nil {
		return nil
	}
	return placed(map[string]*Hook{"customize": h.Customize, "finalize": h.Finalize, "sync": h.Sync}, "customize",
		"finalize", "sync")
}

// hooks are the declared hooks, in the order of their names in this list.
func (m *MapController) hooks() []placedHook {
	h := m.Spec.Hooks
	if h == nil {
		return nil
	}
	return placed(map[string]*Hook{
		"customize": h.Customize, "finalize": h.Finalize, "map": h.Map, "tombstone": h.Tombstone,
	}, "customize", "finalize", "map", "tombstone")
}

func placed(hooks map[string]*Hook, names ...string) []placedHook {
	var out []placedHook
	for _, name := range names {
		if hooks[name] != nil {
			out = append(out, placedHook{name, hooks[name], specPath.Child("hooks", name)})
		}
	}
	return out
}

func validateHooks(hooks []placedHook) field.ErrorList {
	var errs field.ErrorList
	for _, h := range hooks {
		errs = append(errs, h.hook.validate(h.at)...)
	}
	return errs
}

func (h *Hook) validate(at *field.Path) field.ErrorList {
	errs := h.validateTransports(at)
	if h.Version != "" && h.Version != HookV1 && h.Version != HookV2 {
		errs = append(errs, field.NotSupported(at.Child("version"), h.Version, []HookVersion{HookV1, HookV2}))
	}
	if h.Webhook != nil {
		errs = append(errs, h.Webhook.validate(at.Child("webhook"))...)
	}
	if h.GRPC != nil {
		errs = append(errs, h.GRPC.validate(at.Child("grpc"))...)
	}
	if h.InProcess != nil {
		errs = append(errs, h.InProcess.validate(at.Child("inproc"))...)
	}
	if h.Transport != nil {
		errs = append(errs, h.Transport.validate(at.Child("transport"))...)
	}
	return errs
}

// validateTransports accepts one transport, or grpc or a plugged one with webhook as its fallback.
func (h *Hook) validateTransports(at *field.Path) field.ErrorList {
	const expected = "exactly one of webhook, grpc, inproc and transport must be set, " +
		"or grpc or transport with webhook as its fallback"
	main := 0
	for _, set := range []bool{h.GRPC != nil, h.Transport != nil, h.InProcess != nil} {
		if set {
			main++
		}
	}
	switch {
	case main == 0 && h.Webhook == nil:
		return field.ErrorList{field.Required(at, expected)}
	case main > 1, h.InProcess != nil && h.Webhook != nil:
		return field.ErrorList{field.Forbidden(at, expected)}
	}
	return nil
}

func (w *Webhook) validate(at *field.Path) field.ErrorList {
	errs := w.validateAddress(at)
	errs = append(errs, w.Timeout.validate(at.Child("timeout"))...)
	switch w.ResponseUnmarshalMode {
	case "", UnmarshalLoose, UnmarshalStrict:
	default:
		errs = append(
			errs,
			field.NotSupported(at.Child("responseUnMarshallMode"), w.ResponseUnmarshalMode,
				[]UnmarshalMode{UnmarshalLoose, UnmarshalStrict}),
		)
	}
	if e := w.Etag; e != nil && e.Enabled != nil && *e.Enabled && e.CacheTimeoutSeconds != nil &&
		e.CacheCleanupSeconds == nil {
		errs = append(errs, field.Required(at.Child("etag", "cacheCleanupSeconds"), "cacheTimeoutSeconds needs it"))
	}
	credentials := EndpointConfig{
		CABundle:      w.CABundle,
		ClientTLS:     w.ClientTLS,
		Authorization: w.Authorization,
		BasicAuth:     w.BasicAuth,
	}
	return append(errs, credentials.validateCredentials(at)...)
}

// validateAddress checks the URL if it is set, else the service.
func (w *Webhook) validateAddress(at *field.Path) field.ErrorList {
	switch {
	case w.URL != nil:
		u, err := url.Parse(*w.URL)
		if err == nil && u.Scheme == "unix" && u.Host == "" && strings.HasPrefix(u.Path, "/") {
			return nil // serve --hook-socket-folders decides whether it may be there
		}
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return field.ErrorList{
				field.Invalid(at.Child("url"), redactURL(*w.URL),
					"must be a whole URL: http://host[:port]/path, https, or unix:///path/to/socket"),
			}
		}
		return nil
	case w.Service != nil:
		return w.Service.validate(at.Child("service"))
	default:
		return field.ErrorList{field.Required(at, "one of url and service must be set")}
	}
}

// redactURL is a URL for messages, whether or not it can be parsed: without a password, and without
// a query.
func redactURL(text string) string {
	text, _, _ = strings.Cut(text, "?")
	if u, err := url.Parse(text); err == nil {
		return u.Redacted()
	}
	if at := strings.LastIndex(text, "@"); at >= 0 {
		text = "xxxxx" + text[at:]
	}
	return text
}

func (s *ServiceReference) validate(at *field.Path) field.ErrorList {
	errs := validateName(s.Name, s.Namespace, at)
	if s.Port != nil && (*s.Port < 1 || *s.Port > 65535) {
		errs = append(errs, field.Invalid(at.Child("port"), *s.Port, "must be between 1 and 65535"))
	}
	if s.Protocol != nil && !strings.EqualFold(*s.Protocol, "http") && !strings.EqualFold(*s.Protocol, "https") {
		errs = append(errs, field.NotSupported(at.Child("protocol"), *s.Protocol, []string{"http", "https"}))
	}
	return errs
}

// hookName matches the name of a hook at its server. The CRDs have the same pattern.
var hookName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

func (g *GRPC) validate(at *field.Path) field.ErrorList {
	errs := oneOf(at, choice{"target", g.Target != ""}, choice{"service", g.Service != nil},
		choice{"worker", g.Worker != ""})
	if g.Worker != "" &&
		(g.Mode == GRPCUnary || g.Insecure || g.CABundle != nil || g.ClientTLS != nil || g.Authorization != nil ||
			g.ServerName != "") {
		errs = append(errs, field.Forbidden(
			at.Child("worker"),
			"worker is a hook that dials in over a stream, which excludes mode Unary, insecure, caBundle, "+
				"clientTLS, authorization and serverName",
		))
	}
	if g.Hook != "" && (len(g.Hook) > 63 || !hookName.MatchString(g.Hook)) {
		errs = append(errs, field.Invalid(at.Child("hook"), g.Hook,
			"must be at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit"))
	}
	if g.Service != nil {
		errs = append(errs, validateName(g.Service.Name, g.Service.Namespace, at.Child("service"))...)
		if g.Service.Port < 1 || g.Service.Port > 65535 {
			errs = append(errs, field.Invalid(at.Child("service", "port"), g.Service.Port, "must be between 1 and 65535"))
		}
	}
	if g.Mode != "" && g.Mode != GRPCStream && g.Mode != GRPCUnary {
		errs = append(errs, field.NotSupported(at.Child("mode"), g.Mode, []GRPCMode{GRPCStream, GRPCUnary}))
	}
	if g.Insecure && (g.CABundle != nil || g.ClientTLS != nil || g.Authorization != nil || g.ServerName != "") {
		errs = append(
			errs,
			field.Forbidden(at.Child("insecure"),
				"insecure is plain text, which excludes caBundle, clientTLS, authorization and serverName"),
		)
	}
	errs = append(errs, g.Timeout.validate(at.Child("timeout"))...)
	credentials := EndpointConfig{CABundle: g.CABundle, ClientTLS: g.ClientTLS, Authorization: g.Authorization}
	return append(errs, credentials.validateCredentials(at)...)
}

func (p *InProcess) validate(at *field.Path) field.ErrorList {
	errs := p.Timeout.validate(at.Child("timeout"))
	if p.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "the name of a registered hook"))
	}
	return errs
}

// ownTransports are Hookloop's own, which have fields of their own.
var ownTransports = []string{"webhook", "grpc", "inproc"}

// transportName is the syntax of the name of a transport.
var transportName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// CheckTransportName returns an error if a transport cannot be registered under a name.
func CheckTransportName(name string) error {
	switch {
	case slices.Contains(ownTransports, name):
		return fmt.Errorf("%q is one of Hookloop's own transports, which has a field of its own", name)
	case len(name) > 63 || !transportName.MatchString(name):
		return fmt.Errorf("got %q, expected at most 63 lower case letters, digits and hyphens such as nats", name)
	}
	return nil
}

func (t *Transport) validate(at *field.Path) field.ErrorList {
	if t.Name == "" {
		return field.ErrorList{field.Required(at.Child("name"), "the name of a registered transport")}
	}
	var errs field.ErrorList
	if err := CheckTransportName(t.Name); err != nil {
		errs = append(errs, field.Invalid(at.Child("name"), t.Name, err.Error()))
	}
	if content := bytes.TrimSpace(t.content()); content[0] != '{' {
		errs = append(errs, field.Invalid(at.Child("config"), string(content[:min(len(content), 64)]), "must be an object"))
	}
	return errs
}

func (t Timeout) validate(at *field.Path) field.ErrorList {
	if t == "" {
		return nil
	}
	if _, err := time.ParseDuration(string(t)); err != nil {
		return field.ErrorList{field.Invalid(at, string(t), "must be a Go duration such as 10s or 1m30s")}
	}
	return nil
}
