package dev

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite the lines in testdata")

func decode(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// playSession makes the events of a session: a new parent, a changed one with a Secret, a fault of
// the hook, a write that is refused, a condition, and the end of the parent.
func playSession(t *testing.T, o *observer) {
	t.Helper()
	web := decode(t, `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"a","namespace":"shop"}}`)
	before := decode(t, `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"a","namespace":"shop"},
		"status":{"ready":1,"conditions":[{"type":"Ready","status":"False","reason":"Waits","message":"for\nPods",
		"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	after := decode(t, `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"a","namespace":"shop"},
		"status":{"ready":2,"observedGeneration":3,"conditions":[{"type":"Ready","status":"True"}]}}`)
	deployment := func(replicas, image, env string) *object.Object {
		return decode(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"shop",
			"resourceVersion":"`+replicas+`","annotations":{"metacontroller.k8s.io/last-applied-configuration":"`+replicas+`"}},
			"spec":{"replicas":`+replicas+`,"containers":[{"name":"init"},{"name":"web","image":"`+image+`"`+env+`}]},
			"status":{"replicas":`+replicas+`}}`)
	}
	secret := func(value string) *object.Object {
		return decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"other"},
			"data":{"password":"`+value+`"}}`)
	}
	at := func(w *object.Object, verb, why string) engine.Write {
		return engine.Write{Verb: verb, Ref: w.Ref(), Why: why}
	}
	update := func(verb string, from, to *object.Object, why string) engine.Write {
		w := at(to, verb, why)
		w.Before = from
		w.After = to
		return w
	}
	key := hook.ParentKey(web.Ref())
	s := engine.Sync{
		Controller: "composite/web", Key: key, Ops: []hook.Op{hook.Sync}, HookTime: 1234 * time.Microsecond,
		Duration: 45 * time.Millisecond, Result: "changed", CauseCount: 1,
		Causes: []engine.Cause{{Kind: engine.CauseObject, Ref: web.Ref()}},
		Writes: []engine.Write{
			at(deployment("1", "a", ""), "create", "desired, not there"), update(statusVerb, before, after, ""),
		},
	}
	o.Synced(s)
	s.Causes = []engine.Cause{
		{Kind: engine.CauseChild, Ref: secret("x").Ref(), Deleted: true}, {Kind: engine.CauseTrigger, Reason: "order 7"},
	}
	s.CauseCount = 5
	s.Writes = []engine.Write{
		update("update", deployment("1", "a", ""), deployment("2", "b", `,"env":[{"name":"A"}]`), "spec.replicas: 1 → 2"),
		update("update", secret("b25l"), secret("dHdv"), "data.password: b25l → dHdv"),
		at(web, "delete", "no longer desired"),
	}
	o.Synced(s)
	s.Causes = []engine.Cause{{Kind: engine.CauseRetry}}
	s.CauseCount = 1
	s.Writes = nil
	s.Retry = true
	s.Result, s.Err = "HookFailed", errors.New("sync http://127.0.0.1:1: status 500:\nKeyError")
	o.Synced(s)
	o.Synced(s) // only JSON has the same fault again
	refused := at(deployment("1", "a", ""), "create", "desired, not there")
	refused.Err = errors.New("create Deployment: forbidden")
	s.Result = "Forbidden"
	s.Err = refused.Err
	s.Writes = []engine.Write{refused}
	o.Synced(s)
	o.hookDown.Store(true) // printed neither as a sync nor as a condition
	s.Result = string(hook.Unreachable)
	o.Synced(s)
	o.Reported("composite/web", []hook.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: s.Result}})
	o.hookDown.Store(false)
	running := hook.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Running", Message: "it runs"}
	o.Reported("composite/web", []hook.Condition{running})
	o.Reported("composite/web", []hook.Condition{running})
	s = engine.Sync{
		Controller: "composite/web", Key: key, Duration: time.Millisecond, Result: gone, CauseCount: 1,
		Causes: []engine.Cause{{Kind: engine.CauseObject, Ref: web.Ref(), Deleted: true}},
	}
	o.Synced(s)
	s.Causes = []engine.Cause{{Kind: engine.CauseChild, Ref: secret("x").Ref(), Deleted: true}}
	o.Synced(s) // its children follow it
}

// TestLines prints the events of a session in each form.
func TestLines(t *testing.T) {
	var out strings.Builder
	for _, p := range []*printer{{}, {color: true}, {json: true}} {
		p.out = &out
		playSession(t, newObserver(p))
		if _, err := (&hookOutput{printer: p}).Write([]byte("listening\r\non 127.0.0.1:1\nhalf a line")); err != nil {
			t.Fatal(err)
		}
		p.notef("hook.py changed")
		p.problemf("the hook ended: %v", errors.New("exit status 1"))
	}
	for _, secret := range []string{"b25l", "dHdv"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("a value of a Secret is printed: %s", out.String())
		}
	}
	times := regexp.MustCompile(`\d\d:\d\d:\d\d|"time":"[^"]*"`)
	got := times.ReplaceAllString(out.String(), "TIME")
	const golden = "testdata/lines.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestIgnored passes over build output, unless it is part of the command.
func TestIgnored(t *testing.T) {
	o := &Options{Command: []string{"node", "dist/hook.js"}}
	for path, want := range map[string]bool{
		".": false, "src": false, "src/hook.ts": false, "dist": false, "build": true, "node_modules": true, ".git": true,
		"hook.pyc": true, "hook.py~": true, ".hook.py.swp": true, "a/4913": true,
	} {
		if got := o.ignored(path); got != want {
			t.Errorf("ignored(%q) = %v, want %v", path, got, want)
		}
	}
}

// TestLocalNeedsPrograms names what to set on a machine without a control plane, and refuses
// another cluster beside it.
func TestLocalNeedsPrograms(t *testing.T) {
	for _, name := range []string{"HOOKLOOP_CONTROLPLANE", "KUBEBUILDER_ASSETS", "XDG_DATA_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	o := Options{Files: []string{"../../../../examples/tenant"}, Local: true, Out: io.Discard}
	err := Run(t.Context(), o)
	for _, want := range []string{
		"--local: no control plane found: HOOKLOOP_CONTROLPLANE is not set", "Set KUBEBUILDER_ASSETS to a folder with",
		"(make controlplane), and set HOOKLOOP_CONTROLPLANE to its .cache/bin/controlplane",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Run = %v, want %q", err, want)
		}
	}
	o.Kubeconfig = "kubeconfig"
	var usage *UsageError
	if err := Run(t.Context(), o); !errors.As(err, &usage) {
		t.Errorf("with --kubeconfig: Run = %v, want a wrong option", err)
	}
}

// TestUnfinishedLine prints the output of a hook without line ends: parts of a bounded size, and
// the rest when the hook has ended.
func TestUnfinishedLine(t *testing.T) {
	var out strings.Builder
	h := &hookOutput{printer: &printer{out: &out}}
	for range 3 {
		if _, err := h.Write([]byte(strings.Repeat("x", maxPart))); err != nil {
			t.Fatal(err)
		}
		if len(h.rest) >= maxPart {
			t.Fatalf("%d bytes are kept, expected less than %d", len(h.rest), maxPart)
		}
	}
	if _, err := h.Write([]byte("KeyError")); err != nil {
		t.Fatal(err)
	}
	h.flush()
	h.flush()
	if got := strings.Count(out.String(), "│ x"); got != 3 || strings.Count(out.String(), "│ KeyError\n") != 1 {
		t.Errorf("got %d parts and the end %q, expected 3 parts and KeyError", got, out.String()[max(0, out.Len()-40):])
	}
}

// TestCleanupWithoutEngine ends a session before its engine is up.
func TestCleanupWithoutEngine(t *testing.T) {
	engine, end := context.WithCancel(t.Context())
	end()
	s := &session{declared: &declared{}, engineUp: make(chan struct{})}
	if err := s.cleanup(t.Context(), engine); err != nil {
		t.Error(err)
	}
}

// TestStdinIsReadOnce reads the file "-" again from memory when another file has changed.
func TestStdinIsReadOnce(t *testing.T) {
	const controller = `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController",
		"metadata":{"name":"web"},"spec":{"parentResource":{"apiVersion":"example.com/v1","resource":"webs"},
		"hooks":{"sync":{"webhook":{"url":"http://127.0.0.1:1/sync"}}}}}`
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = in
	t.Cleanup(func() { os.Stdin = before })
	if _, err := out.WriteString(controller); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	s := &session{Options: &Options{Files: []string{"-"}}}
	s.stdin, err = s.readStdin()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := s.read()
		if err != nil || len(d.controllers) != 1 {
			t.Fatalf("got %+v, %v, expected one controller", d, err)
		}
	}
}

// TestFixedManifestStartsTheHook starts a hook that has ended when a manifest changes, as the line
// about its end promises.
func TestFixedManifestStartsTheHook(t *testing.T) {
	var out strings.Builder
	p := &printer{out: &out}
	s := &session{
		Options: &Options{Command: []string{"/nonexistent/hook"}, Files: []string{"controller.yaml"}},
		print:   p, observer: newObserver(p), declared: &declared{},
	}
	s.handle(t.Context(), []string{"controller.yaml"})
	if !strings.Contains(out.String(), "controller.yaml changed: the hook is started again") {
		t.Errorf("got %q, expected a start of the hook", out.String())
	}
}

// TestTemporaryFileIsNotNamed has the burst of an editor, or of sed -i: a temporary file that
// becomes the changed one.
func TestTemporaryFileIsNotNamed(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("hook.py", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	p := &printer{out: &out}
	s := &session{
		Options: &Options{Command: []string{"/nonexistent/hook"}},
		print:   p, observer: newObserver(p), declared: &declared{},
	}
	s.handle(t.Context(), []string{"hook.py", "sedQ8x2Lk"})
	if !strings.Contains(out.String(), " hook.py changed: the hook is started again") {
		t.Errorf("got %q, expected a line with the changed file alone", out.String())
	}
}
