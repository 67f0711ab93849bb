package decorator

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	webs = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		Plural:     "webs",
		Namespaced: true,
	}
	pages = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Page"}, Plural: "pages", Namespaced: true}
)

func of(t *testing.T, objects ...string) *viewtest.Reader {
	t.Helper()
	w := viewtest.NewReader()
	for _, text := range objects {
		o, err := object.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		w.Objects = append(w.Objects, o)
	}
	return w
}

// key is that of the target.
var key = hook.ParentKey(object.Ref{GVK: webs.GVK, Namespace: "shop", Name: "web"})

// web is a target with more metadata; page an attachment of the controller by, owned by a UID.
func web(metadata string) string {
	return `{"apiVersion":"example.com/v1","kind":"Web","metadata":{"namespace":"shop","name":"web","uid":"u",` +
		`"resourceVersion":"9"` + metadata + `}}`
}

func page(name, owner, by string) string {
	return `{"apiVersion":"v1","kind":"Page","metadata":{"namespace":"shop","name":"` + name +
		`","annotations":{"` + Annotation + `":"` + by + `"},"ownerReferences":[{"apiVersion":"example.com/v1",` +
		`"kind":"Web","name":"web","uid":"` + owner + `","controller":true}]}}`
}

func declare(t *testing.T, change func(*v1alpha1.DecoratorControllerSpec)) *Shape {
	t.Helper()
	c := &v1alpha1.DecoratorController{ObjectMeta: metav1.ObjectMeta{Name: "deco"}, Spec: v1alpha1.DecoratorControllerSpec{
		Resources: make([]v1alpha1.DecoratedResourceRule, 1), Attachments: make([]v1alpha1.AttachmentRule, 1),
		Hooks: &v1alpha1.DecoratorHooks{Sync: &v1alpha1.Hook{}},
	}}
	if change != nil {
		change(&c.Spec)
	}
	declaring := of(t, `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"DecoratorController",`+
		`"metadata":{"name":"deco"}}`).Objects[0]
	s, err := New(declaring, c, []resource{webs}, []resource{pages})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type resource = object.Resource

func withFinalize(c *v1alpha1.DecoratorControllerSpec) { c.Hooks.Finalize = &v1alpha1.Hook{} }

func selecting(c *v1alpha1.DecoratorControllerSpec) {
	c.Resources[0].AnnotationSelector = &v1alpha1.AnnotationSelector{
		MatchAnnotations: map[string]string{"wanted": "yes, please"},
	}
}

// observation has the parts of an observation that a test checks.
type observation struct {
	Ask      hook.Op
	Children []string
	Prepare  []string
}

func TestObserve(t *testing.T) {
	const (
		deleting = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
		wanted   = `,"annotations":{"wanted":"yes, please"}`
		held     = `,"finalizers":["other","` + FinalizerPrefix + `deco"]`
	)
	both := func(c *v1alpha1.DecoratorControllerSpec) { withFinalize(c); selecting(c) }
	tests := []struct {
		name    string
		declare func(*v1alpha1.DecoratorControllerSpec)
		world   []string
		want    *observation
	}{
		{"the target is gone", nil, nil, nil},
		{"the target has no attachments", nil, []string{web("")}, &observation{Ask: hook.Sync}},
		{
			"own attachments, those of another decorator, and those of another target",
			nil,
			[]string{
				web(""),
				page("a", "u", "deco"),
				page("b", "u", "other"),
				page("c", "v", "deco"),
			},
			&observation{Ask: hook.Sync, Children: []string{"a"}},
		},
		{"the target is selected", selecting, []string{web(wanted)}, &observation{Ask: hook.Sync}},
		{"the target is not selected: attachments stay", selecting, []string{web(""), page("a", "u", "deco")}, nil},
		{
			"the target is not selected, and waits for us",
			both,
			[]string{web(held), page("a", "u", "deco")},
			&observation{Ask: hook.Finalize, Children: []string{"a"}},
		},
		{"the target goes", nil, []string{web(deleting)}, nil},
		{"the target goes and waits for us", withFinalize, []string{web(deleting + held)}, &observation{Ask: hook.Finalize}},
		{
			"the target goes and waits for a hook that is declared no more",
			nil,
			[]string{web(deleting + held)},
			&observation{Prepare: []string{"remove-finalizer web"}},
		},
		{
			"a finalizer is to be added",
			withFinalize,
			[]string{web("")},
			&observation{Ask: hook.Sync, Prepare: []string{"add-finalizer web"}},
		},
		{"it is there", withFinalize, []string{web(held)}, &observation{Ask: hook.Sync}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := declare(t, test.declare)
			o, err := s.Observe(shape.Input{Reader: of(t, test.world...), Key: key})
			if err != nil {
				t.Fatal(err)
			}
			var got *observation
			if o != nil {
				got = &observation{}
				for _, c := range o.Children.Of(pages.GVK) {
					got.Children = append(got.Children, c.Name())
				}
				for _, a := range o.Prepare {
					got.Prepare = append(got.Prepare, string(a.Verb)+" "+a.Ref.Name)
				}
				for _, q := range s.Questions(o) {
					got.Ask = q.Op
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatIsNotKnownIsAnError reads each resource in each state in which its objects are not known:
// nothing is observed then.
func TestWhatIsNotKnownIsAnError(t *testing.T) {
	for _, r := range []object.Resource{webs, pages} {
		for _, state := range []view.State{view.Unwatched, view.Filling, view.Stale} {
			w := of(t, web(""), page("a", "u", "deco"))
			w.Break(r, state)
			o, err := declare(t, nil).Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
			var unknown *view.Error
			if o != nil || !errors.As(err, &unknown) || unknown.Resource != r || unknown.State != state {
				t.Errorf("%s is %s: Observe = %v, %v, want its error", r, state, o, err)
			}
		}
	}
}

func TestSelector(t *testing.T) {
	long := strings.Repeat("no label has such a value! ", 5)
	requirement := func(o metav1.LabelSelectorOperator, values ...string) *v1alpha1.AnnotationSelector {
		return &v1alpha1.AnnotationSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: o, Values: values}},
		}
	}
	tests := []struct {
		name          string
		selector      *v1alpha1.AnnotationSelector
		matches, does map[string]string
	}{
		{
			"matchAnnotations",
			&v1alpha1.AnnotationSelector{MatchAnnotations: map[string]string{"k": long}},
			map[string]string{"k": long},
			map[string]string{"k": "x"},
		},
		{"In", requirement("In", "a", long), map[string]string{"k": long}, nil},
		{"NotIn", requirement("NotIn", long), nil, map[string]string{"k": long}},
		{"Exists", requirement("Exists"), map[string]string{"k": ""}, nil},
		{"DoesNotExist", requirement("DoesNotExist"), nil, map[string]string{"k": ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			matches, err := annotations(test.selector)
			if err != nil {
				t.Fatal(err)
			}
			if !matches(test.matches) || matches(test.does) {
				t.Errorf("%v: %v, %v: %v; want true and false", test.matches, matches(test.matches), test.does, matches(test.does))
			}
		})
	}
	if _, err := annotations(requirement("Near")); err == nil {
		t.Error("an operator that is none is taken")
	}
}

func TestDesired(t *testing.T) {
	s := declare(t, withFinalize)
	o, err := s.Observe(shape.Input{Reader: of(t, web("")), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	bad := "not a label value!"
	for name, test := range map[string]struct {
		answer hook.Answer
		want   string
	}{
		"a null attachment": {
			hook.Answer{Children: []json.RawMessage{[]byte("null")}}, "attachments[0]: got null, expected a JSON object",
		},
		"an undeclared kind": {
			hook.Answer{Children: []json.RawMessage{[]byte(`{"apiVersion":"v1","kind":"Book","metadata":{"name":"a"}}`)}},
			"attachments[0] Book.v1 \"a\": kind is not declared",
		},
		"a bad label": {hook.Answer{Labels: map[string]*string{"a": &bad}}, `labels["a"]: a valid label must`},
		"a bad key": {
			hook.Answer{Annotations: map[string]*string{"a b": nil}}, `annotations["a b"]: name part must`,
		},
		"the engine's own": {
			hook.Answer{Annotations: map[string]*string{object.LastAppliedAnnotation: &bad}}, "belongs to the engine",
		},
		"a status of no object": {hook.Answer{Status: []byte(`[1]`)}, "status: "},
		"a condition of ours": {
			hook.Answer{Conditions: []hook.Condition{{Type: plan.Synced}}}, `conditions[0] "Synced": belongs to the engine`,
		},
		"an Event's reason":     {hook.Answer{Events: []hook.Event{{}}}, `events[0]: reason is ""`},
		"a state of a stranger": {hook.Answer{States: []hook.ChildState{{Index: -1}}}, "childStates[0]"},
		"an attachment far away": {
			hook.Answer{Children: []json.RawMessage{
				[]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a","namespace":"b"}}`),
			}},
			`expected "shop", the parent's`,
		},
	} {
		_, err := s.Desired(plan.Input{Observed: o}, []*hook.Answer{&test.answer})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Desired = %v, want an error that says %s", name, err, test.want)
		}
	}
	d, err := s.Desired(
		plan.Input{Observed: o},
		[]*hook.Answer{
			{Finalized: true, Children: []json.RawMessage{[]byte(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a"}}`)}},
		},
	)
	if err != nil || len(d.Children) != 1 || d.Status != nil || d.RemoveFinalizer != "" {
		t.Fatalf("Desired = %+v, %v, want one attachment, and neither status nor, from sync, finalized", d, err)
	}
	body, err := d.Children[0].Map()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"name": "a", "namespace": "shop", "annotations": map[string]any{Annotation: "deco"}}
	if diff := cmp.Diff(want, body["metadata"]); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	o.Finalizing = true
	d, err = s.Desired(plan.Input{Observed: o}, []*hook.Answer{{Finalized: true}})
	if err != nil ||
		d.RemoveFinalizer != FinalizerPrefix+"deco" {
		t.Errorf("Desired = %+v, %v, want the finalizer removed", d, err)
	}
}

// TestDesiredConditions go into the answer's status or, if it has none, into the target's own.
func TestDesiredConditions(t *testing.T) {
	s := declare(t, nil)
	ready := []hook.Condition{{Type: "Ready", Status: "True", Reason: "Fine"}}
	for name, c := range map[string]struct {
		present string
		answer  hook.Answer
		want    map[string]any
	}{
		"no status":     {``, hook.Answer{Conditions: ready}, map[string]any{}},
		"a null status": {`,"status":null`, hook.Answer{Conditions: ready}, map[string]any{}},
		"the target's":  {`,"status":{"theirs":1}`, hook.Answer{Conditions: ready}, map[string]any{"theirs": int64(1)}},
		"the answer's": {
			`,"status":{"theirs":1}`, hook.Answer{Status: []byte(`{"ours":2}`), Conditions: ready},
			map[string]any{"ours": int64(2)},
		},
		"nothing to report": {`,"status":{"theirs":1}`, hook.Answer{}, nil},
	} {
		target, err := object.DecodeAs(webs.GVK, []byte(`{"metadata":{"name":"web"}`+c.present+`}`))
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Desired(plan.Input{Observed: &plan.Observed{Parent: target}}, []*hook.Answer{&c.answer})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, d.Status); diff != "" || len(d.Conditions) != len(c.answer.Conditions) {
			t.Errorf("%s: conditions %v, status (-want +got):\n%s", name, d.Conditions, diff)
		}
	}
}
