package v1alpha1

import (
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// placedHook is a hook and where the spec has it.
type placedHook struct {
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
			out = append(out, placedHook{hooks[name], specPath.Child("hooks", name)})
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
	return errs
}

// validateTransports accepts one transport, or grpc with webhook as its fallback.
func (h *Hook) validateTransports(at *field.Path) field.ErrorList {
	const expected = "exactly one of webhook, grpc and inproc must be set, or grpc with webhook as its fallback"
	switch set := h.Transports(); {
	case len(set) == 0:
		return field.ErrorList{field.Required(at, expected)}
	case len(set) > 1 && h.InProcess != nil:
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
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return field.ErrorList{
				field.Invalid(at.Child("url"), redactURL(*w.URL), "must be a whole URL: http://host[:port]/path, or https"),
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

func (t Timeout) validate(at *field.Path) field.ErrorList {
	if t == "" {
		return nil
	}
	if _, err := time.ParseDuration(string(t)); err != nil {
		return field.ErrorList{field.Invalid(at, string(t), "must be a Go duration such as 10s or 1m30s")}
	}
	return nil
}
