package server

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		// want is the message; empty for a good configuration.
		want string
	}{
		{"the defaults", func(*Config) {}, ""},
		{"no limit on requests", func(c *Config) { c.ClientQPS, c.ClientBurst = -1, 0 }, ""},
		{"everything off", func(c *Config) { c.MetricsAddress, c.HealthAddress, c.PprofAddress = "0", "0", "" }, ""},
		{"a selector", func(c *Config) { c.TargetSelector = "team in (shop, web),!test" }, ""},
		{"a verbosity", func(c *Config) { c.Log.Level = "5" }, ""},
		{"qps of zero", func(c *Config) { c.ClientQPS = 0 },
			`--client-go-qps: got "0", expected a number above 0, or -1 for no limit`},
		{"burst of zero", func(c *Config) { c.ClientBurst = 0 }, `--client-go-burst: got "0", expected a number above 0`},
		{"no time for discovery", func(c *Config) { c.DiscoveryInterval = 0 },
			`--discovery-interval: got "0s", expected a duration above 0`},
		{"negative grace", func(c *Config) { c.GracePeriod = -time.Second },
			`--shutdown-grace-period: got "-1s", expected a duration of 0 or more`},
		{"events", func(c *Config) { c.EventsQPS = 0 }, `--events-qps: got "0", expected a number above 0`},
		{"events at once", func(c *Config) { c.EventsBurst = 0 }, `--events-burst: got "0", expected a number above 0`},
		{"a lock that is gone", func(c *Config) { c.LeaderElection.ResourceLock = "endpoints" },
			`--leader-election-resource-lock: got "endpoints", expected leases`},
		{"election without a name", func(c *Config) {
			c.LeaderElection = LeaderElection{Enabled: true,
				ResourceLock: "leases"}
		}, `--leader-election-id: got "", expected the name of a Lease`},
		{"verbosity of zero", func(c *Config) { c.Log.Level = "0" },
			`--zap-log-level: got "0", expected debug, info, error, panic or a verbosity above 0`},
		{"stack traces", func(c *Config) { c.Log.StacktraceLevel = "warn" },
			`--zap-stacktrace-level: got "warn", expected info, error, panic`},
		{"times", func(c *Config) { c.Log.TimeEncoding = "stardate" },
			`--zap-time-encoding: got "stardate", expected epoch, millis, nano, iso8601, rfc3339, rfc3339nano`},
		{"a strategy that is none", func(c *Config) { c.ApplyStrategy = "merge" },
			`--apply-strategy: got "merge", expected dynamic-apply, server-side-apply`},
		{"no field manager", func(c *Config) { c.FieldManager = "" },
			`--apply-strategy-ssa-field-manager: got "", expected the name of a field manager`},
		{"a port without colon", func(c *Config) { c.HealthAddress = "8081" },
			`--health-probe-bind-address: got "8081", expected host:port, :port, or 0 for none`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := DefaultConfig()
			test.change(&c)
			err := c.Validate()
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			var flag *FlagError
			if !errors.As(err, &flag) || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestUnusedFlagsAreNamed(t *testing.T) {
	c := DefaultConfig()
	if got := c.unused(); len(got) > 0 {
		t.Errorf("the defaults name %v, want nothing", got)
	}
	c.CacheFlushInterval = time.Minute
	c.FieldManager = "other"
	if diff := cmp.Diff([]string{"cache-flush-interval"}, c.unused()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
