package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/internal/lastsync"
	"go.opentelemetry.io/otel/trace"
)

// TestLastSyncIsServed keeps numbers and the reason of the last sync, and no text of the error.
func TestLastSyncIsServed(t *testing.T) {
	registry := newRegistry("v1")
	store := lastsync.New(10)
	r := recorder{newSyncMetrics(registry, newCircuitMetrics(registry)), store, time.Now}
	address := serve(t, metricsHandler(registry, store)) + lastsync.Path + "?uid=u"

	r.Synced("composite/hello", pipeline.Outcome{
		Result: "HookFailed", Err: &hook.Error{Kind: hook.Failed, Err: errors.New("password")}, Asked: true,
		Work: pipeline.Work{Parent: "u", Generation: 3, HookCalls: 1, HookTime: time.Second, Trace: trace.TraceID{1}},
	})
	r.Synced("composite/hello", pipeline.Outcome{Result: "echo"})
	_, text := get(t, address)
	for _, want := range []string{
		`"controller":"composite/hello","generation":3,"result":"HookFailed","failed":true`, `"hookTime":1000000000`,
		`"traceID":"01000000000000000000000000000000"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "password") {
		t.Errorf("the answer has the text of an error:\n%s", text)
	}

	reconciles := newReconcileMetrics(registry, store, time.Now)
	reconciles.Reconciled(host.Reconcile{
		Controller: "actor", Result: "ok", Object: "u", Generation: 4, Writes: 2, Trace: trace.TraceID{2},
	})
	reconciles.Reconciled(host.Reconcile{Controller: "actor", Result: "ok"}) // of an object that is gone
	_, text = get(t, address)
	for _, want := range []string{
		`{"syncs":[{"controller":"actor","hookless":true,"generation":4,"result":"ok",`, `"writes":2,"traceID":"02`,
		`"HookFailed"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the answer after a reconcile in Go has no %s:\n%s", want, text)
		}
	}

	store.Forget("u", "actor")

	input := pipeline.Outcome{Result: "changed", Work: pipeline.Work{Parent: "u"}}
	input.Key.Part = "Secret.v1/shop/password"
	r.Synced("map/backup", input)
	_, text = get(t, address)
	if !strings.Contains(text, `"oneInput":true`) || strings.Contains(text, "password") {
		t.Errorf("the answer must report one input without its name:\n%s", text)
	}
	store.Forget("u", "map/backup")

	part := pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}}
	part.Key.Part = "input"
	r.Synced("composite/hello", part)
	_, text = get(t, address)
	if !strings.Contains(text, "HookFailed") {
		t.Errorf("a part that is gone drops the parent:\n%s", text)
	}
	r.Synced("composite/hello", pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}})
	_, text = get(t, address)
	if strings.TrimSpace(text) != `{"syncs":[]}` {
		t.Errorf("a parent that is gone has a last sync:\n%s", text)
	}
}
