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

// Config configures the process. Begin with [DefaultConfig] and change what should differ: the zero
// value of a flag is not its default.
type Config struct {
	// Flags is what the command line sets. Its fields can be used as fields of Config.
	Flags

	// Version is the version of the program, for logs, metrics, traces and the user agent.
	Version string

	// Rest is the client configuration for the API server. nil uses Flags.Kubeconfig.
	Rest *rest.Config

	// Controllers are the controllers in Go of this program (packages controller and actor). They run
	// beside the declared controllers.
	Controllers []controller.Declared
	// Scheme has the Go types that Controllers use. nil uses the scheme of client-go, which has the
	// types of Kubernetes.
	Scheme *runtime.Scheme
	// ControllersOnly runs Controllers and no declared controllers. The CRDs of declared controllers
	// need not be installed then, and Hooks must be empty.
	ControllersOnly bool

	// Hooks are hooks that are Go functions of this program, by the name in the spec of a declared
	// controller (spec.hooks.sync.inproc.name).
	Hooks map[string]Hook

	// Transports are transports that this program adds to Hookloop's own, by the name with which a
	// hook selects one (spec.hooks.sync.transport.name: nats). A name has at most 63 lower case
	// letters, digits and hyphens. Package transports shows how to write one.
	Transports hook.Openers

	// Declared has the declared controllers of this process. It takes the place of those in the
	// cluster, which then needs none of Hookloop's CRDs. nil runs those in the cluster.
	Declared Declared
	// Observer is called after each sync. It may be nil.
	Observer engine.Observer
	// Steps lets the caller decide when a controller takes its next key. nil lets controllers run
	// freely.
	Steps *engine.Steps
}

// Flags are the settings that the flags of "hookloop serve" set. The reference of the flags explains
// them: docs/reference/flags.md.
type Flags struct {
	// Kubeconfig is the path of a kubeconfig file. Empty uses the ServiceAccount of the Pod.
	Kubeconfig string
	// ClientQPS limits the requests per second to the API server, and ClientBurst is the number that
	// may exceed it at once. A negative ClientQPS sets no limit; 0 is invalid.
	ClientQPS   float64
	ClientBurst int

	// Workers is the number of parents that one controller syncs at the same time.
	Workers int
	// SlowHookWaits is the number of syncs, of all controllers, that may wait for a slow hook without
	// keeping a worker busy.
	SlowHookWaits int
	// DeletionLimit is the largest number of children that one answer may delete, as a number or as a
	// percentage of the parent's children. A controller's spec.deletionLimit takes precedence. Empty
	// sets no limit.
	DeletionLimit string
	// RewriteLimit is the number of times that one field may be rewritten within a minute without a
	// change by a user, for example because another controller sets it back. After that, nothing is
	// written for the parent, or for the key of a controller in Go, for the time of RewritePause. 0
	// sets no limit.
	RewriteLimit int
	RewritePause time.Duration
	// TargetSelector selects the declared controllers to run, by their labels. Empty runs all of them.
	TargetSelector string
	// ApplyStrategy is [DynamicApply] or [ServerSideApply]. FieldManager is the field manager for
	// server-side apply.
	ApplyStrategy string
	FieldManager  string
	// FieldValidation is [WarnFields] or [StrictFields]. The API server drops unknown fields of
	// children with a warning, or rejects the children.
	FieldValidation string
	// DiscoveryInterval is the longest time until the process notices that the API server serves
	// other resources, if no watch shows it.
	DiscoveryInterval time.Duration
	// StaleViewAfter is how long the list or watch of a resource may fail before parents that need the
	// resource are no longer synced.
	StaleViewAfter time.Duration
	// CacheFlushInterval has no effect, because caches follow watches. It exists for compatibility
	// with Metacontroller.
	CacheFlushInterval time.Duration
	// CustomizeMaxAge is how long the answer of a customize hook is used before the hook is asked
	// again.
	CustomizeMaxAge time.Duration
	// EventsQPS and EventsBurst limit the Events about one object: EventsQPS a second, after the first
	// EventsBurst.
	EventsQPS   float32
	EventsBurst int
	// GracePeriod is how long running syncs may continue after the process was asked to stop.
	GracePeriod time.Duration

	// UnrestrictedSecretNamespaces are the namespaces whose Secrets may be sent to any address, as in
	// Metacontroller. "*" means all namespaces.
	UnrestrictedSecretNamespaces []string
	// ClusterDomain is the domain of the cluster's Services. Empty reads it from the search path in
	// /etc/resolv.conf, and falls back to cluster.local.
	ClusterDomain string

	// HookSocketFolders are the folders in which hooks may listen on unix sockets, such as a volume
	// that the engine shares with hooks in its own Pod. Everyone who may create a controller can have
	// the engine connect to each socket in them.
	HookSocketFolders []string

	// MemoryBudget is the memory that the process should use at most, as a quantity ("512Mi"). "0"
	// sets no limit. Empty uses GOMEMLIMIT if it is set, else the limit of the container, else a
	// quarter of the machine's memory.
	MemoryBudget string

	// The addresses to listen on. "0" or empty turns the server off.
	MetricsAddress, HealthAddress, PprofAddress string

	Recording      Recording
	Gateway        Gateway
	LeaderElection LeaderElection
	Log            Log
	Tracing        Tracing
}

// Hook is a hook that runs in this process: a hook.Composite, hook.Decorator or hook.Mapper of the
// Go SDK, or another value that registers a hook service of the gRPC contract.
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

// The values of [Flags].ApplyStrategy.
const (
	DynamicApply    = "dynamic-apply"
	ServerSideApply = "server-side-apply"
)

// The values of [Flags].FieldValidation.
const (
	WarnFields   = "Warn"
	StrictFields = "Strict"
)

// timeEncodings are the values of Log.TimeEncoding.
var timeEncodings = []string{"epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"}

// DefaultConfig returns the configuration of "hookloop serve" without any flag.
//
// Metacontroller's limit is 5 requests a second, about five syncs a second for a whole
// installation. API servers protect themselves by priority and fairness since Kubernetes 1.20, so
// the client's limit only guards against a runaway loop: it is far above a healthy load and far
// below the capacity of one API server.
func DefaultConfig() Config {
	return Config{Flags: Flags{
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
	}}
}

// FlagError reports a flag with an invalid value. Flag is its name without dashes, and Expected
// describes the valid values.
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
