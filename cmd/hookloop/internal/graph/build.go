package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Source reads the objects of a graph.
type Source interface {
	// OwnedBy returns the objects with an owner reference to owner. It reads none of them.
	OwnedBy(owner types.UID) []object.Ref
	// DependenciesOf returns the objects that an object depends on. It reads none of them.
	DependenciesOf(o *object.Object) []object.Ref
	// Read reads objects. It has a result for each of them, in their order.
	Read(ctx context.Context, refs []object.Ref) ([]Found, error)
}

// Found is the result of a read.
type Found struct {
	// Object is nil if it does not exist.
	Object *object.Object
	// Unknown is the reason for which the object cannot be read: it may exist.
	Unknown string
}

// builder collects a graph breadth first, so that a truncated graph has the objects nearest to the
// root.
type builder struct {
	source Source
	limit  int
	graph  *Graph
	index  map[object.Ref]int
	queue  []*object.Object
}

// Build returns the graph of the objects that a root owns, directly or not, and of those on which
// they depend, of at most limit objects. It reads no object beyond the limit. Its error is the
// Source's.
func Build(ctx context.Context, source Source, root *object.Object, limit int) (*Graph, error) {
	b := &builder{source: source, limit: max(1, limit), graph: &Graph{}, index: map[object.Ref]int{}}
	b.add(root.Ref(), Found{Object: root})
	for len(b.queue) > 0 {
		o := b.queue[0]
		b.queue = b.queue[1:]
		if err := b.visit(ctx, o); err != nil {
			return nil, err
		}
	}
	return b.graph, nil
}

// visit adds the edges of one object.
func (b *builder) visit(ctx context.Context, o *object.Object) error {
	// A namespaced object owns objects of its own namespace only, whatever their references say.
	foreign := func(ref object.Ref) bool { return o.Namespace() != "" && ref.Namespace != o.Namespace() }
	owned := slices.DeleteFunc(slices.Clone(b.source.OwnedBy(o.UID())), foreign)
	slices.SortFunc(owned, compare)
	if err := b.edges(ctx, o, Owns, owned); err != nil {
		return err
	}
	return b.edges(ctx, o, DependsOn, b.source.DependenciesOf(o))
}

// edges adds the edges of one kind that begin at an object, and those of their ends that are new
// and within the limit.
func (b *builder) edges(ctx context.Context, from *object.Object, kind EdgeKind, ends []object.Ref) error {
	var unread []object.Ref
	for _, ref := range ends {
		if _, known := b.index[ref]; known || slices.Contains(unread, ref) {
			continue
		}
		if len(b.graph.Nodes)+len(unread) == b.limit {
			b.graph.Truncated = true
			break
		}
		unread = append(unread, ref)
	}
	found, err := b.source.Read(ctx, unread)
	if err != nil {
		return err
	}
	for i, ref := range unread {
		if kind == Owns && found[i].Object == nil && found[i].Unknown == "" {
			continue // deleted since its owner was read
		}
		b.add(ref, found[i])
	}
	for _, ref := range ends {
		if to, ok := b.index[ref]; ok {
			b.graph.Edges = append(b.graph.Edges, Edge{From: b.index[from.Ref()], To: to, Kind: kind})
		}
	}
	return nil
}

// add adds the node of an object.
func (b *builder) add(ref object.Ref, f Found) {
	n := missing(ref)
	switch {
	case f.Object != nil:
		n = nodeOf(f.Object)
		b.queue = append(b.queue, f.Object)
	case f.Unknown != "":
		n.Missing, n.State = false, readiness.State{Phase: readiness.Unknown, Why: clean(f.Unknown)}
	}
	b.graph.Nodes = append(b.graph.Nodes, n)
	b.index[ref] = len(b.graph.Nodes) - 1
}

// compare orders objects by kind, namespace and name.
func compare(a, b object.Ref) int {
	return strings.Compare(
		strings.Join([]string{a.GVK.Kind, a.GVK.Group, a.Namespace, a.Name}, "\x00"),
		strings.Join([]string{b.GVK.Kind, b.GVK.Group, b.Namespace, b.Name}, "\x00"))
}
