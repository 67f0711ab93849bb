package v1alpha1

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// The values of fields that are unset.
const (
	DefaultServicePort      int32 = 80
	DefaultServiceProtocol        = "http"
	DefaultCAKey                  = "ca.crt"
	DefaultCertKey                = "tls.crt"
	DefaultPrivateKeyKey          = "tls.key"
	DefaultAuthorization          = "Bearer"
	DefaultAuthorizationKey       = "token"
	DefaultUsernameKey            = "username"
	DefaultPasswordKey            = "password"
	DefaultRevisionField          = "spec"
)

// Default fills in what the spec leaves open, and drops a child resource that repeats another in
// every field. It is idempotent, and changes c: a caller that shares c defaults a copy.
func (c *CompositeController) Default() {
	s := &c.Spec
	if s.ParentResource.RevisionHistory == nil {
		s.ParentResource.RevisionHistory = &RevisionHistory{}
	}
	if len(s.ParentResource.RevisionHistory.FieldPaths) == 0 {
		s.ParentResource.RevisionHistory.FieldPaths = []string{DefaultRevisionField}
	}
	for i := range s.ChildResources {
		child := &s.ChildResources[i]
		if child.UpdateStrategy == nil {
			child.UpdateStrategy = &ChildUpdateStrategy{}
		}
		orDefault(&child.UpdateStrategy.Method, UpdateOnDelete)
	}
	s.ChildResources = unique(s.ChildResources)
	for _, h := range c.hooks() {
		h.hook.Default()
	}
	defaultEndpoints(s.EndpointConfigs)
}

// Default fills in what the spec leaves open, and drops a resource or attachment that repeats
// another in every field. It is idempotent, and changes d: a caller that shares d defaults a copy.
func (d *DecoratorController) Default() {
	s := &d.Spec
	s.Resources = unique(s.Resources)
	for i := range s.Attachments {
		attachment := &s.Attachments[i]
		if attachment.UpdateStrategy == nil {
			attachment.UpdateStrategy = &AttachmentUpdateStrategy{}
		}
		orDefault(&attachment.UpdateStrategy.Method, UpdateOnDelete)
	}
	s.Attachments = unique(s.Attachments)
	for _, h := range d.hooks() {
		h.hook.Default()
	}
	defaultEndpoints(s.EndpointConfigs)
}

// Default fills in what the spec leaves open, and drops an input or output resource that repeats
// another in every field. It is idempotent, and changes m: a caller that shares m defaults a copy.
func (m *MapController) Default() {
	s := &m.Spec
	s.InputResources = unique(s.InputResources)
	for i := range s.OutputResources {
		output := &s.OutputResources[i]
		if output.UpdateStrategy == nil {
			output.UpdateStrategy = &OutputUpdateStrategy{}
		}
		orDefault(&output.UpdateStrategy.Method, UpdateOnDelete)
	}
	s.OutputResources = unique(s.OutputResources)
	for _, h := range m.hooks() {
		h.hook.Default()
	}
	defaultEndpoints(s.EndpointConfigs)
}

// ResyncPeriod is the time between two resyncs of a parent; 0 means none.
func (s *CompositeControllerSpec) ResyncPeriod() time.Duration {
	return resyncPeriod(s.ResyncPeriodSeconds)
}

// ResyncPeriod is the time between two resyncs of an object; 0 means none.
func (s *DecoratorControllerSpec) ResyncPeriod() time.Duration {
	return resyncPeriod(s.ResyncPeriodSeconds)
}

// ResyncPeriod is the time between two resyncs of a parent; 0 means none.
func (s *MapControllerSpec) ResyncPeriod() time.Duration {
	return resyncPeriod(s.ResyncPeriodSeconds)
}

func resyncPeriod(seconds *int32) time.Duration {
	if seconds == nil {
		return 0
	}
	return time.Duration(max(*seconds, 1)) * time.Second
}

// Default fills in what a hook leaves open. A nil hook stays nil.
func (h *Hook) Default() {
	if h == nil {
		return
	}
	orDefault(&h.Version, HookV1)
	if h.Webhook != nil {
		h.Webhook.fill(h.Version)
	}
	if h.GRPC != nil {
		h.GRPC.fill()
	}
	if h.InProcess != nil {
		h.InProcess.Timeout = h.InProcess.Timeout.orDefault()
	}
}

func (w *Webhook) fill(version HookVersion) {
	mode := UnmarshalLoose
	if version == HookV2 {
		mode = UnmarshalStrict
	}
	orDefault(&w.ResponseUnmarshalMode, mode)
	w.Timeout = w.Timeout.orDefault()
	if w.Service != nil {
		pointerDefault(&w.Service.Port, DefaultServicePort)
		pointerDefault(&w.Service.Protocol, DefaultServiceProtocol)
	}
	w.CABundle.fill()
	w.ClientTLS.fill()
	w.Authorization.fill()
	w.BasicAuth.fill()
}

func (g *GRPC) fill() {
	g.Timeout = g.Timeout.orDefault()
	g.CABundle.fill()
	g.ClientTLS.fill()
	g.Authorization.fill()
}

// orDefault keeps text that is no duration, so that Validate can name it.
func (t Timeout) orDefault() Timeout {
	d, err := time.ParseDuration(string(t))
	if t == "" || (err == nil && d <= 0) {
		return Timeout(DefaultTimeout.String())
	}
	return t
}

func defaultEndpoints(endpoints []EndpointConfig) {
	for _, e := range endpoints {
		e.CABundle.fill()
		e.ClientTLS.fill()
		e.Authorization.fill()
		e.BasicAuth.fill()
	}
}

func (b *CABundle) fill() {
	if b == nil {
		return
	}
	for _, ref := range []*KeyReference{b.SecretRef, b.ConfigMapRef} {
		if ref != nil {
			orDefault(&ref.Key, DefaultCAKey)
		}
	}
}

func (t *ClientTLS) fill() {
	if t != nil {
		orDefault(&t.CertKey, DefaultCertKey)
		orDefault(&t.PrivateKeyKey, DefaultPrivateKeyKey)
	}
}

func (a *Authorization) fill() {
	if a != nil {
		orDefault(&a.Type, DefaultAuthorization)
		orDefault(&a.SecretRef.Key, DefaultAuthorizationKey)
	}
}

func (b *BasicAuth) fill() {
	if b != nil {
		orDefault(&b.UsernameKey, DefaultUsernameKey)
		orDefault(&b.PasswordKey, DefaultPasswordKey)
	}
}

func orDefault[T cmp.Ordered](field *T, value T) { *field = cmp.Or(*field, value) }

func pointerDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// unique drops the items that equal an earlier one.
func unique[T any](items []T) []T {
	var kept []T
	for _, item := range items {
		equal := func(other T) bool { return equality.Semantic.DeepEqual(item, other) }
		if !slices.ContainsFunc(kept, equal) {
			kept = append(kept, item)
		}
	}
	return kept
}
