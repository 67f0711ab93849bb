package grpc

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/transporttest"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// openMap opens a map hook over streams.
func openMap(t *testing.T) (*hook.Opened, *prometheus.Registry) {
	t.Helper()
	target := serveStream(t, newStreamServer(func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{}}
	}))
	registry := prometheus.NewRegistry()
	transport := &Transport{Metrics: stream.NewMetrics(registry)}
	s := settings(fmt.Sprintf(`{"target":%q,"insecure":true,"mode":"Stream"}`, target))
	s.Kind = hook.Mapping
	s.Op = hook.Map
	s.ControllerUID = "c"
	opened, err := transport.Open(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened, registry
}

// part returns the question about one part of a parent, with an output.
func part(t *testing.T, controller, parent *object.Object, name string) *hook.Question {
	t.Helper()
	q := &hook.Question{
		Kind: hook.Mapping, Op: hook.Map, Controller: controller, Parent: parent, MapKey: "ConfigMap/" + name,
		Input: objectOf(t, name),
		Children: []hook.Group{{
			Resource: object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"},
			Objects:  []*object.Object{objectOf(t, name+"-out")},
		}},
	}
	q.Key = hook.Key{Parent: parent.Ref(), Part: q.MapKey}
	return q
}

// TestPartsAreForgotten asks about two parts of a parent: a part is forgotten alone, and all with
// the parent.
func TestPartsAreForgotten(t *testing.T) {
	opened, registry := openMap(t)
	controller := objectOf(t, "c")
	parent := objectOf(t, "p")
	a := part(t, controller, parent, "a")
	b := part(t, controller, parent, "b")
	customize := &hook.Question{Kind: hook.Mapping, Op: hook.Customize, Controller: controller, Parent: parent}
	for _, step := range []struct {
		name   string
		before func()
		want   string
	}{
		{"the first questions", func() {}, "3 0"},
		{"the next ones", func() {}, "3 3"},
		{"one part is forgotten", func() { opened.Forget("p", a.MapKey) }, "4 5"},
		{"another parent is forgotten", func() { opened.Forget("q", "") }, "4 8"},
		{"the parent is forgotten", func() { opened.Forget("p", "") }, "7 8"},
	} {
		step.before()
		for _, q := range []*hook.Question{a, b, customize} {
			if _, err := opened.Ask(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		got := fmt.Sprint(calls(t, registry, "snapshot"), " ", calls(t, registry, "change"))
		if got != step.want {
			t.Errorf("%s: %s snapshots and changes, want %s", step.name, got, step.want)
		}
	}
}

// TestPartsShareTheirParent asks about 1,000 parts of a parent of 10 kB: each version of the parent
// travels once.
func TestPartsShareTheirParent(t *testing.T) {
	const parts, parentBytes, partBytes = 1000, 10_000, 600
	opened, registry := openMap(t)
	controller := objectOf(t, "c")
	var before float64
	for _, version := range []string{"1", "2"} {
		parent, err := object.Decode(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"p","uid":"p","resourceVersion":%q},"data":{"a":%q}}`,
			version, strings.Repeat("x", parentBytes)))
		if err != nil {
			t.Fatal(err)
		}
		for i := range parts {
			if _, err := opened.Ask(t.Context(), part(t, controller, parent, fmt.Sprint("in-", i))); err != nil {
				t.Fatal(err)
			}
		}
		total := counted(t, registry, "hookloop_stream_bytes_total", "sent")
		sent := total - before
		before = total
		t.Logf("version %s: %.0f bytes for %d parts, %.0f each", version, sent, parts, (sent-parentBytes)/parts)
		if limit := float64(2*parentBytes + parts*partBytes); sent < parentBytes || sent > limit {
			t.Errorf("version %s of the parent: %.0f bytes were sent, want from %d to %.0f", version, sent, parentBytes, limit)
		}
	}
}
