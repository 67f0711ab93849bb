package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
)

// TestIsApplied compares a child with objects. Where isApplied is true, the comparison of all
// values must find no difference, too.
func TestIsApplied(t *testing.T) {
	const (
		desired = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"text":"x"},"list":[{"b":1}]}`
		last    = `{"apiVersion":"v1","data":{"text":"x"},"kind":"ConfigMap","list":[{"b":1}],"metadata":` +
			`{"labels":{"app":"a"},"name":"a","namespace":"shop"}}`
		stored = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"shop","uid":"u",` +
			`"resourceVersion":"7","labels":{"app":"a","by":"others"}},"data":{"text":"x","more":"y"},"list":[{"b":1}]}`
	)
	replaced := func(old, replacement string) string { return strings.Replace(stored, old, replacement, 1) }
	for _, c := range []struct {
		name, stored, last string
		serverSide, want   bool
	}{
		{name: "with fields of others", stored: stored, last: last, want: true},
		{name: "a changed value", stored: replaced(`"text":"x"`, `"text":"z"`), last: last},
		{name: "a removed value", stored: replaced(`"text":"x",`, ``), last: last},
		{name: "a removed label", stored: replaced(`"app":"a",`, ``), last: last},
		{name: "an item with a default", stored: replaced(`{"b":1}`, `{"b":1,"c":2}`), last: last},
		{name: "no record", stored: stored},
		{name: "another record", stored: stored, last: strings.Replace(last, `"x"`, `"z"`, 1)},
		{name: "a longer record", stored: stored, last: strings.Replace(last, `"x"`, `"x","more":"y"`, 1)},
		{name: "a record that is no JSON", stored: stored, last: "none"},
		{name: "server-side apply", stored: stored, last: last, serverSide: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			scope := &Scope{Labels: map[string]string{"app": "a"}}
			p := &planner{in: Input{Observed: &Observed{Scope: *scope}, Apply: Apply{Manager: "m", ServerSide: c.serverSide}}}
			child := desiredChild(t, desired, scope)
			o := annotated(t, c.stored, c.last)
			got, err := p.isApplied(child, o)
			if err != nil || got != c.want {
				t.Fatalf("isApplied = %v, %v, want %v", got, err, c.want)
			}
			v, err := p.comparison(child, o)
			if err != nil {
				t.Fatal(err)
			}
			if got && (len(v.fields) > 0 || !v.recorded) {
				t.Errorf("the values differ at %v, recorded is %v", v.fields, v.recorded)
			}
		})
	}
}

func desiredChild(t *testing.T, item string, scope *Scope) Child {
	t.Helper()
	o, err := object.Decode([]byte(item))
	if err != nil {
		t.Fatal(err)
	}
	ref := o.Ref()
	ref.Namespace = "shop"
	return newChild(ref, json.RawMessage(item), o, &ChildKind{Resource: object.Resource{GVK: ref.GVK}}, scope)
}

// annotated returns an object with the last applied state; empty is none.
func annotated(t *testing.T, body, last string) *object.Object {
	t.Helper()
	m, err := object.DecodeMap([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		objectField(objectField(m, "metadata"), "annotations")[object.LastAppliedAnnotation] = last
	}
	o, err := object.FromMap(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestIsAppliedAllocates bounds the allocations for one child after a restart: those of decoding
// the desired state. A comparison of all values makes several times as many.
func TestIsAppliedAllocates(t *testing.T) {
	const most = 30
	scope := &Scope{}
	item := `{"apiVersion":"v1","data":{"text":"` + strings.Repeat("0123456789", 90) +
		`"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`
	p := &planner{in: Input{Observed: &Observed{Scope: *scope}}}
	child := desiredChild(t, item, scope)
	o := annotated(t, item, item)
	allocations := testing.AllocsPerRun(100, func() {
		if same, err := p.isApplied(child, o); err != nil || !same {
			t.Fatalf("isApplied = %v, %v, want true", same, err)
		}
	})
	if allocations > most {
		t.Errorf("%v allocations, want at most %d", allocations, most)
	}
}
