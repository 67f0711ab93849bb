package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drawings lists the formats in which [Graph] draws. The first is the default.
var Drawings = []string{"text", "mermaid", "dot", "json"}

// Graph draws the objects around the target, at most limit of them. form must be one of [Drawings].
func Graph(ctx context.Context, t Target, form string, limit int) (string, error) {
	r, err := newReader(ctx, t, limit)
	if err != nil {
		return "", err
	}
	root, err := r.root(ctx)
	if err != nil {
		return "", err
	}
	if err := r.index.load(ctx); err != nil {
		return "", err
	}
	g, err := r.graph(ctx, root)
	if err != nil {
		return "", err
	}
	switch form {
	case "mermaid":
		return g.Mermaid(), nil
	case "dot":
		return g.DOT(), nil
	case "json":
		data, err := json.MarshalIndent(g, "", "  ")
		return string(data) + "\n", err
	}
	return g.Text(), nil
}

// reader reads the graph around one object.
type reader struct {
	index  *index
	target Target
	// mapping and namespace say where the target is.
	mapping   *meta.RESTMapping
	namespace string
	limit     int
	// seen keeps the objects of the last graph, so that unchanged ones are not read again.
	seen map[object.Ref]*object.Object
}

// newReader connects to the cluster and looks up its resources.
func newReader(ctx context.Context, t Target, limit int) (*reader, error) {
	c, err := connect(t)
	if err != nil {
		return nil, err
	}
	if err := Reach(ctx, c.config); err != nil {
		return nil, err
	}
	mapping, err := c.find(t.Resource)
	if err != nil {
		return nil, err
	}
	namespace := ""
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = c.namespace
	}
	x, err := newIndex(c, namespace)
	if err != nil {
		return nil, err
	}
	return &reader{index: x, target: t, mapping: mapping, namespace: namespace, limit: limit}, nil
}

// root reads the object.
func (r *reader) root(ctx context.Context) (*object.Object, error) {
	o, err := r.index.objects.Resource(r.mapping.Resource).Namespace(r.namespace).
		Get(ctx, r.target.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", r.target.Resource, r.target.Name, err)
	}
	return object.FromMap(o.Object)
}

// graph reads the objects around root that the index knows. Resources that cannot be read are
// listed in Graph.Unknown.
func (r *reader) graph(ctx context.Context, root *object.Object) (*graph.Graph, error) {
	s := newSource(r.index, r.seen)
	g, err := graph.Build(ctx, s, root, r.limit)
	if err != nil {
		return nil, err
	}
	r.seen = s.read
	g.Unknown = r.index.notes()
	return g, nil
}
