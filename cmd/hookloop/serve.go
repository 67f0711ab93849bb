package main

import (
	"github.com/hookloop/hookloop/cmd/hookloop/internal/overlay"
	"github.com/hookloop/hookloop/server"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newServe() *cobra.Command {
	config := server.DefaultConfig()
	config.Version = readBuild().version
	var files []string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run all declared controllers of a cluster, or those of files",
		Example: `  hookloop serve
  hookloop serve -f controllers/ --kubeconfig ~/.kube/config`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(files) > 0 {
				declared, err := overlay.From(overlay.Files(files...))
				if err != nil {
					return err
				}
				config.Declared = declared
			}
			return server.Run(cmd.Context(), config)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or folder with the controllers to run in place of those of the cluster; - for stdin; repeatable")
	bind(cmd.Flags(), &config)
	return cmd
}

// bind declares the flags of "hookloop serve". Flags that Metacontroller has keep their names and
// meanings. The values in c are the defaults.
func bind(f *pflag.FlagSet, c *server.Config) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig, "kubeconfig file; empty uses the ServiceAccount of the Pod")
	f.Float64Var(&c.ClientQPS, "client-go-qps", c.ClientQPS, "requests per second to the API server; -1 for no limit")
	f.IntVar(&c.ClientBurst, "client-go-burst", c.ClientBurst, "burst of requests to the API server above client-go-qps")
	f.StringVar(&c.TargetSelector, "target-label-selector", c.TargetSelector,
		"run only controllers with matching labels; empty runs all")
	f.DurationVar(&c.DiscoveryInterval, "discovery-interval", c.DiscoveryInterval,
		"longest time until a change of aggregated APIs is noticed; CRDs are watched")
	f.DurationVar(&c.CacheFlushInterval, "cache-flush-interval", c.CacheFlushInterval,
		"no effect, accepted for compatibility: caches follow watches")
	f.DurationVar(&c.StaleViewAfter, "stale-view-after", c.StaleViewAfter,
		"how long a resource's watch may fail before parents that need the resource are not synced")
	f.StringSliceVar(&c.UnrestrictedSecretNamespaces, "unrestricted-secret-namespaces",
		c.UnrestrictedSecretNamespaces, "namespaces with Secrets that hooks may have sent to any address; * for all")
	f.StringSliceVar(&c.HookSocketFolders, "hook-socket-folders", c.HookSocketFolders,
		"folders in which hooks may listen on unix sockets (unix:///folder/name)")
	f.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain,
		"domain of the cluster's Services; empty takes it from /etc/resolv.conf, else cluster.local")
	f.StringVar(&c.MemoryBudget, "memory-budget", c.MemoryBudget,
		"memory that the process may use, such as 512Mi; 0 for no limit; empty takes the container's limit")
	f.DurationVar(&c.CustomizeMaxAge, "customize-max-age", c.CustomizeMaxAge,
		"how long the answer of a customize hook counts at most")
	f.Float32Var(&c.EventsQPS, "events-qps", c.EventsQPS, "Events per second about one object")
	f.IntVar(&c.EventsBurst, "events-burst", c.EventsBurst, "burst of Events about one object")
	f.DurationVar(&c.GracePeriod, "shutdown-grace-period", c.GracePeriod,
		"time for running syncs to finish after SIGTERM; a second signal ends them immediately")
	bindSyncs(f, c)
	bindRecording(f, &c.Recording)
	bindWrites(f, c)
	bindAddresses(f, c)
	bindGateway(f, &c.Gateway)
	bindLeaderElection(f, &c.LeaderElection)
	bindLog(f, &c.Log)
	bindTracing(f, &c.Tracing)
}

func bindSyncs(f *pflag.FlagSet, c *server.Config) {
	f.IntVar(&c.Workers, "workers", c.Workers,
		"parents that each controller syncs at a time, without those that have waited for their hook for a second")
	f.IntVar(&c.SlowHookWaits, "slow-hook-waits", c.SlowHookWaits,
		"syncs of all controllers that may wait for slow hooks beside the workers")
	f.StringVar(&c.DeletionLimit, "deletion-limit", c.DeletionLimit,
		"children that one answer may have deleted, as a number or a percentage of a parent's children; empty for no limit")
	f.IntVar(&c.RewriteLimit, "rewrite-limit", c.RewriteLimit,
		"rewrites of one field within a minute, without a change by a user, that open its parent's circuit; 0 for no limit")
	f.DurationVar(&c.RewritePause, "rewrite-pause", c.RewritePause,
		"time without writes for a parent with an open circuit")
}

func bindRecording(f *pflag.FlagSet, r *server.Recording) {
	f.StringVar(&r.Dir, "record-dir", r.Dir,
		"folder for the last questions and answers of each parent, with masked Secrets; empty records nothing")
	f.IntVar(&r.PerParent, "record-per-parent", r.PerParent, "questions that are kept for each parent")
	f.StringVar(&r.MaxBytes, "record-max-bytes", r.MaxBytes, "size of all recordings, such as 256Mi; the oldest go first")
}

func bindWrites(f *pflag.FlagSet, c *server.Config) {
	f.StringVar(&c.ApplyStrategy, "apply-strategy", c.ApplyStrategy,
		"how children are written: "+server.DynamicApply+" or "+server.ServerSideApply)
	f.StringVar(&c.FieldManager, "apply-strategy-ssa-field-manager", c.FieldManager, "field manager of server-side apply")
	f.StringVar(&c.FieldValidation, "field-validation", c.FieldValidation, "unknown fields of children: "+
		server.WarnFields+" (dropped and reported) or "+server.StrictFields+" (the child is refused)")
}

func bindAddresses(f *pflag.FlagSet, c *server.Config) {
	f.StringVar(&c.MetricsAddress, "metrics-address", c.MetricsAddress, "address of /metrics; 0 for none")
	f.StringVar(&c.HealthAddress, "health-probe-bind-address", c.HealthAddress,
		"address of /healthz and /readyz; 0 for none")
	f.StringVar(&c.PprofAddress, "pprof-address", c.PprofAddress, "address of /debug/pprof/; 0 for none")
}

func bindGateway(f *pflag.FlagSet, g *server.Gateway) {
	f.StringVar(&g.Address, "gateway-address", g.Address, "address where hooks dial in; empty or 0 for none")
	f.StringVar(&g.TLSCert, "gateway-tls-cert", g.TLSCert, "PEM file with the gateway's certificate")
	f.StringVar(&g.TLSKey, "gateway-tls-key", g.TLSKey, "PEM file with the certificate's key")
	f.StringVar(&g.ClientCA, "gateway-client-ca", g.ClientCA,
		"PEM file with the authorities of client certificates; empty accepts tokens only")
	f.StringVar(&g.Audience, "gateway-audience", g.Audience, "audience that the tokens of hooks must have")
}

func bindLeaderElection(f *pflag.FlagSet, l *server.LeaderElection) {
	f.BoolVar(&l.Enabled, "leader-election", l.Enabled, "let one of several replicas work while the others wait")
	f.StringVar(&l.ResourceLock, "leader-election-resource-lock", l.ResourceLock, "kind of lock: leases")
	f.StringVar(&l.Namespace, "leader-election-namespace", l.Namespace, "namespace of the Lease; empty is the Pod's own")
	f.StringVar(&l.ID, "leader-election-id", l.ID, "name of the Lease")
	f.BoolVar(&l.WarmStandby, "leader-election-warm-standby", l.WarmStandby,
		"fill the caches of a replica that waits, so that it takes over without a list; it then needs the leader's memory")
}

func bindLog(f *pflag.FlagSet, l *server.Log) {
	f.BoolVar(&l.Devel, "zap-devel", l.Devel,
		"development defaults: console, debug, stack traces for errors; else json, info, no stack traces")
	f.StringVar(&l.Encoder, "zap-encoder", l.Encoder, "log lines as json or console")
	f.StringVar(&l.Level, "zap-log-level", l.Level,
		"least level that is logged: debug, info, error, panic or a verbosity above 0")
	f.StringVar(&l.StacktraceLevel, "zap-stacktrace-level", l.StacktraceLevel,
		"least level with a stack trace: info, error or panic")
	f.StringVar(&l.TimeEncoding, "zap-time-encoding", l.TimeEncoding,
		"times as epoch, millis, nano, iso8601, rfc3339 or rfc3339nano")
}

func bindTracing(f *pflag.FlagSet, t *server.Tracing) {
	f.StringVar(&t.Endpoint, "tracing-endpoint", t.Endpoint,
		"URL of an OTLP collector; empty leaves it to the OTEL_* environment, without which tracing is off")
	f.Float64Var(&t.SampleRatio, "tracing-sample-ratio", t.SampleRatio,
		"share of changes that are traced, 0 to 1; -1 leaves it to OTEL_TRACES_SAMPLER")
	f.BoolVar(&t.NoOpSyncs, "tracing-noop-syncs", t.NoOpSyncs,
		"export syncs outside of a change that wrote nothing and did not fail, too")
}
