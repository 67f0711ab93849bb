package verify

import (
	"context"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// maxShrinking limits how many questions we try to make one smaller.
const maxShrinking = 64

// piece is a part of a question that may be left out.
type piece struct {
	// where is the object: parent, input, controller, or a group of children or related objects.
	where string
	group int
	// index is the object's place in its group; path is a field of the object, or nil for the whole
	// object.
	index int
	path  []string
}

// shrink drops objects and fields of a question while it shows a fault. Shows reports for each of
// several questions whether it does. The result is the question itself if no smaller one does.
func shrink(
	ctx context.Context, q *hook.Question, shows func(context.Context, []*hook.Question) []bool,
) *hook.Question {
	best := q
	left := maxShrinking
	for _, pieces := range []func(*hook.Question) []piece{objectsOf, objectsOf, objectsOf, fieldsOf, innerFieldsOf} {
		best = shrinkBy(ctx, best, pieces(best), shows, &left)
	}
	return best
}

// shrinkBy drops pieces: all of them if possible, else all that can be dropped alone, else those
// one after the other.
func shrinkBy(
	ctx context.Context, q *hook.Question, pieces []piece,
	shows func(context.Context, []*hook.Question) []bool, left *int,
) *hook.Question {
	try := func(candidates ...*hook.Question) []bool {
		*left -= len(candidates)
		return shows(ctx, candidates)
	}
	if len(pieces) == 0 || *left < 2 || ctx.Err() != nil {
		return q
	}
	if small := without(q, pieces); try(small)[0] {
		return small
	}
	pieces = pieces[:min(len(pieces), *left)]
	candidates := make([]*hook.Question, len(pieces))
	for i, p := range pieces {
		candidates[i] = without(q, []piece{p})
	}
	var free []piece
	for i, showsIt := range try(candidates...) {
		if showsIt {
			free = append(free, pieces[i])
		}
	}
	for n := len(free); n > 0 && *left > 0; n /= 2 { // all of them together, or the first half, …
		if small := without(q, free[:n]); try(small)[0] {
			return small
		}
	}
	return q
}

// objectsOf are the observed objects of a question.
func objectsOf(q *hook.Question) []piece {
	var all []piece
	for g, group := range q.Children {
		for i := range group.Objects {
			all = append(all, piece{where: "children", group: g, index: i})
		}
	}
	for g, group := range q.Related {
		for i := range group.Objects {
			all = append(all, piece{where: "related", group: g, index: i})
		}
	}
	return all
}

// fieldsOf are the first fields of all objects, without their identity.
func fieldsOf(q *hook.Question) []piece { return fieldPieces(q, 1) }

// innerFieldsOf are the fields inside of those of fieldsOf.
func innerFieldsOf(q *hook.Question) []piece { return fieldPieces(q, 2) }

func fieldPieces(q *hook.Question, depth int) []piece {
	all := piecesOf(piece{where: "controller"}, q.Controller, depth)
	all = append(all, piecesOf(piece{where: "parent"}, q.Parent, depth)...)
	if q.Input != nil {
		all = append(all, piecesOf(piece{where: "input"}, q.Input, depth)...)
	}
	for g, group := range q.Children {
		for i, o := range group.Objects {
			all = append(all, piecesOf(piece{where: "children", group: g, index: i}, o, depth)...)
		}
	}
	for g, group := range q.Related {
		for i, o := range group.Objects {
			all = append(all, piecesOf(piece{where: "related", group: g, index: i}, o, depth)...)
		}
	}
	return all
}

// identityFields are the fields that make an object one.
var identityFields = []string{"apiVersion", "kind", "metadata", "name", "namespace", "uid", "deletionTimestamp"}

func piecesOf(at piece, o *object.Object, depth int) []piece {
	m, err := o.Map()
	if err != nil {
		return nil
	}
	var all []piece
	for _, field := range slices.Sorted(maps.Keys(m)) {
		inner, _ := m[field].(map[string]any)
		if depth == 1 && field != "metadata" && !slices.Contains(identityFields, field) {
			at.path = []string{field}
			all = append(all, at)
		}
		if depth == 2 || field == "metadata" && depth == 1 {
			for _, name := range slices.Sorted(maps.Keys(inner)) {
				if field == "metadata" && (depth == 2 || slices.Contains(identityFields, name)) {
					continue
				}
				at.path = []string{field, name}
				all = append(all, at)
			}
		}
	}
	return all
}

// without returns a question without some pieces.
func without(q *hook.Question, pieces []piece) *hook.Question {
	other := *q
	fields := func(where string, group, index int, o *object.Object) *object.Object {
		var paths [][]string
		for _, p := range pieces {
			if p.where == where && p.group == group && p.index == index && p.path != nil {
				paths = append(paths, p.path)
			}
		}
		return withoutFields(o, paths)
	}
	list := func(where string, group int, objects []*object.Object) []*object.Object {
		var out []*object.Object
		for i, o := range objects {
			if !slices.ContainsFunc(pieces, func(p piece) bool {
				return p.where == where && p.group == group && p.index == i && p.path == nil
			}) {
				out = append(out, fields(where, group, i, o))
			}
		}
		return out
	}
	other.Controller, other.Parent = fields("controller", 0, 0, q.Controller), fields("parent", 0, 0, q.Parent)
	if q.Input != nil {
		other.Input = fields("input", 0, 0, q.Input)
	}
	other.Children = slices.Clone(q.Children)
	for g := range other.Children {
		other.Children[g].Objects = list("children", g, q.Children[g].Objects)
	}
	other.Related = slices.Clone(q.Related)
	for g := range other.Related {
		other.Related[g].Objects = list("related", g, q.Related[g].Objects)
	}
	return &other
}

// withoutFields returns an object without some fields, or the object itself if there are none.
func withoutFields(o *object.Object, paths [][]string) *object.Object {
	if len(paths) == 0 {
		return o
	}
	m, err := o.Map()
	if err != nil {
		return o
	}
	for _, path := range paths {
		at := m
		for _, step := range path[:len(path)-1] {
			at, _ = at[step].(map[string]any)
		}
		delete(at, path[len(path)-1])
	}
	small, err := object.FromMap(m)
	if err != nil {
		return o
	}
	return small
}
