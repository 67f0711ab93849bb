package v1alpha1

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// HookVersion is the shape of a hook's requests and answers.
// +kubebuilder:validation:Enum=v1;v2
type HookVersion string

// The versions: v1 keys objects by name and shows a namespaced parent its own namespace only; v2
// keys them by namespace/name and shows everything that was asked for.
const (
	HookV1 HookVersion = "v1"
	HookV2 HookVersion = "v2"
)

// Hook configures the transport to the user's code. One transport must be set, or grpc or transport
// with webhook: then the webhook is the fallback while the other hook is unreachable or does not
// serve the operation.
// +kubebuilder:validation:XValidation:rule="(has(self.grpc) ? 1 : 0) + (has(self.inproc) ? 1 : 0) + (has(self.transport) ? 1 : 0) + (has(self.webhook) && !has(self.grpc) && !has(self.transport) ? 1 : 0) == 1",message="exactly one of webhook, grpc, inproc and transport must be set, or grpc or transport with webhook as its fallback"
type Hook struct {
	// +optional
	// +kubebuilder:default=v1
	Version HookVersion `json:"version,omitempty"`
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`
	// +optional
	GRPC *GRPC `json:"grpc,omitempty"`
	// +optional
	InProcess *InProcess `json:"inproc,omitempty"`
	// Transport is a transport that the program adds to Hookloop's own.
	// +optional
	Transport *Transport `json:"transport,omitempty"`
}

// A ConfiguredTransport is one of the transports of a hook.
// +kubebuilder:object:generate=false
type ConfiguredTransport struct {
	// Name is the name under which the program registers the transport.
	Name string
	// Field is the path of the configuration below the hook.
	Field string
	// Config is what the transport reads.
	Config any
}

// Transports returns the transports that are set, the preferred one first.
func (h *Hook) Transports() []ConfiguredTransport {
	var all []ConfiguredTransport
	if h.GRPC != nil {
		all = append(all, ConfiguredTransport{"grpc", "grpc", h.GRPC})
	}
	if h.Transport != nil {
		all = append(all, ConfiguredTransport{h.Transport.Name, "transport.config", h.Transport.content()})
	}
	if h.Webhook != nil {
		all = append(all, ConfiguredTransport{"webhook", "webhook", h.Webhook})
	}
	if h.InProcess != nil {
		all = append(all, ConfiguredTransport{"inproc", "inproc", h.InProcess})
	}
	return all
}

// Transport selects a transport that a program adds to Hookloop's own (server.Config.Transports).
// The program "hookloop" has none.
// +kubebuilder:validation:XValidation:rule="!has(self.name) || !(self.name in ['webhook', 'grpc', 'inproc'])",message="name is one of Hookloop's own transports, which has a field of its own"
type Transport struct {
	// Name is the name under which the program has registered the transport.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Config is the configuration, an object that the transport defines. Hookloop stores it as it
	// is; the transport checks it when the controller starts.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	Config *runtime.RawExtension `json:"config,omitempty"`
}

// content returns the configuration as JSON; without one, an empty object.
func (t *Transport) content() json.RawMessage {
	if t.Config == nil || len(t.Config.Raw) == 0 {
		return json.RawMessage("{}")
	}
	return t.Config.Raw
}

// UnmarshalMode is the strictness with which a webhook's JSON is read.
// +kubebuilder:validation:Enum=loose;strict
type UnmarshalMode string

// The modes: strict refuses unknown and duplicate fields.
const (
	UnmarshalLoose  UnmarshalMode = "loose"
	UnmarshalStrict UnmarshalMode = "strict"
)

// Webhook is a hook that is asked by an HTTP POST of JSON.
// +kubebuilder:validation:XValidation:rule="has(self.url) || has(self.service)",message="one of url and service must be set"
// +kubebuilder:validation:XValidation:rule="!(has(self.authorization) && has(self.basicAuth))",message="at most one of authorization and basicAuth may be set"
type Webhook struct {
	// URL is the hook's address. It wins over service, and over path unless it names a unix socket:
	// unix:///run/hooks/hello.sock, in a folder that serve --hook-socket-folders names.
	// +optional
	URL *string `json:"url,omitempty"`
	// Service is the Service that serves the hook.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`
	// Path is the path of the hook at the service or the unix socket: /sync.
	// +optional
	Path *string `json:"path,omitempty"`
	// Timeout is how long one call may take, as a Go duration; 0 and less count as 10s. Default: 10s.
	// +optional
	Timeout Timeout `json:"timeout,omitempty"`
	// Etag lets the hook answer "unchanged".
	// +optional
	Etag *WebhookEtag `json:"etag,omitempty"`
	// ResponseUnmarshalMode defaults to loose for v1 and strict for v2.
	// +optional
	ResponseUnmarshalMode UnmarshalMode `json:"responseUnMarshallMode,omitempty"`
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// +optional
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
}

// Timeout is how long one call may take, as a Go duration: 1m30s. Unset, zero and negative values
// count as 10s.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^$|^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
type Timeout string

// DefaultTimeout is the timeout of a hook that declares none.
const DefaultTimeout = 10 * time.Second

// Duration is the timeout, always above 0. Text that is no duration, which Validate refuses, counts
// as none.
func (t Timeout) Duration() time.Duration {
	d, err := time.ParseDuration(string(t))
	if err != nil || d <= 0 {
		return DefaultTimeout
	}
	return d
}

// ServiceReference names a Service that serves webhooks.
type ServiceReference struct {
	// Name is the name of the Service.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is the namespace of the Service.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// Port defaults to 80.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
	// Protocol is http or https. Default: http.
	// +optional
	Protocol *string `json:"protocol,omitempty"`
}

// WebhookEtag configures the cache of answers that the hook marks with an ETag header.
// +kubebuilder:validation:XValidation:rule="!(has(self.enabled) && self.enabled && has(self.cacheTimeoutSeconds)) || has(self.cacheCleanupSeconds)",message="cacheTimeoutSeconds needs cacheCleanupSeconds"
type WebhookEtag struct {
	// Enabled turns the cache on. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// CacheTimeoutSeconds is how long an answer is kept; unset or below 1, it is kept until its
	// parent is gone.
	// +optional
	CacheTimeoutSeconds *int32 `json:"cacheTimeoutSeconds,omitempty"`
	// CacheCleanupSeconds is how often answers past their time are dropped.
	// +optional
	CacheCleanupSeconds *int32 `json:"cacheCleanupSeconds,omitempty"`
}

// GRPCMode is how a gRPC hook is spoken to.
// +kubebuilder:validation:Enum=Stream;Unary
type GRPCMode string

// The modes: one long-lived stream that carries only changes, or one call for each question.
const (
	GRPCStream GRPCMode = "Stream"
	GRPCUnary  GRPCMode = "Unary"
)

// GRPC is a hook that is asked by gRPC (packages hookloop.composite.v1, hookloop.decorator.v1
// and hookloop.map.v1).
// +kubebuilder:validation:XValidation:rule="(has(self.target) ? 1 : 0) + (has(self.service) ? 1 : 0) + (has(self.worker) ? 1 : 0) == 1",message="exactly one of target, service and worker must be set"
// +kubebuilder:validation:XValidation:rule="!has(self.worker) || !(has(self.caBundle) || has(self.clientTLS) || has(self.authorization) || has(self.serverName) || (has(self.insecure) && self.insecure) || (has(self.mode) && self.mode == 'Unary'))",message="worker is a hook that dials in over a stream, which excludes mode Unary, insecure, caBundle, clientTLS, authorization and serverName"
// +kubebuilder:validation:XValidation:rule="!(has(self.insecure) && self.insecure) || !(has(self.caBundle) || has(self.clientTLS) || has(self.authorization) || has(self.serverName))",message="insecure is plain text, which excludes caBundle, clientTLS, authorization and serverName"
type GRPC struct {
	// Target is the hook's address in gRPC's syntax: dns:///hello.default:9443, or
	// unix:///run/hooks/hello.sock in a folder that serve --hook-socket-folders names. A unix socket is
	// plain text and does not need insecure.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Target string `json:"target,omitempty"`
	// Service is the Service that serves the hook; calls are balanced over its endpoints.
	// +optional
	Service *GRPCServiceReference `json:"service,omitempty"`
	// Worker is the name under which hooks dial in to the gateway (serve --gateway-address).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Worker string `json:"worker,omitempty"`
	// Hook is the hook's name at a server or worker that has several. Unset, it is the only hook of
	// this kind of controller, or the one without a name.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`
	Hook string `json:"hook,omitempty"`
	// Mode is Stream or Unary. Unset, it is the stream where the hook serves it.
	// +optional
	Mode GRPCMode `json:"mode,omitempty"`
	// Timeout is how long one call may take, as a Go duration; 0 and less count as 10s. Default: 10s.
	// +optional
	Timeout Timeout `json:"timeout,omitempty"`
	// CABundle verifies the hook's certificate; unset, the system's roots do.
	// +optional
	CABundle *CABundle `json:"caBundle,omitempty"`
	// +optional
	ClientTLS *ClientTLS `json:"clientTLS,omitempty"`
	// +optional
	Authorization *Authorization `json:"authorization,omitempty"`
	// Insecure asks for plain text instead of TLS. Default: false.
	// +optional
	Insecure bool `json:"insecure,omitempty"`
	// ServerName is the name that the hook's certificate must have, if it is not the target's.
	// +optional
	ServerName string `json:"serverName,omitempty"`
}

// InProcess is a hook that is a Go function of the engine's own process: of a program that embeds
// the engine.
type InProcess struct {
	// Name is the name under which the program has registered the hook.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Timeout is how long one call may take, as a Go duration; 0 and less count as 10s. Default: 10s.
	// +optional
	Timeout Timeout `json:"timeout,omitempty"`
}

// GRPCServiceReference names a Service that serves gRPC hooks.
type GRPCServiceReference struct {
	// Name is the name of the Service.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace is the namespace of the Service.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// Port is a port of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}
