package composite

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rollingPages(c *v1alpha1.CompositeControllerSpec) {
	c.Hooks.Finalize = &v1alpha1.Hook{}
	c.ParentResource.RevisionHistory = &v1alpha1.RevisionHistory{FieldPaths: []string{"spec.text"}}
	c.ChildResources[0].UpdateStrategy = &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.UpdateRollingInPlace}
}

// record is a ControllerRevision of the parent u.
func record(name, text, children string) string {
	return `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"ControllerRevision","metadata":{"namespace":"shop",` +
		`"name":"` + name + `","uid":"uid-` + name + `","resourceVersion":"3"` + ours + `},` +
		`"parentPatch":{"spec":{"text":"` + text + `"}},"children":` + children + `}`
}

// written is a page as a hook desires it, with a text.
func written(name, text string) json.RawMessage {
	return json.RawMessage(
		`{"apiVersion":"v1","kind":"Page","metadata":{"name":"` + name + `","labels":{"app":"web"}},"text":"` + text + `"}`)
}

// present is a page of the parent as the server holds it, with a text that was applied.
func present(name, text string) string {
	applied := `{"apiVersion":"v1","kind":"Page","metadata":{"labels":{"app":"web"},"name":"` + name +
		`","namespace":"shop"},"text":"` + text + `"}`
	quoted, err := json.Marshal(applied)
	if err != nil {
		panic(err)
	}
	return `{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"` + name + `","uid":"uid-` + name +
		`","resourceVersion":"1"` + app + ours +
		`,"annotations":{"` + object.LastAppliedAnnotation + `":` + string(quoted) + `}},"text":"` + text + `"}`
}

// TestRolling follows one sync in the middle of a rollout: the hook is asked about the parent as it
// is and as it was, each child follows the answer about its revision, and what moves is put on
// record first.
func TestRolling(t *testing.T) {
	s := declare(t, webs, rollingPages)
	w := holds(t,
		web(finalizers(finalize), `{"selector":{"matchLabels":{"app":"web"}},"text":"new","size":3}`),
		record("first", "old", `[{"apiGroup":"","kind":"Page","names":["a","b"]}]`), record("empty", "older", `[]`),
		present("a", "old"), present("b", "old"),
	)
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil {
		t.Fatal(err)
	}
	questions := s.Questions(o)
	var asked []string
	for _, q := range questions {
		spec, _ := q.Parent.Field("spec")
		asked = append(asked, string(spec))
	}
	const same = `{"selector":{"matchLabels":{"app":"web"}},"size":3,"text":"%s"}`
	want := []string{`{"selector":{"matchLabels":{"app":"web"}},"text":"new","size":3}`, fmt.Sprintf(same, "old")}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Fatalf("the hook is asked about (-want +got):\n%s", diff)
	}
	d, err := s.Desired(plan.Input{Observed: o}, []*hook.Answer{
		{Children: []json.RawMessage{written("a", "new"), written("b", "new"), written("c", "new")}, ResyncAfter: time.Hour},
		{
			Children:    []json.RawMessage{written("a", "old"), written("b", "old")},
			Status:      json.RawMessage(`{"of":"old"}`),
			ResyncAfter: time.Minute,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range d.Children {
		m, err := c.Map()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprint(c.Ref().Name, " ", m["text"]))
	}
	if diff := cmp.Diff([]string{"a old", "b old", "c new"}, texts); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
	c := d.Conditions[0]
	if c.Status != metav1.ConditionFalse || c.Reason != "RolloutWaiting" || c.Message != `Page "c" is not there yet` {
		t.Errorf("condition %+v", c)
	}
	if d.ResyncAfter != time.Minute || d.Status["of"] != nil {
		t.Errorf("resync after %s, status %v; want the shortest time and the latest status", d.ResyncAfter, d.Status)
	}
	var writes []string
	for _, a := range append(d.First, d.Last...) {
		children, err := json.Marshal(a.Body["children"])
		if err != nil {
			t.Fatal(err)
		}
		writes = append(writes, fmt.Sprint(a.Verb, " ", a.Body["parentPatch"], " ", string(children), " ", a.UID))
	}
	want = []string{
		`create map[spec:map[text:new]] [{"apiGroup":"","kind":"Page","names":["c"]}] `,
		`delete <nil> null uid-empty`,
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// TestRollingAnswersAreAllValidated refuses everything when the answer about an older revision is
// wrong.
func TestRollingAnswersAreAllValidated(t *testing.T) {
	s := declare(t, webs, rollingPages)
	w := holds(t, web(finalizers(finalize), selector),
		record("first", "old", `[{"apiGroup":"","kind":"Page","names":["a"]}]`), present("a", "old"))
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil {
		t.Fatal(err)
	}
	bad := []*hook.Answer{{}, {Children: []json.RawMessage{json.RawMessage(`null`)}}}
	if d, err := s.Desired(plan.Input{Observed: o}, bad); err == nil {
		t.Errorf("Desired = %+v, want an error", d)
	}
	broken := viewtest.NewReader(append(w.Objects, parse(t, record("bad", "x", `{}`)))...)
	if _, err := s.Observe(shape.Input{Reader: broken, Key: hook.ParentKey(w.Objects[0].Ref())}); err == nil {
		t.Error("a broken record is no error")
	}
}

// TestRevisionThatIsBeingDeleted is left out, and what the cache holds stays as it is: the next
// observation sees the same.
func TestRevisionThatIsBeingDeleted(t *testing.T) {
	s := declare(t, webs, rollingPages)
	gone := strings.Replace(record("b", "older", `[]`), ours, deleting+ours, 1)
	w := holds(t, web(finalizers(finalize), selector), record("a", "old", `[]`), gone, record("c", "oldest", `[]`))
	for range 2 {
		o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range o.Revisions.History[1:] {
			names = append(names, r.Object.Name())
		}
		if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
			t.Errorf("revisions (-want +got):\n%s", diff)
		}
	}
	v, err := w.View(revisions)
	if err != nil {
		t.Fatal(err)
	}
	if n := v.OwnedBy(view.Owner{UID: "u"}).Len(); n != 3 {
		t.Errorf("%d revisions are left in the cache, want 3", n)
	}
}

// depends returns the dependency of one child.
func depends(index int, name string) []hook.ChildState {
	return []hook.ChildState{
		{Index: index, DependsOn: []hook.Dependency{{Ref: object.Ref{GVK: pages.GVK, Name: name}}}},
	}
}

// TestRollingAnswersWithDetails gives each child the dependencies of the answer about its revision.
// Conditions and Events are those of the latest answer. All of it is validated.
func TestRollingAnswersWithDetails(t *testing.T) {
	s := declare(t, webs, rollingPages)
	w := holds(t,
		web(finalizers(finalize), `{"selector":{"matchLabels":{"app":"web"}},"text":"new"}`),
		record("first", "old", `[{"apiGroup":"","kind":"Page","names":["a","b"]}]`), present("a", "old"), present("b", "old"),
	)
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil {
		t.Fatal(err)
	}
	if q := s.Questions(o); len(q) != 2 || q[0].PreviousRevision || !q[1].PreviousRevision {
		t.Fatalf("questions %+v, want the latest revision's and an older one's", q)
	}
	answer := func(of string, children ...json.RawMessage) *hook.Answer {
		return &hook.Answer{
			Children:   children,
			Conditions: []hook.Condition{{Type: of, Status: "True", Reason: "Fine"}},
			Events:     []hook.Event{{Reason: of}},
		}
	}
	latest := answer("Latest", written("a", "new"), written("b", "new"), written("c", "new"))
	latest.States = depends(2, "a")
	older := answer("Older", written("a", "old"), written("b", "old"))
	older.States = depends(0, "b")
	d, err := s.Desired(plan.Input{Observed: o}, []*hook.Answer{latest, older})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Children {
		for _, on := range c.DependsOn() {
			got = append(got, c.Ref().Name+" on "+on.Ref.Name)
		}
	}
	for _, c := range d.Conditions {
		got = append(got, c.Type)
	}
	for _, r := range d.Events {
		got = append(got, r.Reason)
	}
	if diff := cmp.Diff([]string{"a on b", "c on a", "Latest", "Updated", "Latest"}, got); diff != "" {
		t.Errorf("desired (-want +got):\n%s", diff)
	}
	older.States = depends(0, "stranger")
	if d, err := s.Desired(plan.Input{Observed: o}, []*hook.Answer{latest, older}); err == nil {
		t.Errorf("Desired = %+v, want an error", d)
	}
}

// TestRollingLeavesThePrevious has both answers desire the same children, but the older one more of
// their fields: the children that replace the latest ones do not change the previous answer.
func TestRollingLeavesThePrevious(t *testing.T) {
	s := declare(t, webs, rollingPages)
	w := holds(t, web(finalizers(finalize), `{"selector":{"matchLabels":{"app":"web"}},"text":"new"}`),
		record("first", "old", `[{"apiGroup":"","kind":"Page","names":["a","b"]}]`), present("a", "old"), present("b", "old"))
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Observed: o, Previous: &plan.Previous{}}
	items := []json.RawMessage{written("a", "new"), written("b", "new"), written("c", "new")}
	older := &hook.Answer{Children: items}
	older.States = depends(0, "b")
	d, err := s.Desired(in, []*hook.Answer{{Children: items}, older})
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Children[0].DependsOn()) == 0 {
		t.Fatal("a is not desired as the older answer says")
	}
	recalled, err := plan.Children(in, &hook.Answer{Children: items})
	if err != nil {
		t.Fatal(err)
	}
	if on := recalled[0].DependsOn(); len(on) > 0 {
		t.Errorf("the latest answer's a depends on %v, of which that answer says nothing", on)
	}
}
