package plan

import (
	"encoding/json"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// teardown is the order in which undesired children are deleted: each after those that depend on
// it.
type teardown struct {
	// dependents has, for each object, the undesired objects that depend on it.
	dependents map[object.Ref][]object.Ref
	// circles numbers objects: those of one circle share a number, each other object has its own.
	circles map[object.Ref]int
}

// newTeardown reads the dependencies of undesired objects, including those that are being deleted.
func newTeardown(going []*object.Object) teardown {
	t := teardown{}
	var (
		goes  map[object.Ref]bool
		edges map[object.Ref][]object.Ref
	)
	for _, o := range going {
		for _, on := range dependencies(o) {
			if goes == nil {
				t.dependents = map[object.Ref][]object.Ref{}
				edges = map[object.Ref][]object.Ref{}
				goes = refsOf(going)
			}
			if goes[on] {
				edges[o.Ref()] = append(edges[o.Ref()], on)
				t.dependents[on] = append(t.dependents[on], o.Ref())
			}
		}
	}
	t.circles = circlesOf(edges)
	return t
}

func refsOf(objects []*object.Object) map[object.Ref]bool {
	refs := make(map[object.Ref]bool, len(objects))
	for _, o := range objects {
		refs[o.Ref()] = true
	}
	return refs
}

// dependencies returns the dependencies in an observed child's annotation. An annotation that
// cannot be read was not written by the engine, and counts as none.
func dependencies(o *object.Object) []object.Ref {
	text, ok := o.Annotations()[DependsOnAnnotation]
	if !ok {
		return nil
	}
	var list []recorded
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil
	}
	refs := make([]object.Ref, len(list))
	for i, r := range list {
		refs[i] = object.Ref{GVK: schema.FromAPIVersionAndKind(r.APIVersion, r.Kind), Namespace: r.Namespace, Name: r.Name}
	}
	return refs
}

// blocker returns an object that must be deleted before another one may be, and whether there is
// one. In a circle, which no answer can create, no object waits.
func (t teardown) blocker(ref object.Ref) (object.Ref, bool) {
	for _, dependent := range t.dependents[ref] {
		if t.circles[dependent] != t.circles[ref] {
			return dependent, true
		}
	}
	return object.Ref{}, false
}

// circlesOf numbers objects by their circles. It visits each object and each edge once (Tarjan's
// strongly connected components).
func circlesOf(edges map[object.Ref][]object.Ref) map[object.Ref]int {
	c := components{edges: edges, place: make(map[object.Ref]int, len(edges)), of: make(map[object.Ref]int, len(edges))}
	for ref := range edges {
		if c.place[ref] == 0 {
			c.visit(ref)
		}
	}
	return c.of
}

type components struct {
	edges map[object.Ref][]object.Ref
	place map[object.Ref]int // in the order of visits, from 1
	open  []object.Ref       // visited, and in no component yet
	of    map[object.Ref]int // the component, from 1
	last  int
}

// visit returns the earliest place on the path to an object that can be reached from it.
func (c *components) visit(ref object.Ref) int {
	at := len(c.place) + 1
	first := len(c.open)
	c.place[ref] = at
	c.open = append(c.open, ref)
	earliest := at
	for _, next := range c.edges[ref] {
		switch {
		case c.place[next] == 0:
			earliest = min(earliest, c.visit(next))
		case c.of[next] == 0:
			earliest = min(earliest, c.place[next])
		}
	}
	if earliest == at { // all that came after it is in a circle with it, or done
		c.last++
		for _, member := range c.open[first:] {
			c.of[member] = c.last
		}
		c.open = c.open[:first]
	}
	return earliest
}
