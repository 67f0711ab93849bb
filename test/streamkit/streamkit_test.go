// Package streamkit runs the kit of "hookloop verify-stream" against the reference hooks on the
// three SDKs, as real processes, and against hooks with planted faults.
package streamkit

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// starting is how long a hook's process may take until it listens.
const starting = 30 * time.Second

// waiting is how long a hook without faults may take for one message, on a busy machine.
const waiting = "1m"

// The outcomes of a dialogue, as the program prints them.
const (
	passed = "ok"
	failed = "FAIL"
)

// sdk is a reference hook on one SDK.
type sdk struct {
	name string
	spec func(t *testing.T) proc.Spec
}

var sdks = []sdk{{"go", golang}, {"python", python}, {"typescript", typescript}}

func hookFile(name string) string {
	return filepath.Join(cluster.Root(), "test", "streamkit", "hooks", name)
}

func golang(t *testing.T) proc.Spec {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hook")
	build := exec.Command("go", "build", "-o", binary, hookFile("golang"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return proc.Spec{Name: "golang", Path: binary}
}

func python(*testing.T) proc.Spec {
	return proc.Spec{Name: "hook.py", Path: "/usr/bin/python3", Args: []string{hookFile("hook.py")}, Env: []string{
		"PYTHONPATH=" + filepath.Join(cluster.Root(), "sdk", "python"), "PYTHONDONTWRITEBYTECODE=1",
	}}
}

func typescript(t *testing.T) proc.Spec {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return proc.Spec{Name: "hook.mjs", Path: node, Args: []string{hookFile("hook.mjs")}}
}

// start starts a hook until the test ends.
func start(t *testing.T, spec proc.Spec, flags ...string) *proc.Process {
	t.Helper()
	spec.Args = append(spec.Args, flags...)
	p, err := proc.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", spec.Name, p.Output())
		}
		_ = p.Stop(5 * time.Second) // a function may still sleep
	})
	return p
}

var (
	listensLine = regexp.MustCompile(`(?m)^listening on (\S+)$`)
	waitsLine   = regexp.MustCompile(`(?m)^waiting for a hook at (\S+)$`)
)

// listening returns the address at which a hook listens.
func listening(t *testing.T, p *proc.Process) string {
	t.Helper()
	return printedAddress(t, p, listensLine)
}

// printedAddress waits until a process prints a line with its address.
func printedAddress(t *testing.T, p *proc.Process, line *regexp.Regexp) string {
	t.Helper()
	deadline := time.NewTimer(starting)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if found := line.FindStringSubmatch(p.Output()); found != nil {
			return found[1]
		}
		select {
		case <-p.Done():
			t.Fatalf("%s has ended:\n%s", p.Name(), p.Output())
		case <-deadline.C:
			t.Fatalf("%s does not listen:\n%s", p.Name(), p.Output())
		case <-poll.C:
		}
	}
}

// run is one run of `hookloop verify-stream`.
type run struct {
	output   string
	exitCode int
	// outcomes holds the outcome of each dialogue by its name.
	outcomes map[string]string
}

var outcomeLine = regexp.MustCompile(`(?m)^(ok|FAIL|skip) +(\S+) `)

// verifyStream runs `hookloop verify-stream` with the flags. If dialIn is not nil, the program
// listens, and dialIn starts a hook that dials its address.
func verifyStream(t *testing.T, dialIn func(address string) *proc.Process, flags ...string) run {
	t.Helper()
	p, err := proc.Start(proc.Spec{
		Name: "hookloop verify-stream",
		Path: serve.Program("hookloop"),
		Args: append([]string{"verify-stream"}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() }) // it has ended, unless the test failed
	var hookEnds <-chan struct{}
	if dialIn != nil {
		hookEnds = dialIn(printedAddress(t, p, waitsLine)).Done()
	}
	select {
	case <-p.Done():
	case <-hookEnds:
		t.Fatalf("the hook ended before the dialogues did:\n%s", p.Output())
	}
	r := run{output: p.Output(), outcomes: map[string]string{}}
	var exit *exec.ExitError
	switch err := p.Err(); {
	case errors.As(err, &exit):
		r.exitCode = exit.ExitCode()
	case err != nil:
		t.Fatal(err)
	}
	for _, match := range outcomeLine.FindAllStringSubmatch(r.output, -1) {
		r.outcomes[match[2]] = match[1]
	}
	return r
}

// wantAllPassed fails the test if a dialogue failed or was skipped, or if few were played.
func (r run) wantAllPassed(t *testing.T) {
	t.Helper()
	for name, outcome := range r.outcomes {
		if outcome != passed {
			t.Errorf("%s: the outcome is %s, want %s", name, outcome, passed)
		}
	}
	if r.exitCode != 0 {
		t.Errorf("the exit code is %d, want 0", r.exitCode)
	}
	if len(r.outcomes) < 30 {
		t.Errorf("%d dialogues were played, expected at least 30", len(r.outcomes))
	}
	if t.Failed() {
		t.Logf("hookloop verify-stream printed:\n%s", r.output)
	}
}

// TestSDKsPass plays all dialogues with the reference hook on each SDK. No dialogue is skipped.
func TestSDKsPass(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			address := listening(t, start(t, s.spec(t), "--listen", "127.0.0.1:0"))
			verifyStream(t, nil, "--hook", address, "--transcript", "--wait", waiting).wantAllPassed(t)
		})
	}
}

// TestSDKsPassDialledIn plays the dialogues with hooks that dial in over TLS.
func TestSDKsPassDialledIn(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	certificate, key := authority.Issue("gateway")
	folder := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := file("ca.crt", authority.PEM)
	token := file("token", []byte("kit"))
	flags := []string{
		"--listen", "127.0.0.1:0", "--tls-cert", file("tls.crt", certificate), "--tls-key", file("tls.key", key),
		"--transcript", "--wait", waiting,
	}
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			spec := s.spec(t)
			dialIn := func(address string) *proc.Process {
				return start(t, spec, "--attach", address, "--worker", "kit", "--ca-file", ca, "--token-file", token)
			}
			verifyStream(t, dialIn, flags...).wantAllPassed(t)
		})
	}
}
