package actor

import (
	"errors"
	"fmt"
	"slices"
)

// errTooLarge reports a graph with more nodes than a search may visit.
var errTooLarge = errors.New("the graph of dependencies is too large")

// search looks for a circle in a graph. A function returns its edges.
type search[K comparable] struct {
	// next returns the nodes that a node depends on, in a fixed order.
	next func(K) ([]K, error)
	// limit is the largest number of nodes to visit.
	limit int
	// done are the nodes from which no circle can be reached.
	done map[K]bool
	// path are the nodes from the start to the current one.
	path []K
}

// findCircle returns the first circle that can be reached from one of the nodes, and nil if there
// is none. The first node of a circle is also its last.
func findCircle[K comparable](from []K, limit int, next func(K) ([]K, error)) ([]K, error) {
	s := &search[K]{next: next, limit: limit, done: map[K]bool{}}
	for _, node := range from {
		if circle, err := s.visit(node); circle != nil || err != nil {
			return circle, err
		}
	}
	return nil, nil
}

// visit follows all edges of a node, depth first.
func (s *search[K]) visit(node K) ([]K, error) {
	if s.done[node] {
		return nil, nil
	}
	if i := slices.Index(s.path, node); i >= 0 {
		return append(slices.Clone(s.path[i:]), node), nil
	}
	if len(s.path)+len(s.done) >= s.limit {
		return nil, fmt.Errorf("%w: more than %d nodes", errTooLarge, s.limit)
	}
	s.path = append(s.path, node)
	edges, err := s.next(node)
	if err != nil {
		return nil, err
	}
	for _, edge := range edges {
		if circle, err := s.visit(edge); circle != nil || err != nil {
			return circle, err
		}
	}
	s.path = s.path[:len(s.path)-1]
	s.done[node] = true
	return nil, nil
}
