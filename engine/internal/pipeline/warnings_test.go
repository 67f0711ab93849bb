package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recorded are Events.
type recorded []string

func (e *recorded) Normal(_ context.Context, _ *object.Object, reason, message string) {
	*e = append(*e, reason+": "+message)
}

func (e *recorded) Warning(_ context.Context, _ *object.Object, reason, message string) {
	*e = append(*e, reason+": "+message)
}

func (e *recorded) WarningUnlogged(_ *object.Object, reason, message string) {
	*e = append(*e, reason+": "+message)
}

func child(name string) object.Ref {
	return object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Namespace: "shop", Name: name}
}

// warning is a sync of a parent with a status, and what it records.
type warning struct {
	*run
	t      *testing.T
	events *recorded
}

func newWarning(t *testing.T, status string) *warning {
	t.Helper()
	o, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web","uid":"u"},"status":` + status + `}`))
	if err != nil {
		t.Fatal(err)
	}
	events := new(recorded)
	r := &run{
		Pipeline: &Pipeline{Config: Config{Events: events, OwnsStatus: true}},
		state:    &parentState{},
		parent:   o,
	}
	if err := r.restoreWarnings(o); err != nil {
		t.Fatal(err)
	}
	return &warning{r, t, events}
}

// wrote is a write of a child with what the server warned about.
func (w *warning) writes(name string, warnings ...string) {
	written, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"` + name + `","namespace":"shop"}}`))
	if err != nil {
		w.t.Fatal(err)
	}
	w.recordWarnings(w.t.Context(), act.Outcome{
		Action: plan.Action{Verb: plan.Update, Ref: child(name), Desired: 1}, Object: written, Warnings: warnings,
	})
}

// condition is the one that a report puts in, and its Events since the last call.
func (w *warning) expect(what string, desired []string, condition string, events ...string) {
	w.t.Helper()
	d := &plan.Desired{Status: map[string]any{}}
	for _, name := range desired {
		d.Children = append(d.Children, desiredPages(w.t, &plan.Previous{}, name)...)
	}
	w.reportWarnings(d)
	got := ""
	for _, c := range d.Conditions {
		got += fmt.Sprintf("%s %s: %s", c.Type, c.Reason, c.Message)
	}
	if got != condition {
		w.t.Errorf("%s: condition %q, want %q", what, got, condition)
	}
	if diff := cmp.Diff(events, []string(*w.events)); diff != "" {
		w.t.Errorf("%s: Events (-want +got):\n%s", what, diff)
	}
	*w.events = nil
}

// TestWarningsAboutChildren: an Event when it is news, and a condition while the child stays as it
// was written.
func TestWarningsAboutChildren(t *testing.T) {
	const field, a = `unknown field "spec.hrad"`, `Page.v1 "shop/a": unknown field "spec.hrad"`
	w := newWarning(t, `{}`)
	all := []string{"a", "b"}
	w.expect("no warning", all, "")
	w.writes("a", field)
	w.writes("b")
	w.expect("a warning", all, "ChildWarnings UnknownField: "+a, "ChildWarning: "+a)
	w.expect("nothing is written", all, "ChildWarnings UnknownField: "+a)
	w.writes("a", field)
	w.expect("the same warning", all, "ChildWarnings UnknownField: "+a)
	w.writes("a", "v1 Page is deprecated; use v2")
	w.expect("another warning", all, `ChildWarnings APIServerWarning: Page.v1 "shop/a": v1 Page is deprecated, use v2`,
		`ChildWarning: Page.v1 "shop/a": v1 Page is deprecated, use v2`)
	w.writes("a", field)
	w.expect("the child is no longer desired", all[1:], "", "ChildWarning: "+a)
	w.writes("a", field)
	w.writes("a")
	w.expect("the child is mended", all, "", "ChildWarning: "+a)
}

// TestWarningsOutliveARestart: what the condition has of children that stay as they are is kept,
// without an Event.
func TestWarningsOutliveARestart(t *testing.T) {
	const a, b = `Page.v1 \"shop/a\": unknown field \"x\", unknown field \"y\"`, `Page.v1 \"shop/b\": unknown field \"z\"`
	plainA := strings.ReplaceAll(a, `\`, "")
	plainB := strings.ReplaceAll(b, `\`, "")
	w := newWarning(t,
		`{"conditions":[{"type":"ChildWarnings","status":"True","message":"`+a+"; "+b+`; and 2 more objects"}]}`)
	w.expect("nothing is written", []string{"a", "b"}, "ChildWarnings UnknownField: "+plainA+"; "+plainB)
	w.writes("b")
	w.expect("one is mended", []string{"a", "b"}, "ChildWarnings UnknownField: "+plainA)
	w.writes("a", `unknown field "x"`, `unknown field "y"`)
	w.expect("the other is written as before", []string{"a", "b"}, "ChildWarnings UnknownField: "+plainA)
}

// TestWarningsAreBounded remembers few of many children, and names fewer.
func TestWarningsAreBounded(t *testing.T) {
	w := newWarning(t, `{}`)
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprint("p", i))
		w.writes(all[i], "x")
	}
	if n := len(w.state.warnings); n != maxWarned {
		t.Errorf("%d are remembered, want %d", n, maxWarned)
	}
	d := &plan.Desired{Status: map[string]any{}}
	for _, name := range all {
		d.Children = append(d.Children, desiredPages(w.t, &plan.Previous{}, name)...)
	}
	w.reportWarnings(d)
	if got := d.Conditions[0].Message; strings.Count(got, "Page.v1") != maxNamed ||
		!strings.HasSuffix(got, "; and 29 more objects") {
		t.Errorf("message %q", got)
	}
}
