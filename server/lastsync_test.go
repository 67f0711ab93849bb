package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"github.com/hookloop/hookloop/internal/lastsync"
	"go.opentelemetry.io/otel/trace"
)

// TestLastSyncIsServed keeps numbers and the reason of the last sync, and no text of the error.
func TestLastSyncIsServed(t *testing.T) {
	registry, store := newRegistry("v1"), lastsync.New(10)
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

	part := pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}}
	part.Key.Part = "input"
	r.Synced("composite/hello", part)
	if _, text = get(t, address); !strings.Contains(text, "HookFailed") {
		t.Errorf("a part that is gone drops the parent:\n%s", text)
	}
	r.Synced("composite/hello", pipeline.Outcome{Result: pipeline.Gone, Work: pipeline.Work{Parent: "u"}})
	if _, text = get(t, address); strings.TrimSpace(text) != `{"syncs":[]}` {
		t.Errorf("a parent that is gone has a last sync:\n%s", text)
	}
}
