package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndTest(m)) }

func buildAndTest(m *testing.M) int {
	folder, err := os.MkdirTemp("", "hookloop-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // leftovers in the temporary folder do no harm
	binary = filepath.Join(folder, "hookloop")
	if out, err := exec.Command("go", "build", "-ldflags", "-X main.version=v1.2.3 -X main.commit=abc", "-o",
		binary, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// execute runs the binary outside of any cluster and returns its exit code and output.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return executeWith(t, nil, args...)
}

// executeWith is execute with more variables of the environment.
func executeWith(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, env...)
	var out, errs strings.Builder
	cmd.Stdout = &out
	cmd.Stderr = &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"unknown flag", []string{"serve", "--frobnicate"}, 2,
			`hookloop: unknown flag: --frobnicate, expected one of those that "hookloop serve --help" lists`},
		{"unknown command", []string{"server"}, 2,
			`hookloop: hookloop: got argument "server", expected flags only; see "hookloop --help"`},
		{"stray argument", []string{"serve", "now"}, 2,
			`hookloop: hookloop serve: got argument "now", expected flags only; see "hookloop serve --help"`},
		{"number that is none", []string{"serve", "--workers=many"}, 2,
			`hookloop: --workers: got "many", expected a whole number`},
		{"number out of range", []string{"serve", "--workers=0"}, 2,
			`hookloop: --workers: got "0", expected a number above 0`},
		{"duration that is none", []string{"serve", "--discovery-interval=30"}, 2,
			`hookloop: --discovery-interval: got "30", expected a duration such as 30s or 5m`},
		{"flag without value", []string{"serve", "--metrics-address"}, 2,
			`hookloop: --metrics-address: got no value, expected a value`},
		{"address without port", []string{"serve", "--metrics-address=localhost"}, 2,
			`hookloop: --metrics-address: got "localhost", expected host:port, :port, or 0 for none`},
		{"word that is not in the list", []string{"serve", "--zap-encoder=xml"}, 2,
			`hookloop: --zap-encoder: got "xml", expected json, console`},
		{"log level", []string{"serve", "--zap-log-level=loud"}, 2,
			`hookloop: --zap-log-level: got "loud", expected debug, info, error, panic or a verbosity above 0`},
		{"apply strategy", []string{"serve", "--apply-strategy=merge"}, 2,
			`hookloop: --apply-strategy: got "merge", expected dynamic-apply, server-side-apply`},
		{"tracing endpoint without scheme", []string{"serve", "--tracing-endpoint=localhost:4318"}, 2,
			`hookloop: --tracing-endpoint: got "localhost:4318", expected the URL of an OTLP collector such as ` +
				`http://localhost:4318`},
		{"memory budget that is none", []string{"serve", "--memory-budget=lots"}, 2,
			`hookloop: --memory-budget: got "lots", expected a quantity of at least 128Mi such as 512Mi, or 0 for no limit`},
		{"memory budget too small", []string{"serve", "--memory-budget=64Mi"}, 2,
			`hookloop: --memory-budget: got "64Mi", expected a quantity of at least 128Mi such as 512Mi, or 0 for no limit`},
		{"sample ratio above 1", []string{"serve", "--tracing-sample-ratio=2"}, 2,
			`hookloop: --tracing-sample-ratio: got "2", expected a number from 0 to 1`},
		{"a hook that both listens and dials in", []string{"verify-stream", "--hook=a:1", "--listen=:1"}, 2,
			`hookloop: verify-stream: --hook and --listen are both set or both empty, expected one of them`},
		{"a gateway without a certificate", []string{"verify-stream", "--listen=:1"}, 2,
			`hookloop: verify-stream: --listen needs --tls-cert and --tls-key, because hooks dial in over TLS`},
		{"an unknown dialogue", []string{"verify-stream", "--hook=127.0.0.1:1", "--only=x", "--skip=y"}, 2,
			`hookloop: verify-stream: there is no dialogue "x"; hookloop verify-stream --list prints the names`},
		{"a negative wait", []string{"verify-stream", "--hook=127.0.0.1:1", "--wait=-1s"}, 2,
			`hookloop: verify-stream: wait: got -1s, expected a time above 0`},
		{"authorities that are no file", []string{"verify-stream", "--hook=127.0.0.1:1", "--ca-file=none.pem"}, 2,
			`hookloop: verify-stream: authorities: open none.pem: no such file or directory`},
		{"an address with a password that is no URL", []string{"verify", "--hook=http://user:secret@"}, 2,
			`hookloop: --hook: the address of sync is no URL, expected http://host/path or https://host/path`},
		{"kubeconfig that is not there", []string{"serve", "--kubeconfig=/none"}, 1,
			`hookloop: --kubeconfig: stat /none: no such file or directory`},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := execute(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if diff := cmp.Diff(test.stderr+"\n", stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if stdout != "" {
				t.Errorf("stdout has %q, want nothing", stdout)
			}
		})
	}
}

func TestOutsideOfACluster(t *testing.T) {
	code, _, stderr := execute(t, "serve")
	if code != 1 ||
		!strings.HasPrefix(stderr, "hookloop: --kubeconfig is empty, which needs the ServiceAccount of a Pod: ") ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d and %q, want 1 and one line about --kubeconfig", code, stderr)
	}
}

// TestStopBeforeStart stops a process that still waits for its API server.
func TestStopBeforeStart(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	nowhere := `{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(nowhere), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--kubeconfig="+kubeconfig, "--metrics-address=0",
		"--health-probe-bind-address=0")
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waiting := false
	for lines := bufio.NewScanner(logs); lines.Scan(); {
		if !waiting && strings.Contains(lines.Text(), "waiting for the API server") {
			waiting = true
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil || !waiting {
		t.Errorf("SIGTERM ends it with %v (waited for the API server: %v), want exit code 0", err, waiting)
	}
}

// TestInterrupted interrupts a command while it waits for its hook to listen.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	controller := filepath.Join(dir, "controller.yaml")
	started := filepath.Join(dir, "started")
	declared := `{"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
		"metadata": {"name": "web"}, "spec": {"generateSelector": true,
		"parentResource": {"apiVersion": "example.com/v1", "resource": "webs"}, "childResources": [],
		"hooks": {"sync": {"grpc": {"target": "127.0.0.1:1", "insecure": true}}}}}`
	if err := errors.Join(os.WriteFile(controller, []byte(declared), 0o600), syscall.Mkfifo(started, 0o600)); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(started, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close() //nolint:errcheck // it was only read
	cmd := exec.Command(binary, "verify", "-f", controller, "--", "sh", "-c", "echo >"+started+"; exec sleep 1000")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := errors.Join(cmd.Start(), pipe.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
		t.Fatal(err)
	}
	_, startErr := pipe.Read(make([]byte, 1))
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // the exit code follows
	const want = "hookloop: interrupted by a signal before the end\n"
	if startErr != nil || cmd.ProcessState.ExitCode() != exitNoAnswer || !strings.HasSuffix(stderr.String(), want) {
		t.Errorf("the hook starts with %v; SIGINT ends it with %d and %q, want %d and %q", startErr,
			cmd.ProcessState.ExitCode(), stderr.String(), exitNoAnswer, want)
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := execute(t, "version")
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	if want := "hookloop v1.2.3\ncommit abc\ngo"; !strings.HasPrefix(stdout, want) {
		t.Errorf("got %q, want it to start with %q", stdout, want)
	}
}

// TestFlags holds the names and defaults that scripts rely on. A comment explains each default that
// differs from Metacontroller's.
func TestFlags(t *testing.T) {
	want := map[string]string{
		"discovery-interval":               "30s",
		"cache-flush-interval":             "30m0s",
		"metrics-address":                  ":9999",
		"health-probe-bind-address":        ":8081",
		"pprof-address":                    "0",
		"kubeconfig":                       "",
		"client-go-qps":                    "200",
		"client-go-burst":                  "400", // 5 and 10 there: about five syncs a second in all
		"workers":                          "5",
		"events-qps":                       "0.0033333334",
		"events-burst":                     "25",
		"leader-election":                  "false",
		"leader-election-resource-lock":    "leases",
		"leader-election-namespace":        "",
		"leader-election-id":               "metacontroller",
		"leader-election-warm-standby":     "true",
		"target-label-selector":            "",
		"apply-strategy":                   "dynamic-apply",
		"apply-strategy-ssa-field-manager": "metacontroller",
		"zap-devel":                        "false",
		"zap-encoder":                      "",
		"zap-log-level":                    "",
		"zap-stacktrace-level":             "",
		"zap-time-encoding":                "",
		// Metacontroller does not have these.
		"slow-hook-waits":                "500",
		"stale-view-after":               "10s",
		"deletion-limit":                 "",
		"rewrite-limit":                  "100",
		"rewrite-pause":                  "1m0s",
		"customize-max-age":              "20m0s",
		"shutdown-grace-period":          "30s",
		"tracing-endpoint":               "",
		"tracing-sample-ratio":           "-1",
		"tracing-noop-syncs":             "false",
		"memory-budget":                  "",
		"field-validation":               "Warn",
		"filename":                       "[]",
		"record-dir":                     "",
		"record-max-bytes":               "256Mi",
		"record-per-parent":              "20",
		"unrestricted-secret-namespaces": "[]",
		"hook-socket-folders":            "[]",
		"cluster-domain":                 "",
		"gateway-address":                "",
		"gateway-tls-cert":               "",
		"gateway-tls-key":                "",
		"gateway-client-ca":              "",
		"gateway-audience":               "hookloop",
	}
	got := map[string]string{}
	newServe().Flags().VisitAll(func(f *pflag.Flag) {
		got[f.Name] = f.DefValue
		if f.Usage == "" {
			t.Errorf("--%s has no help text", f.Name)
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
