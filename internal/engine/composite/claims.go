package composite

import (
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/claim"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// classify returns the parent's children, and which of them come or go. Objects that were its own
// at the last look, and are the same still, are not looked at again.
func (s *Shape) classify(
	reader view.Reader, key hook.Key, parent *object.Object, selector labels.Selector, leaving bool,
) (view.Set, claim.Claims, error) {
	owned := make([]view.List, len(s.declared))
	var orphans []*object.Object
	for i, d := range s.declared {
		v, err := reader.View(d.Resource)
		if err != nil {
			return view.Set{}, claim.Claims{}, err
		}
		owned[i] = v.OwnedBy(parent.UID())
		if !leaving {
			orphans = slices.AppendSeq(orphans, v.Orphans(parent.Namespace(), selector).All())
		}
	}
	params := claim.Params{Parent: parent, Selector: selector}
	look := look{parent.UID(), selector.String(), owned}
	params.Candidates = s.looks.fresh(key, look)
	claims := claim.Classify(params)
	if len(claims.Owned) != len(params.Candidates) {
		s.looks.forget(key)
		params.Candidates = all(owned)
		claims = claim.Classify(params)
		children, claims := s.adopting(params, orphans, claims, view.SetOf(among(claims.Owned, owned)...))
		return children, claims, nil
	}
	s.looks.keep(key, look)
	children, claims := s.adopting(params, orphans, claims, view.SetOf(owned...))
	return children, claims, nil
}

// all are the objects of lists.
func all(lists []view.List) []*object.Object {
	var objects []*object.Object
	for _, l := range lists {
		objects = slices.AppendSeq(objects, l.All())
	}
	return objects
}

// among are lists without the objects that are not chosen.
func among(chosen []*object.Object, lists []view.List) []view.List {
	keep := make(map[*object.Object]bool, len(chosen))
	for _, o := range chosen {
		keep[o] = true
	}
	out := make([]view.List, len(lists))
	for i, l := range lists {
		out[i] = l.Where(func(o *object.Object) bool { return keep[o] })
	}
	return out
}

// adopting adds the orphans that become the parent's.
func (s *Shape) adopting(
	params claim.Params,
	orphans []*object.Object,
	claims claim.Claims,
	children view.Set,
) (view.Set, claim.Claims) {
	params.Candidates = orphans
	claims.Adopt = claim.Classify(params).Adopt
	return children.With(claims.Adopt...), claims
}

// look is what a parent was found to own: all of it was selected.
type look struct {
	uid      types.UID
	selector string
	owned    []view.List
}

// looks are the last look at each parent.
type looks struct {
	mu   sync.Mutex // guards last
	last map[hook.Key]look
}

// fresh are the objects that the last look has not seen; all of them, if it was another parent's or
// by another selector.
func (l *looks) fresh(key hook.Key, now look) []*object.Object {
	l.mu.Lock()
	before, found := l.last[key]
	l.mu.Unlock()
	if !found || before.uid != now.uid || before.selector != now.selector {
		return all(now.owned)
	}
	var out []*object.Object
	for i, list := range now.owned {
		out = append(out, view.Added(before.owned[i], list)...)
	}
	return out
}

func (l *looks) keep(key hook.Key, now look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[hook.Key]look{}
	}
	l.last[key] = now
}

func (l *looks) forget(key hook.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, key)
}
