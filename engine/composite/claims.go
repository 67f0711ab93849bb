package composite

import (
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/claim"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// classify says what is the parent's, and which of it comes or goes. Objects that were its own at the last look, and are the same still, are
// not looked at again.
func (s *Shape) classify(reader cache.Reader, key object.Key, parent *object.Object, selector labels.Selector, leaving bool) (object.Set, claim.Claims) {
	owned := make([][]*object.Object, len(s.declared))
	var orphans []*object.Object
	for i, d := range s.declared {
		owned[i] = reader.OwnedBy(d.Resource, parent.UID())
		if !leaving {
			orphans = append(orphans, reader.Orphans(d.Resource, parent.Namespace())...)
		}
	}
	params := claim.Params{Parent: parent, Selector: selector}
	look := look{parent.UID(), selector.String(), owned}
	params.Candidates = s.looks.fresh(key, look)
	claims := claim.Classify(params)
	if len(claims.Owned) != len(params.Candidates) {
		s.looks.forget(key)
		params.Candidates = slices.Concat(owned...)
		claims = claim.Classify(params)
		return s.adopting(params, orphans, claims, object.NewSet(claims.Owned...))
	}
	s.looks.keep(key, look)
	return s.adopting(params, orphans, claims, object.Collect(owned...))
}

// adopting adds the orphans that become the parent's.
func (s *Shape) adopting(params claim.Params, orphans []*object.Object, claims claim.Claims, children object.Set) (object.Set, claim.Claims) {
	params.Candidates = orphans
	claims.Adopt = claim.Classify(params).Adopt
	return children.With(claims.Adopt...), claims
}

// look is what a parent was found to own: all of it was selected.
type look struct {
	uid      types.UID
	selector string
	owned    [][]*object.Object
}

// looks are the last look at each parent.
type looks struct {
	mu   sync.Mutex // guards last
	last map[object.Key]look
}

// fresh are the objects that the last look has not seen; all of them, if it was another parent's or by another selector.
func (l *looks) fresh(key object.Key, now look) []*object.Object {
	l.mu.Lock()
	before, found := l.last[key]
	l.mu.Unlock()
	if !found || before.uid != now.uid || before.selector != now.selector {
		return slices.Concat(now.owned...)
	}
	var out []*object.Object
	for i, list := range now.owned {
		out = append(out, object.Fresh(before.owned[i], list)...)
	}
	return out
}

func (l *looks) keep(key object.Key, now look) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last = map[object.Key]look{}
	}
	l.last[key] = now
}

func (l *looks) forget(key object.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, key)
}
