// Package streamkit runs the kit of "hookloop verify-stream" against the reference hooks on the
// three SDKs, as real processes, and against hooks with planted faults.
package streamkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/verifystream"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/test/cluster"
)

// starting is how long a hook's process may take until it listens.
const starting = 30 * time.Second

// waiting is how long a hook without faults may take for one message, on a busy machine.
const waiting = time.Minute

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

var listens = regexp.MustCompile(`(?m)^listening on (\S+)$`)

// listening returns the address of a hook.
func listening(t *testing.T, p *proc.Process) string {
	t.Helper()
	deadline := time.NewTimer(starting)
	defer deadline.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		if found := listens.FindStringSubmatch(p.Output()); found != nil {
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

// verify plays the dialogues with a hook that listens.
func verify(t *testing.T, address string, o streamkit.Options) ([]streamkit.Result, string) {
	t.Helper()
	var out strings.Builder
	results, err := streamkit.Dial(t.Context(), streamkit.DialOptions{Options: o, Address: address}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return results, out.String()
}

// TestSDKsPass plays all dialogues with the reference hook on each SDK. No dialogue is skipped.
func TestSDKsPass(t *testing.T) {
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			address := listening(t, start(t, s.spec(t), "--listen", "127.0.0.1:0"))
			results, out := verify(t, address, streamkit.Options{Transcript: true, Wait: waiting})
			for _, r := range results {
				if r.Outcome != streamkit.Passed {
					t.Errorf("%s:\n%s", r.Name, out)
				}
			}
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
	o := streamkit.ListenOptions{
		Address: "127.0.0.1:0", CertFile: file("tls.crt", certificate), KeyFile: file("tls.key", key),
		Options: streamkit.Options{Transcript: true, Wait: waiting},
	}
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			spec := s.spec(t)
			o := o
			o.Listening = func(address string) {
				start(t, spec, "--attach", address, "--worker", "kit", "--ca-file", ca, "--token-file", token)
			}
			var out strings.Builder
			results, err := streamkit.Listen(t.Context(), o, &out)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range results {
				if r.Outcome != streamkit.Passed {
					t.Errorf("%s:\n%s", r.Name, out.String())
				}
			}
			if len(results) < 30 {
				t.Errorf("played %d dialogues, expected at least 30", len(results))
			}
		})
	}
}
