package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/gateway"
	"github.com/hookloop/hookloop/transports/inproc"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
)

// Config is the configuration of the process; "hookloop serve" sets it from flags. DefaultConfig
// returns the defaults of the flags.
type Config struct {
	// Version is the program's version, for logs, metrics, traces and the user agent.
	Version string

	// Kubeconfig is a file; empty means the Pod's own ServiceAccount.
	Kubeconfig string
	// Rest reaches the API server in place of Kubeconfig, for programs that embed the engine; nil
	// uses Kubeconfig.
	Rest *rest.Config
	// ClientQPS and ClientBurst limit requests to the API server; a negative ClientQPS means no
	// limit.
	ClientQPS   float64
	ClientBurst int

	// Workers is the number of parents that one controller syncs at a time.
	Workers int
	// SlowHookWaits is the number of syncs of all controllers that may wait for slow hooks beside
	// the workers.
	SlowHookWaits int
	// DeletionLimit is the number of children that one answer may delete, or a percentage of a
	// parent's children. Empty sets no limit. A controller's spec.deletionLimit overrides it.
	DeletionLimit string
	// RewriteLimit is the number of rewrites of one field within a minute, without a change by a
	// user, after which the circuit of the parent, or of a Go controller's key, opens; 0 sets no
	// limit. RewritePause is the time without writes for that parent or key.
	RewriteLimit int
	RewritePause time.Duration
	// TargetSelector selects the declared controllers that this process runs; empty selects all.
	TargetSelector string
	// ApplyStrategy is DynamicApply or ServerSideApply; FieldManager is the field manager of the
	// latter.
	ApplyStrategy string
	FieldManager  string
	// FieldValidation is WarnFields or StrictFields: whether the API server drops or rejects
	// unknown fields of children.
	FieldValidation string
	// DiscoveryInterval is the longest time until a change of the served resources is noticed if
	// no watch shows it.
	DiscoveryInterval time.Duration
	// StaleViewAfter is the time for which the list or the watch of a resource may fail before
	// parents that need the resource are no longer synced.
	StaleViewAfter time.Duration
	// CacheFlushInterval has no effect: caches follow watches.
	CacheFlushInterval time.Duration
	// CustomizeMaxAge is the longest time for which an answer of a customize hook is used.
	CustomizeMaxAge time.Duration
	// EventsQPS and EventsBurst limit the Events about one object.
	EventsQPS   float32
	EventsBurst int
	// GracePeriod is the time that running syncs have after a request to stop.
	GracePeriod time.Duration

	// UnrestrictedSecretNamespaces are namespaces with Secrets that may be sent to any address,
	// as in Metacontroller; "*" means all namespaces.
	UnrestrictedSecretNamespaces []string
	// HookSocketFolders are the folders in which hooks may listen on unix sockets, such as a volume
	// that the engine shares with hooks in its own Pod. Everyone who may create a controller can have
	// the engine connect to each socket in them.
	HookSocketFolders []string
	// ClusterDomain is the domain of the cluster's Services. Empty reads it from the search path in
	// /etc/resolv.conf; the fallback is cluster.local.
	ClusterDomain string

	// MemoryBudget is the memory that the process may use, as a quantity ("512Mi"); "0" sets no
	// limit. Empty uses GOMEMLIMIT, else the container's limit, else a quarter of the machine's
	// memory.
	MemoryBudget string

	// The addresses to listen on; "0" or empty switches one off.
	MetricsAddress, HealthAddress, PprofAddress string

	// Hooks are Go functions of this process, by the name that a controller refers to
	// (spec.hooks.sync.inproc.name). They are for programs that embed the engine; no flag sets
	// them.
	Hooks map[string]Hook

	// Transports are transports that this program adds to Hookloop's own, by the name with which a
	// hook selects one (spec.hooks.sync.transport.name: nats). A name has at most 63 lower case
	// letters, digits and hyphens. Package transports shows how to write one. No flag sets them.
	Transports hook.Openers

	// Controllers are controllers in Go of this process (packages controller and actor), which run
	// beside the declared ones. They are for programs that embed the engine; no flag sets them.
	Controllers []controller.Declared
	// Scheme has the Go types of Controllers; nil means that of client-go, with Kubernetes' own types.
	Scheme *runtime.Scheme
	// ControllersOnly runs Controllers alone: no declared controllers and no hooks. The CRDs of
	// declared controllers need not be installed.
	ControllersOnly bool

	// Declared has the declared controllers of this process, in place of those of the cluster, which
	// need not have Hookloop's CRDs; nil means those of the cluster. Files makes one.
	Declared Declared
	// Observer is notified of all syncs; it may be nil.
	Observer engine.Observer
	// Steps lets the controllers take their keys in steps; nil lets them take keys freely.
	Steps *engine.Steps

	Recording      Recording
	Gateway        Gateway
	LeaderElection LeaderElection
	Log            Log
	Tracing        Tracing
}

// Hook is a hook of the Go SDK (hook.Composite or hook.Decorator), or another value that registers
// a hook service of the contract.
type Hook = inproc.Hook

// Gateway configures the gateway, to which hooks dial in. The leading replica serves it.
type Gateway struct {
	// Address is the address to listen on; "0" or empty turns the gateway off.
	Address string
	// TLSCert and TLSKey name PEM files; ClientCA names one with the authorities of client
	// certificates, and may be empty.
	TLSCert, TLSKey, ClientCA string
	// Audience is the audience that tokens must have.
	Audience string
}

// LeaderElection configures the election of one replica that works.
type LeaderElection struct {
	Enabled bool
	// ResourceLock is the kind of lock; "leases" is the only one that Kubernetes has left.
	ResourceLock string
	// Namespace and ID name the Lease. An empty Namespace is the Pod's own.
	Namespace, ID string
	// WarmStandby fills the caches of a replica while it waits, so that it takes over without a list.
	WarmStandby bool
}

// Log configures logging. The names are those of controller-runtime's zap flags.
type Log struct {
	// Devel changes the defaults of the others: console, debug, stack traces for errors.
	Devel bool
	// Encoder is "json" or "console".
	Encoder string
	// Level is "debug", "info", "error", "panic" or a verbosity above 0.
	Level string
	// StacktraceLevel is "info", "error" or "panic".
	StacktraceLevel string
	// TimeEncoding is "epoch", "millis", "nano", "iso8601", "rfc3339" or "rfc3339nano".
	TimeEncoding string
	// Output receives the lines; nil means stderr.
	Output io.Writer
}

// Tracing configures the export of spans. Without an Endpoint the OTEL_* environment variables
// apply; without either, tracing is off.
type Tracing struct {
	// Endpoint is the URL of an OTLP collector.
	Endpoint string
	// SampleRatio is the share of changes that are traced, from 0 to 1. If it is negative,
	// OTEL_TRACES_SAMPLER applies.
	SampleRatio float64
	// NoOpSyncs also exports the traces of syncs without a change that wrote nothing and did not
	// fail.
	NoOpSyncs bool
}

// The apply strategies.
const (
	DynamicApply    = "dynamic-apply"
	ServerSideApply = "server-side-apply"
)

// The field validation of the API server for unknown and duplicate fields of children.
const (
	WarnFields   = "Warn"
	StrictFields = "Strict"
)

// timeEncodings are the values of Log.TimeEncoding.
var timeEncodings = []string{"epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"}

// DefaultConfig returns the configuration without any flag.
//
// Metacontroller's limit is 5 requests a second, about five syncs a second for a whole
// installation. API servers protect themselves by priority and fairness since Kubernetes 1.20, so
// the client's limit only guards against a runaway loop: it is far above a healthy load and far
// below the capacity of one API server.
func DefaultConfig() Config {
	return Config{
		ClientQPS: 200, ClientBurst: 400, Workers: 5, SlowHookWaits: 500, RewriteLimit: 100, RewritePause: time.Minute,
		ApplyStrategy: DynamicApply, FieldManager: "metacontroller", FieldValidation: WarnFields,
		DiscoveryInterval: 30 * time.Second, CacheFlushInterval: 30 * time.Minute,
		CustomizeMaxAge: engine.DefaultCustomizeMaxAge, EventsQPS: 1. / 300, EventsBurst: 25, GracePeriod: 30 * time.Second,
		StaleViewAfter: engine.DefaultStaleAfter,
		MetricsAddress: ":9999", HealthAddress: ":8081", PprofAddress: "0",
		Recording:      defaultRecording(),
		Gateway:        Gateway{Audience: gateway.DefaultAudience},
		LeaderElection: LeaderElection{ResourceLock: "leases", ID: "metacontroller", WarmStandby: true},
		Tracing:        Tracing{SampleRatio: -1},
	}
}

// FlagError reports a flag with an invalid value, and the expected one.
type FlagError struct{ Flag, Value, Expected string }

// Error returns one line.
func (e *FlagError) Error() string {
	return fmt.Sprintf("--%s: got %q, expected %s", e.Flag, e.Value, e.Expected)
}

// rule is one check of a value: ok, or the flag, its value and the expected value.
type rule struct {
	ok              bool
	flag            string
	value, expected any
}

// Validate returns a *FlagError for the first invalid value.
func (c *Config) Validate() error {
	rules := []rule{
		{c.ClientQPS != 0, "client-go-qps", c.ClientQPS, "a number above 0, or -1 for no limit"},
		{c.ClientBurst > 0 || c.ClientQPS < 0, "client-go-burst", c.ClientBurst, "a number above 0"},
		{c.Workers > 0, "workers", c.Workers, "a number above 0"},
		{c.SlowHookWaits >= 0, "slow-hook-waits", c.SlowHookWaits, "a number of 0 or more"},
		{c.RewriteLimit >= 0, "rewrite-limit", c.RewriteLimit, "a number of 0 or more"},
		{c.RewritePause > 0, "rewrite-pause", c.RewritePause, "a duration above 0"},
		{c.DiscoveryInterval > 0, "discovery-interval", c.DiscoveryInterval, "a duration above 0"},
		{c.CustomizeMaxAge > 0, "customize-max-age", c.CustomizeMaxAge, "a duration above 0"},
		{c.StaleViewAfter > 0, "stale-view-after", c.StaleViewAfter, "a duration above 0"},
		{c.EventsQPS > 0, "events-qps", c.EventsQPS, "a number above 0"},
		{c.EventsBurst > 0, "events-burst", c.EventsBurst, "a number above 0"},
		{c.GracePeriod >= 0, "shutdown-grace-period", c.GracePeriod, "a duration of 0 or more"},
		{c.Tracing.SampleRatio <= 1, "tracing-sample-ratio", c.Tracing.SampleRatio, "a number from 0 to 1"},
		{c.LeaderElection.ID != "" || !c.LeaderElection.Enabled, "leader-election-id", "", "the name of a Lease"},
		oneOf("leader-election-resource-lock", c.LeaderElection.ResourceLock, "leases"),
		oneOf("zap-encoder", c.Log.Encoder, "", "json", "console"),
		oneOf("zap-stacktrace-level", c.Log.StacktraceLevel, "", "info", "error", "panic"),
		oneOf("zap-time-encoding", c.Log.TimeEncoding, append([]string{""}, timeEncodings...)...),
		oneOf("apply-strategy", c.ApplyStrategy, DynamicApply, ServerSideApply),
		oneOf("field-validation", c.FieldValidation, WarnFields, StrictFields),
		{c.FieldManager != "", "apply-strategy-ssa-field-manager", c.FieldManager, "the name of a field manager"},
		listens("metrics-address", c.MetricsAddress),
		listens("health-probe-bind-address", c.HealthAddress),
		listens("pprof-address", c.PprofAddress),
		listens("gateway-address", c.Gateway.Address),
		{
			off(c.Gateway.Address) || c.Gateway.TLSCert != "",
			"gateway-tls-cert",
			"",
			"a PEM file, because the gateway has no plain text",
		},
		{
			off(c.Gateway.Address) || c.Gateway.TLSKey != "",
			"gateway-tls-key",
			"",
			"a PEM file, because the gateway has no plain text",
		},
		{off(c.Gateway.Address) || c.Gateway.Audience != "", "gateway-audience", "", "a name"},
	}
	for _, r := range append(rules, c.Recording.rules()...) {
		if !r.ok {
			return &FlagError{r.flag, fmt.Sprint(r.value), fmt.Sprint(r.expected)}
		}
	}
	return c.validateText()
}

// checkControllers returns the faults of Controllers, and of the other fields of programs with
// controllers in Go.
func (c *Config) checkControllers() error {
	switch {
	case c.ControllersOnly && len(c.Controllers) == 0:
		return errors.New("Config.ControllersOnly: Controllers is empty, expected a controller")
	case c.ControllersOnly && len(c.Hooks) > 0:
		return errors.New("Config.ControllersOnly: Hooks has hooks of declared controllers, expected none")
	}
	for name, open := range c.Transports {
		err := v1alpha1.CheckTransportName(name)
		if err == nil && open == nil {
			err = fmt.Errorf("%q has no opener, expected a hook.Opener", name)
		}
		if err != nil {
			return fmt.Errorf("Config.Transports: %w", err)
		}
	}
	if err := engine.CheckControllers(c.Scheme, c.Controllers...); err != nil {
		return fmt.Errorf("Config.Controllers: %w", err)
	}
	return nil
}

// unused returns the flags that are set and have no effect.
func (c *Config) unused() []string {
	defaults := DefaultConfig()
	var flags []string
	if c.CacheFlushInterval != defaults.CacheFlushInterval {
		flags = append(flags, "cache-flush-interval")
	}
	return flags
}

// validateText checks the values that have a syntax.
func (c *Config) validateText() error {
	if _, err := labels.Parse(c.TargetSelector); err != nil {
		return &FlagError{
			"target-label-selector",
			c.TargetSelector,
			"a label selector such as team=shop,tier!=test: " + err.Error(),
		}
	}
	if _, err := parseLevel(c.Log.Level); err != nil {
		return &FlagError{"zap-log-level", c.Log.Level, err.Error()}
	}
	if err := c.validateMemory(); err != nil {
		return err
	}
	if c.DeletionLimit != "" && !v1alpha1.IsDeletionLimit(intstr.Parse(c.DeletionLimit)) {
		return &FlagError{"deletion-limit", c.DeletionLimit, "a number of 0 or more, or a percentage from 0% to 100%"}
	}
	if c.Tracing.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Tracing.Endpoint)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return &FlagError{
			"tracing-endpoint",
			c.Tracing.Endpoint,
			"the URL of an OTLP collector such as http://localhost:4318",
		}
	}
	return nil
}

// minMemoryBudget is the smallest budget with which a process can work.
const minMemoryBudget = 128 << 20

func (c *Config) validateMemory() error {
	if c.MemoryBudget == "" {
		return nil
	}
	q, err := resource.ParseQuantity(c.MemoryBudget)
	if err != nil || q.Value() != 0 && q.Value() < minMemoryBudget {
		return &FlagError{"memory-budget", c.MemoryBudget, "a quantity of at least 128Mi such as 512Mi, or 0 for no limit"}
	}
	return nil
}

func oneOf(flag, value string, allowed ...string) rule {
	expected := strings.Join(slices.DeleteFunc(slices.Clone(allowed), func(s string) bool { return s == "" }), ", ")
	return rule{slices.Contains(allowed, value), flag, value, expected}
}

func listens(flag, address string) rule {
	if off(address) {
		return rule{ok: true}
	}
	_, port, err := net.SplitHostPort(address)
	return rule{err == nil && port != "", flag, address, "host:port, :port, or 0 for none"}
}

// off reports whether an address turns its server off.
func off(address string) bool { return address == "" || address == "0" }
