package transporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// FailText is the message of a failing hook.
	FailText = "out of coffee"
	// RetryAfter is the delay that a throttling hook asks for.
	RetryAfter = 3 * time.Second
	// RejectReason is the hook's reason for rejecting a parent.
	RejectReason = "NoSuchPlan"
	// HugeBytes is more than the greatest size of an answer.
	HugeBytes = 17 << 20
)

// bigInteger is the first one that a float64 cannot hold.
const bigInteger = "9007199254740993"

// Resources of the suite's questions.
var (
	greetings = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"},
		Plural:     "greetings",
		Namespaced: true,
		HasStatus:  true,
	}
	pods = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Plural:     "pods",
		Namespaced: true,
		HasStatus:  true,
	}
	sets = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Plural:     "deployments",
		Namespaced: true,
		HasStatus:  true,
	}
	maps = object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Plural:     "configmaps",
		Namespaced: true,
	}
)

// newObject makes an object in namespace shop; its spec holds an integer that a float64 cannot.
func newObject(t *testing.T, r object.Resource, name string) *object.Object {
	t.Helper()
	apiVersion, kind := r.GVK.ToAPIVersionAndKind()
	o, err := object.Decode(
		fmt.Appendf(
			nil,
			`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"shop","uid":"uid-%s"},"spec":{"n":%s}}`,
			apiVersion,
			kind,
			name,
			name,
			bigInteger,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// question has two kinds of children, one of them without an object, and a related object.
func question(t *testing.T, kind hook.ControllerKind, op hook.Op, parent string) *hook.Question {
	t.Helper()
	controller, err := object.Decode(
		[]byte(`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"hello"}}`))
	if err != nil {
		t.Fatal(err)
	}
	q := &hook.Question{Kind: kind, Op: op, Controller: controller, Parent: newObject(t, greetings, parent)}
	if op == hook.Customize {
		return q
	}
	if kind == hook.Mapping {
		q.MapKey = "ConfigMap/shop/in"
		q.Key = hook.Key{Parent: q.Parent.Ref(), Part: q.MapKey}
		if op != hook.Tombstone {
			q.Input = newObject(t, maps, "in")
		}
	}
	q.Children = []hook.Group{
		{Resource: pods, Objects: []*object.Object{newObject(t, pods, "a"), newObject(t, pods, "b")}},
		{Resource: sets},
	}
	q.Related = []hook.RelatedGroup{
		{Group: hook.Group{Resource: maps, Objects: []*object.Object{newObject(t, maps, "shared")}}},
	}
	return q
}

// config is what the engine gives to an opener.
func config(op hook.Op, field json.RawMessage) hook.Config {
	return hook.Config{
		ControllerKind: "CompositeController", ControllerName: "hello", Op: op, Version: "v2", Field: field,
	}
}

// open opens the field's hook for an operation; it is closed when the test ends.
func (h *Harness) open(t *testing.T, op hook.Op, field json.RawMessage) hook.Hook {
	t.Helper()
	return h.openWith(t, op, field, nil)
}

// openWith is like open, with a memory budget.
func (h *Harness) openWith(t *testing.T, op hook.Op, field json.RawMessage, m hook.Memory) hook.Hook {
	t.Helper()
	c := config(op, field)
	c.Memory = m
	opened, err := h.Open(c)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	if opened.Close != nil {
		t.Cleanup(func() {
			if err := opened.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return opened
}

// TraceID returns the trace id of a context, in hexadecimal, or an empty string.
func TraceID(ctx context.Context) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String()
	}
	return ""
}
