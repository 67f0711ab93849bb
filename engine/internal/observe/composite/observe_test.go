package composite

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// observation has the parts of an observation that a test checks.
type observation struct {
	// Ask is the operation that the hook is asked; empty if it is not asked.
	Ask      hook.Op
	Children []string
	// Prepare are "verb name".
	Prepare []string
}

func observe(t *testing.T, s *Shape, w cluster) *observation {
	t.Helper()
	key := hook.ParentKey(object.Ref{GVK: s.rules.Resource.GVK, Namespace: w.namespace(s), Name: "web"})
	o, err := s.Observe(shape.Input{Reader: w, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	if o == nil {
		return nil
	}
	v := &observation{}
	for _, c := range o.Children.Of(pages.GVK) {
		v.Children = append(v.Children, c.Ref().NamespacedName())
	}
	for _, a := range o.Prepare {
		v.Prepare = append(v.Prepare, string(a.Verb)+" "+a.Ref.Name)
	}
	for _, q := range s.Questions(o) {
		v.Ask = q.Op
		if len(q.Children) != 1 || len(q.Children[0].Objects) != len(v.Children) {
			t.Errorf("the question has the groups %+v, want the observed children", q.Children)
		}
	}
	return v
}

// namespace is that of the parents.
func (w cluster) namespace(s *Shape) string {
	if s.rules.Resource.Namespaced {
		return "shop"
	}
	return ""
}

func TestObserve(t *testing.T) {
	held := finalizers("other", finalize)
	front := `,"labels":{"tier":"front"}`
	tests := []struct {
		name    string
		declare func(*v1alpha1.CompositeControllerSpec)
		objects []string
		want    *observation
	}{
		{"the parent is gone", nil, nil, nil},
		{"the parent has no children", nil, []string{web("", selector)}, &observation{Ask: hook.Sync}},
		{"the parent is selected", selecting, []string{web(front, selector)}, &observation{Ask: hook.Sync}},
		{"the parent is not selected", selecting, []string{web("", selector)}, nil},

		{"a parent that leaves", nil, []string{web(deleting, selector)}, nil},
		{
			"a parent that leaves, with somebody else's finalizer", withFinalize,
			[]string{web(deleting+finalizers("other"), selector), page("shop", "a", ours+app)}, nil,
		},
		{
			"a parent that leaves and waits for us",
			withFinalize,
			[]string{
				web(deleting+held, selector),
				page("shop", "a", ours+app),
			},
			&observation{Ask: hook.Finalize, Children: []string{"shop/a"}},
		},
		{
			"a parent that is no longer selected and waits for us",
			func(c *v1alpha1.CompositeControllerSpec) { withFinalize(c); selecting(c) },
			[]string{
				web(held, selector),
				page("shop", "a", ours+app),
			},
			&observation{Ask: hook.Finalize, Children: []string{"shop/a"}},
		},
		{
			"a parent that leaves and waits for a hook that is declared no more", nil,
			[]string{web(deleting+held, selector), page("shop", "a", ours+app)},
			&observation{Children: []string{"shop/a"}, Prepare: []string{"remove-finalizer web"}},
		},
		{
			"the garbage collector deletes the children first", withFinalize,
			[]string{web(deleting+finalizers(finalize, "foregroundDeletion"), selector), page("shop", "a", ours+app)},
			&observation{Children: []string{"shop/a"}},
		},
		{
			"the garbage collector leaves the children alone", withFinalize,
			[]string{web(deleting+finalizers(finalize, "orphan"), selector), page("shop", "a", ours+app)},
			&observation{Children: []string{"shop/a"}},
		},

		{
			"a finalizer is to be added", withFinalize, []string{web("", selector)},
			&observation{Ask: hook.Sync, Prepare: []string{"add-finalizer web"}},
		},
		{"it is there", withFinalize, []string{web(held, selector)}, &observation{Ask: hook.Sync}},
		{
			"the hook that it waited for is gone", nil, []string{web(held, selector)},
			&observation{Ask: hook.Sync, Prepare: []string{"remove-finalizer web"}},
		},

		{
			"own, foreign and unrelated objects", nil,
			[]string{web("", selector), page("shop", "a", ours+app), page("shop", "b", theirs+app), page("shop", "c", "")},
			&observation{Ask: hook.Sync, Children: []string{"shop/a"}},
		},
		{
			"an orphan that is selected", nil,
			[]string{web("", selector), page("shop", "a", app), page("else", "b", app), page("shop", "c", app+deleting)},
			&observation{Ask: hook.Sync, Children: []string{"shop/a"}, Prepare: []string{"adopt a"}},
		},
		{
			"attachments of a decorator of the same parent",
			nil,
			[]string{
				web("", selector),
				page("shop", "a", ours+app),
				page("shop", "b", ours+app+attached),
				page("shop", "c", ours+attached),
				page("shop", "d", app+attached),
			},
			&observation{Ask: hook.Sync, Children: []string{"shop/a"}},
		},
		{
			"a parent that leaves adopts nothing", withFinalize,
			[]string{web(deleting+held, selector), page("shop", "a", app)}, &observation{Ask: hook.Finalize},
		},
		{
			"a child that is selected no more", nil, []string{web("", selector), page("shop", "a", ours)},
			&observation{Ask: hook.Sync, Prepare: []string{"release a"}},
		},
		{
			"a parent that leaves releases nothing",
			withFinalize,
			[]string{
				web(deleting+held, selector),
				page("shop", "a", ours),
			},
			&observation{Ask: hook.Finalize, Children: []string{"shop/a"}},
		},
		{
			"first the finalizer, then the claims",
			withFinalize,
			[]string{web("", selector), page("shop", "a", app), page("shop", "b", ours)},
			&observation{
				Ask:      hook.Sync,
				Children: []string{"shop/a"},
				Prepare:  []string{"add-finalizer web", "adopt a", "release b"},
			},
		},
		{
			"a generated selector",
			generating,
			[]string{
				web("", "{}"),
				page("shop", "a", ours+`,"labels":{"controller-uid":"u"}`),
				page("shop", "b", `,"labels":{"controller-uid":"u"}`),
			},
			&observation{Ask: hook.Sync, Children: []string{"shop/a", "shop/b"}, Prepare: []string{"adopt b"}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, observe(t, declare(t, webs, test.declare), holds(t, test.objects...))); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClusterScopedParent has its children in any namespace.
func TestClusterScopedParent(t *testing.T) {
	s := declare(t, sites, nil)
	w := holds(t, `{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"web","uid":"u"},"spec":`+selector+`}`,
		page("shop", "a", ours+app), page("else", "b", app))
	want := &observation{Ask: hook.Sync, Children: []string{"else/b", "shop/a"}, Prepare: []string{"adopt b"}}
	if diff := cmp.Diff(want, observe(t, s, w)); diff != "" {
		t.Errorf("observed (-want +got):\n%s", diff)
	}
}

// TestWhatIsNotKnownIsAnError reads each resource in each state in which its objects are not known:
// nothing is observed then.
func TestWhatIsNotKnownIsAnError(t *testing.T) {
	for _, r := range []object.Resource{webs, pages, revisions} {
		for _, state := range []view.State{view.Unwatched, view.Filling, view.Stale} {
			w := holds(t, web(finalizers(finalize), selector), page("shop", "a", ours+app))
			w.Break(r, state)
			o, err := declare(t, webs, rollingPages).Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
			var unknown *view.Error
			if o != nil || !errors.As(err, &unknown) || unknown.Resource != r || unknown.State != state {
				t.Errorf("%s is %s: Observe = %v, %v, want its error", r, state, o, err)
			}
		}
	}
}

// TestPreconditions checks the version to which an adoption is bound.
func TestPreconditions(t *testing.T) {
	s := declare(t, webs, generating)
	w := holds(t, web("", "{}"), page("shop", "a", `,"labels":{"controller-uid":"u"}`))
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil || len(o.Prepare) != 1 {
		t.Fatalf("Observe = %+v, %v, want one adoption", o, err)
	}
	if a := o.Prepare[0]; a.UID != "uid-a" || a.ResourceVersion != "1" || a.Owner.UID != "u" || a.Owner.Resource != webs ||
		a.Resource != pages {
		t.Errorf("the adoption is %+v", a)
	}
	if diff := cmp.Diff(map[string]string{"controller-uid": "u"}, o.Scope.Labels); diff != "" {
		t.Errorf("children's labels (-want +got):\n%s", diff)
	}
}

// TestSelectorsThatAreNone are the parent's own fault.
func TestSelectorsThatAreNone(t *testing.T) {
	for _, spec := range []string{
		`{}`, `{"selector":null}`, `{"selector":{}}`, `{"selector":"app=web"}`,
		`{"selector":{"matchExpressions":[{"key":"app","operator":"Near","values":["web"]}]}}`,
	} {
		w := holds(t, web("", spec))
		o, err := declare(t, webs, nil).Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
		var fault *shape.ParentError
		if o != nil || !errors.As(err, &fault) || fault.Field != "spec.selector" {
			t.Errorf("%s: Observe = %v, %v, want an error of spec.selector", spec, o, err)
		}
	}
}

func TestParentSelectorThatIsNone(t *testing.T) {
	c := &v1alpha1.CompositeController{}
	selecting(&c.Spec)
	c.Spec.ParentResource.LabelSelector.MatchLabels["tier"] = "no such value!"
	if _, err := New(nil, c, Resources{Parent: webs, Children: kinds}); err == nil {
		t.Error("New takes a selector that is none")
	}
}
