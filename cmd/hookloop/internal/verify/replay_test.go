package verify

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/recording"
)

// record writes the recording of a hook's answer about the subject of some files.
func record(t *testing.T, o Options) string {
	t.Helper()
	o.Version = "v2"
	s, err := load(o)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := resolve(s, o)
	if err != nil {
		t.Fatal(err)
	}
	e := &examiner{subject: s, targets: targets, report: newReport(s, targets)}
	defer e.close()
	r := &round{examiner: e, ctx: t.Context(), ask: e.direct, over: overWebhook}
	q := r.question(hook.Sync, s.parent, nil)
	got := r.ask(t.Context(), q)
	var failed error
	if got.failure != nil {
		failed = &hook.Error{Kind: hook.Failed, Hook: "sync", Err: errors.New(got.failure.message)}
	}
	recorded, err := recording.New(q, got.answer, failed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(recorded)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "20261123T000000.000000000Z-sync.json")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func counting(value string) func(question) (any, []any) {
	return func(question) (any, []any) {
		return map[string]any{"n": value}, []any{configMap("a", map[string]any{"k": value}), configMap("b", nil)}
	}
}

// TestReplay asks the hook that was recorded, another build of it, and none.
func TestReplay(t *testing.T) {
	t.Parallel()
	one := serveAnswers(t, counting("one"))
	file := record(t, Options{Addresses: []string{one}, Files: []string{file(t, declaring)}})
	replay := func(address string) *ReplayReport {
		t.Helper()
		report, err := Replay(t.Context(), ReplayOptions{Files: []string{filepath.Dir(file)}, Addresses: []string{address}})
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if report := replay(one); report.Different() != 0 || len(report.Replayed) != 1 {
		t.Errorf("the recorded hook differs: %+v", report)
	}
	report := replay(serveAnswers(t, counting("two")))
	var b strings.Builder
	if err := report.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`ConfigMap.v1 "shop/a"`, `- data.k: "one"`, `+ data.k: "two"`, `+ n: "two"`, "1 with another answer",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %s:\n%s", want, b.String())
		}
	}
	if report.Different() != 1 {
		t.Errorf("got %d different, want 1", report.Different())
	}
	if report := replay("http://127.0.0.1:1/sync"); report.Different() != 1 || report.Replayed[0].Error == "" {
		t.Errorf("a hook that is not there: %+v", report.Replayed)
	}
}

// TestVerifyRecording asks a recorded question, with the recorded controller and parent.
func TestVerifyRecording(t *testing.T) {
	t.Parallel()
	good := serveAnswers(t, counting("one"))
	recorded := record(t, Options{Addresses: []string{good}, Files: []string{file(t, declaring)}})
	report := verify(t, Options{Addresses: both(good), Recordings: []string{recorded}})
	if report.Faults() > 0 || len(report.Skipped) > 0 {
		t.Error(text(t, report))
	}
	failing := serveAnswers(t, func(q question) (any, []any) {
		if q.Parent.Spec["text"] == "some" {
			panic("the recorded parent")
		}
		return nil, nil
	})
	report = verify(t, Options{
		Addresses: both(failing), Recordings: []string{recorded},
		Files: []string{file(t, strings.Split(declaring, "---")[0])},
	})
	finding(t, report, ruleCallFailed)
}

// TestReplayCustomize replays a question about rules. It has no observed objects, so that the
// custom kinds of the children are not known.
func TestReplayCustomize(t *testing.T) {
	t.Parallel()
	controller := edited(declaring,
		"- apiVersion: v1\n    resource: configmaps", "- apiVersion: demo.example.com/v1\n    resource: gadgets")
	s, err := load(Options{Files: []string{file(t, controller), file(t, gadgets)}})
	if err != nil {
		t.Fatal(err)
	}
	q := &hook.Question{Kind: hook.Composite, Op: hook.Customize, Controller: s.controller, Parent: s.parent}
	recorded, err := recording.New(q, &hook.Answer{Related: []hook.RelatedRule{{
		APIVersion: "v1", Resource: "configmaps", LabelSelector: json.RawMessage(`{"matchLabels":{"for":"demo"}}`),
	}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	recorded.Hook.Version = "v2"
	data, err := json.Marshal(recorded)
	if err != nil {
		t.Fatal(err)
	}
	addresses := serveRelating(t, func([]map[string]string) (any, error) { return nil, nil })
	report, err := Replay(t.Context(), ReplayOptions{
		Files: []string{file(t, string(data))}, Addresses: addresses, Version: "v2",
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Different() != 0 {
		t.Errorf("got %+v, want the same answer", report.Replayed)
	}
}

func TestWrongRecordings(t *testing.T) {
	old := file(t, `{"format":"hookloop.dev/recording/v9"}`)
	for want, files := range map[string][]string{
		"expected a recording":    nil,
		"no such file":            {"/none.json"},
		"has no recordings":       {t.TempDir()},
		`expected "hookloop.dev/`: {old},
	} {
		var usage *UsageError
		if _, err := Replay(t.Context(), ReplayOptions{Files: files}); !errors.As(err, &usage) ||
			!strings.Contains(usage.Problem, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	var usage *UsageError
	if _, err := Verify(t.Context(), Options{Recordings: []string{old}}); !errors.As(err, &usage) {
		t.Errorf("got %v", err)
	}
}
