package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// answerOf returns what the store answers about the parent u.
func answerOf(store *lastsync.Store) string {
	answer := httptest.NewRecorder()
	store.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, lastsync.Path+"?uid=u", nil))
	return answer.Body.String()
}

// TestLastSyncIsServed keeps numbers and the reason of the last sync, and no text of the error.
func TestLastSyncIsServed(t *testing.T) {
	registry := prometheus.NewRegistry()
	store := lastsync.New(10)
	r := NewRecorder(NewSyncs(registry, NewCircuits(registry)), store, time.Now)

	r.Synced("composite/hello", pipeline.Outcome{
		Result: "HookFailed", Err: &hook.Error{Kind: hook.Failed, Err: errors.New("password")}, Asked: true,
		Work: pipeline.Work{Parent: "u", Generation: 3, HookCalls: 1, HookTime: time.Second, Trace: trace.TraceID{1}},
	})
	r.Synced("composite/hello", pipeline.Outcome{Result: "echo"})
	text := answerOf(store)
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

	reconciles := NewReconciles(registry, store, time.Now)
	reconciles.Reconciled(host.Reconcile{
		Controller: "actor", Result: "ok", Object: "u", Generation: 4, Writes: 2, Trace: trace.TraceID{2},
	})
	reconciles.Reconciled(host.Reconcile{Controller: "actor", Result: "ok"}) // of an object that is gone
	text = answerOf(store)
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
	text = answerOf(store)
	if !strings.Contains(text, `"oneInput":true`) || strings.Contains(text, "password") {
		t.Errorf("the answer must report one input without its name:\n%s", text)
	}
	store.Forget("u", "map/backup")

	part := pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}}
	part.Key.Part = "input"
	r.Synced("composite/hello", part)
	text = answerOf(store)
	if !strings.Contains(text, "HookFailed") {
		t.Errorf("a part that is gone drops the parent:\n%s", text)
	}
	r.Synced("composite/hello", pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}})
	text = answerOf(store)
	if strings.TrimSpace(text) != `{"syncs":[]}` {
		t.Errorf("a parent that is gone has a last sync:\n%s", text)
	}
}
