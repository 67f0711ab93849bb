package pipeline

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/mentions"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// holder is a Holder that counts.
type holder struct{ forgotten []hook.Key }

func (h *holder) Forget(key hook.Key) { h.forgotten = append(h.forgotten, key) }

// forgotten identifies what a hook forgets: "uid" a parent, "uid#part" one of its parts.
func forgotten(uid types.UID, part string) types.UID {
	if part == "" {
		return uid
	}
	return uid + types.UID("#"+part)
}

// remembering is a pipeline with a parent about which every part of a state is filled.
func remembering(t *testing.T) (*fixture, *Pipeline, *holder, *[]types.UID) {
	t.Helper()
	label := "x"
	w, p := owner(t, func(o *object.Object) (*plan.Desired, error) {
		return &plan.Desired{
			Status: map[string]any{"of": o.Name()}, Labels: map[string]*string{"l": &label},
			Events: []plan.Event{{Reason: "Seen", Message: o.Name()}},
		}, nil
	})
	h := &holder{}
	uids := &[]types.UID{}
	p.Holders = []Holder{h}
	p.Hooks[hook.Sync] = &hook.Opened{
		Hook:   hook.Func(nothing),
		Forget: func(uid types.UID, part string) { *uids = append(*uids, forgotten(uid, part)) },
	}
	w.sync(p, 3)
	state := p.states.byKey[event(queue.CauseObject).Key]
	state.converged = plan.NewConverged(1)
	state.converged.Set(child("web"), plan.ConvergedAt{Desired: 1})
	state.warnings.set("web", "unknown field")
	state.fault = reportedFault{key: "web", resourceVersion: "1"}
	return w, p, h, uids
}

// TestForgetLeavesNothing walks all that a pipeline holds, before and after its parent is gone.
func TestForgetLeavesNothing(t *testing.T) {
	w, p, h, uids := remembering(t)
	key := event(queue.CauseObject).Key
	states := func() []string {
		return mentions.Of(p.states, "web")
	}
	if n := len(states()); n < 4 {
		t.Fatalf("%d places mention the parent before it is gone, want some: %v", n, states())
	}
	uid := w.parent.UID()
	w.gone = true
	w.sync(p, 1)
	if left := states(); len(left) > 0 {
		t.Errorf("after the parent is gone it is mentioned at %v", left)
	}
	if diff := cmp.Diff([]hook.Key{key}, h.forgotten); diff != "" {
		t.Errorf("forgotten by holders (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.UID{uid}, *uids); diff != "" {
		t.Errorf("forgotten by hooks (-want +got):\n%s", diff)
	}
}

// TestReplacedParentIsForgotten has a parent deleted and created again between two syncs: nothing
// of the earlier one is left, and the hooks forget it, once.
func TestReplacedParentIsForgotten(t *testing.T) {
	w, p, _, uids := remembering(t)
	key := event(queue.CauseObject).Key
	w.edit(func(m map[string]any) { m["metadata"].(map[string]any)["uid"] = "another" })
	w.desired = func(*object.Object) (*plan.Desired, error) { return &plan.Desired{}, nil }
	w.sync(p, 2)
	if diff := cmp.Diff([]types.UID{"u"}, *uids); diff != "" {
		t.Errorf("forgotten by hooks (-want +got):\n%s", diff)
	}
	state := p.states.byKey[key]
	if state.converged.At(child("web")) != (plan.ConvergedAt{}) || state.fault.key != "" || len(state.warnings) > 0 {
		t.Errorf("the state of the new parent has parts of the earlier one: %+v", state)
	}
	if state.uid != "another" {
		t.Errorf("the state is of %q, want that of the new parent", state.uid)
	}
}

// TestEveryPartIsReset sets every field of a state to something else than its zero value: setParent
// leaves none of them.
func TestEveryPartIsReset(t *testing.T) {
	_, p, _, _ := remembering(t)
	state := p.states.byKey[event(queue.CauseObject).Key]
	state.setParent("another")
	v := reflect.ValueOf(state.parentState)
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; name != "uid" && !v.Field(i).IsZero() {
			t.Errorf("%s is %v after another parent took the name, want nothing", name, v.Field(i))
		}
	}
}

// TestStateIsBounded has a hook and an API server with long and ever new messages: the state of one
// parent has a limit, except for the parts that grow with its children and its status.
func TestStateIsBounded(t *testing.T) {
	n := 0
	w, p := owner(t, func(*object.Object) (*plan.Desired, error) {
		n++
		long := strings.Repeat("x", 100_000) + fmt.Sprint(n)
		if n%2 == 0 {
			return nil, fmt.Errorf("broken %s", long)
		}
		return &plan.Desired{Events: []plan.Event{{Reason: "Long", Message: long}}}, nil
	})
	key := event(queue.CauseObject).Key
	w.sync(p, 1)
	state := p.states.byKey[key]
	for i := range 1000 {
		state.warnings.set(fmt.Sprint("child-", i), "unknown field")
	}
	w.sync(p, 50)
	if len(state.fault.key) > 2*4096 || len(state.warnings) > maxWarned || len(state.events.hashes) > 1 {
		t.Errorf("the fault has %d bytes, %d warnings, %d events; want each bounded",
			len(state.fault.key), len(state.warnings), len(state.events.hashes))
	}
	if len(p.states.byKey) != 1 || p.states.uses.recent.Len() != 1 {
		t.Errorf("%d states and %d uses of one parent", len(p.states.byKey), p.states.uses.recent.Len())
	}
}

// TestManyParentsComeAndGo leaves no state behind.
func TestManyParentsComeAndGo(t *testing.T) {
	s := &still{}
	p, _, _ := traced(s, nothing)
	for i := range 100 {
		key := keyOf(i)
		for _, present := range []bool{true, false} {
			s.parent = nil
			if present {
				text := strings.Replace(string(generation(t, "1").Raw()), `"name":"web"`, `"name":"`+key.Parent.Name+`"`, 1)
				var err error
				s.parent, err = object.Decode([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
			}
			item := queue.Item[hook.Key]{Key: key, Count: 1, Causes: []queue.Cause{{Kind: queue.CauseObject}}}
			if _, err := p.Reconcile(context.Background(), item); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left := mentions.Of(p.states, "web-"); len(left) > 0 {
		slices.Sort(left)
		t.Errorf("after all parents are gone they are mentioned at %v", slices.Compact(left))
	}
}

// TestPartsAreForgotten has a parent with parts. A part that is gone is forgotten alone, and all of
// them with the parent: when it is gone, and when another one has taken its name.
func TestPartsAreForgotten(t *testing.T) {
	own := event(queue.CauseObject).Key
	partKey := func(part string) hook.Key { return hook.Key{Parent: own.Parent, Part: part} }
	for name, end := range map[string]func(*fixture){
		"the parent is gone": func(w *fixture) { w.gone = true },
		"the parent is another one": func(w *fixture) {
			w.edit(func(m map[string]any) { m["metadata"].(map[string]any)["uid"] = "another" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p, h, uids := remembering(t)
			for _, part := range []string{"red", "blue", "green"} {
				w.syncPart(p, part)
			}
			if n := len(mentions.Of(p.states, "green")); n == 0 {
				t.Fatal("nothing mentions a part")
			}
			p.forget(partKey("red"), w.parent.UID())
			if diff := cmp.Diff([]hook.Key{partKey("red")}, h.forgotten); diff != "" {
				t.Errorf("a part is gone: forgotten by holders (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]types.UID{w.parent.UID() + "#red"}, *uids); diff != "" {
				t.Errorf("a part is gone: forgotten by hooks (-want +got):\n%s", diff)
			}
			h.forgotten = nil
			*uids = nil
			end(w)
			w.sync(p, 1)
			for _, part := range []string{"red", "blue", "green"} {
				if left := mentions.Of(p.states, part); len(left) > 0 {
					t.Errorf("part %s is mentioned at %v", part, left)
				}
			}
			for _, part := range []string{"blue", "green"} {
				if !slices.Contains(h.forgotten, partKey(part)) {
					t.Errorf("the holders forgot %v, want %s among them", h.forgotten, part)
				}
			}
			if diff := cmp.Diff([]types.UID{"u"}, *uids); diff != "" {
				t.Errorf("forgotten by hooks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPartForgottenInItsSync has a parent go while one of its parts is being synced: what the sync
// has added to a holder is dropped at its end.
func TestPartForgottenInItsSync(t *testing.T) {
	w, p, h, uids := remembering(t)
	key := hook.Key{Parent: event(queue.CauseObject).Key.Parent, Part: "red"}
	before := w.desired
	w.desired = func(o *object.Object) (*plan.Desired, error) {
		p.forget(hook.ParentKey(key.Parent), o.UID())
		h.forgotten = nil
		*uids = nil
		return before(o)
	}
	w.syncPart(p, "red")
	if diff := cmp.Diff([]hook.Key{key, hook.ParentKey(key.Parent)}, h.forgotten); diff != "" {
		t.Errorf("forgotten at the end of the sync (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.UID{w.parent.UID() + "#red"}, *uids); diff != "" {
		t.Errorf("forgotten by hooks at the end of the sync (-want +got):\n%s", diff)
	}
	if left := mentions.Of(p.states, "red"); len(left) > 0 {
		t.Errorf("the part is mentioned at %v", left)
	}
}
