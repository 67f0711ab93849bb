package server

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/internal/engine/customize"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/transports/gateway/access"
	"github.com/hookloop/hookloop/internal/transports/inproc"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Config is what the flags of "hookloop serve" say. DefaultConfig gives their defaults; Validate
// must pass before Run.
type Config struct {
	// Version is the program's version, for logs, metrics, traces and the user agent.
	Version string

	// Kubeconfig is a file; empty means the Pod's own ServiceAccount.
	Kubeconfig string
	// ClientQPS and ClientBurst limit requests to the API server; a negative ClientQPS means no
	// limit.
	ClientQPS   float64
	ClientBurst int

	// Workers is the number of parents that one controller syncs at a time.
	Workers int
	// SlowHookWaits is how many syncs of all controllers may wait for slow hooks beside the
	// workers.
	SlowHookWaits int
	// DeletionLimit is how many children one answer may have deleted: a number, or a percentage of
	// a parent's children. Empty sets no limit. A controller's spec.deletionLimit goes first.
	DeletionLimit string
	// RewriteLimit is how often one field may be rewritten within a minute without a change by a
	// user; 0 sets no limit. RewritePause is how long nothing is written for a parent after that.
	RewriteLimit int
	RewritePause time.Duration
	// TargetSelector selects the declared controllers that this process runs; empty selects all.
	TargetSelector string
	// ApplyStrategy is DynamicApply or ServerSideApply; FieldManager is the field manager of the
	// latter.
	ApplyStrategy string
	FieldManager  string
	// FieldValidation is WarnFields or StrictFields: what the API server does with unknown fields
	// of children.
	FieldValidation string
	// DiscoveryInterval is the longest time after which a change of the served resources is
	// noticed, where no watch tells.
	DiscoveryInterval time.Duration
	// StaleViewAfter is how long the list or the watch of a resource may fail before nothing is
	// decided from its objects any more.
	StaleViewAfter time.Duration
	// CacheFlushInterval has no effect: caches follow watches.
	CacheFlushInterval time.Duration
	// CustomizeMaxAge is how long an answer of a customize hook counts at most.
	CustomizeMaxAge time.Duration
	// EventsQPS and EventsBurst limit the Events about one object.
	EventsQPS   float32
	EventsBurst int
	// GracePeriod is how long syncs under way may take after a request to stop.
	GracePeriod time.Duration

	// UnrestrictedSecretNamespaces are the namespaces whose Secrets hooks may have sent anywhere,
	// as Metacontroller does it; "*" is all.
	UnrestrictedSecretNamespaces []string
	// ClusterDomain ends the full names of Services; empty takes it from the search path of
	// /etc/resolv.conf, else cluster.local.
	ClusterDomain string

	// MemoryBudget is how much memory the process may use, as a quantity ("512Mi"); "0" is no
	// limit, and empty is GOMEMLIMIT, else the container's limit, else a quarter of the machine's
	// memory.
	MemoryBudget string

	// The addresses to listen on; "0" or empty switches one off.
	MetricsAddress, HealthAddress, PprofAddress string

	// Hooks are hooks that are functions of this process, by the names that controllers refer to
	// them by (spec.hooks.sync.inproc.name). No flag sets them: they are for programs that embed
	// the engine.
	Hooks map[string]Hook

	Gateway        Gateway
	LeaderElection LeaderElection
	Log            Log
	Tracing        Tracing
}

// Hook is a hook of the Go SDK, a Composite or a Decorator, or whatever else registers a service of
// package hookloop.hook.v1.
type Hook = inproc.Hook

// Gateway reports whether hooks may dial in, and how. It is served by the replica that works.
type Gateway struct {
	// Address is where to listen; "0" or empty means that no hook can dial in.
	Address string
	// TLSCert and TLSKey name PEM files; ClientCA names one with the authorities of client
	// certificates, and may be empty.
	TLSCert, TLSKey, ClientCA string
	// Audience is what tokens must have been made for.
	Audience string
}

// LeaderElection reports whether several replicas choose one that works.
type LeaderElection struct {
	Enabled bool
	// ResourceLock is the kind of lock; "leases" is the only one that Kubernetes has left.
	ResourceLock string
	// Namespace and ID name the Lease. An empty Namespace is the Pod's own.
	Namespace, ID string
}

// Log says what is logged and how. The names are those of controller-runtime's zap flags.
type Log struct {
	// Devel changes the defaults of the others: console, debug, stack traces for errors.
	Devel bool
	// Encoder is "json" or "console".
	Encoder string
	// Level is "debug", "info", "error", "panic" or a verbosity above 0.
	Level string
	// StacktraceLevel is "info", "error" or "panic".
	StacktraceLevel string
	// TimeEncoding is one of TimeEncodings.
	TimeEncoding string
}

// Tracing says where spans go. Without an Endpoint the standard OTEL_* environment decides; without
// either, tracing is off.
type Tracing struct {
	// Endpoint is the URL of an OTLP collector.
	Endpoint string
	// SampleRatio is the share of changes that are traced, 0 to 1; negative leaves it to
	// OTEL_TRACES_SAMPLER.
	SampleRatio float64
	// NoOpSyncs exports the traces of syncs outside of a change that wrote nothing and did not
	// fail.
	NoOpSyncs bool
}

// The apply strategies.
const (
	DynamicApply    = "dynamic-apply"
	ServerSideApply = "server-side-apply"
)

// What the API server does with unknown and duplicate fields of children (its own names).
const (
	WarnFields   = "Warn"
	StrictFields = "Strict"
)

// TimeEncodings are the values of Log.TimeEncoding.
var TimeEncodings = []string{"epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"}

// DefaultConfig is the configuration without any flag.
//
// Metacontroller allows itself 5 requests a second, which holds a whole installation to about five
// syncs a second. API servers protect themselves by priority and fairness since Kubernetes 1.20, so
// the client's limit is only a belt against a runaway loop here: far above a healthy load, far
// below what would hurt one API server.
func DefaultConfig() Config {
	return Config{
		ClientQPS: 200, ClientBurst: 400, Workers: 5, SlowHookWaits: 500, RewriteLimit: 100, RewritePause: time.Minute,
		ApplyStrategy: DynamicApply, FieldManager: "metacontroller", FieldValidation: WarnFields,
		DiscoveryInterval: 30 * time.Second, CacheFlushInterval: 30 * time.Minute,
		CustomizeMaxAge: customize.DefaultMaxAge, EventsQPS: 1. / 300, EventsBurst: 25, GracePeriod: 30 * time.Second,
		StaleViewAfter: cache.DefaultStaleAfter,
		MetricsAddress: ":9999", HealthAddress: ":8081", PprofAddress: "0",
		Gateway:        Gateway{Audience: access.DefaultAudience},
		LeaderElection: LeaderElection{ResourceLock: "leases", ID: "metacontroller"},
		Tracing:        Tracing{SampleRatio: -1},
	}
}

// FlagError says which flag has a value that cannot be used, and what was expected.
type FlagError struct{ Flag, Value, Expected string }

// Error is one line.
func (e *FlagError) Error() string {
	return fmt.Sprintf("--%s: got %q, expected %s", e.Flag, e.Value, e.Expected)
}

// rule is one check of a value: ok or the flag, its value and what was expected.
type rule struct {
	ok              bool
	flag            string
	value, expected any
}

// Validate returns a *FlagError for the first value that cannot be used.
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
		oneOf("zap-time-encoding", c.Log.TimeEncoding, append([]string{""}, TimeEncodings...)...),
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
	for _, r := range rules {
		if !r.ok {
			return &FlagError{r.flag, fmt.Sprint(r.value), fmt.Sprint(r.expected)}
		}
	}
	return c.validateText()
}

// deletionLimit is DeletionLimit as a value; nil for none.
func (c *Config) deletionLimit() *plan.DeletionLimit {
	if c.DeletionLimit == "" {
		return nil
	}
	limit := plan.DeletionLimit(intstr.Parse(c.DeletionLimit))
	return &limit
}

// unused lists the flags that were given and change nothing.
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

// minMemoryBudget is the least that a process can work with.
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

// off reports whether an address switches its server off.
func off(address string) bool { return address == "" || address == "0" }
