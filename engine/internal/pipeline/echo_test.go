package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/object"
)

// TestEcho checks which causes show nothing but the writes of the last sync. That has created two
// outputs of the input red.
func TestEcho(t *testing.T) {
	a := newAPI(t, web(""), page("red", ""))
	s, seen := settings(t, a, newMapping(), func(*hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Children: []json.RawMessage{desired("one"), desired("two")}}, nil
	})
	p := pipeline.New(s)
	if outcome, _ := syncPart(t, a, p, seen, "red"); outcome.Err != nil {
		t.Fatal(outcome.Err)
	}
	child := func(o *object.Object) queue.Cause {
		return queue.Cause{Kind: queue.CauseChild, Ref: o.Ref(), ResourceVersion: o.ResourceVersion()}
	}
	one := child(a.get(pages, "one"))
	two := child(a.get(pages, "two"))
	input := child(a.get(pages, "red"))
	edited := one
	deleted := one
	unknown := one
	edited.ResourceVersion = "999"
	deleted.Deleted = true
	unknown.ResourceVersion = ""
	tests := []struct {
		name   string
		causes []queue.Cause
		change func(*queue.Item[hook.Key])
		want   bool
	}{
		{"one output", []queue.Cause{one}, nil, true},
		{"both outputs", []queue.Cause{one, two}, nil, true},
		{"no cause", nil, nil, false},
		{"an output in another version", []queue.Cause{one, edited}, nil, false},
		{"an output that was deleted since", []queue.Cause{one, deleted}, nil, false},
		{"an output without a version", []queue.Cause{unknown}, nil, false},
		{"the input", []queue.Cause{one, input}, nil, false},
		{"a change of the parent", []queue.Cause{one, {Kind: queue.CauseParent}}, nil, false},
		{"a wait that is over", []queue.Cause{one, {Kind: queue.CauseRequeue}}, nil, false},
		{"a related object in this version", []queue.Cause{
			{Kind: queue.CauseRelated, Ref: one.Ref, ResourceVersion: one.ResourceVersion},
		}, nil, false},
		{"more causes than are kept", []queue.Cause{one, two}, func(i *queue.Item[hook.Key]) { i.Count = 3 }, false},
		{"after a failure", []queue.Cause{one}, func(i *queue.Item[hook.Key]) { i.Attempt = 1 }, false},
		{"another part", []queue.Cause{one}, func(i *queue.Item[hook.Key]) { i.Key.Part = "blue" }, false},
	}
	for _, test := range tests {
		work := queue.Item[hook.Key]{Key: item().Key, Count: len(test.causes), Causes: test.causes}
		work.Key.Part = "red"
		if test.change != nil {
			test.change(&work)
		}
		if got := p.IsEcho(work); got != test.want {
			t.Errorf("%s: an echo: %v, want %v", test.name, got, test.want)
		}
	}
}
