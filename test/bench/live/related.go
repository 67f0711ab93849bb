package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// relatedChildren are the numbers of children of each parent with a related object. Each is
// measured on its own.
var relatedChildren = []int{1, perParent}

// related is the cost of many parents that each have a related object of their own, which a
// customize hook selects.
type related struct {
	Transport transport `json:"transport"`
	Parents   int       `json:"parents"`
	Children  int       `json:"childrenPerParent"`
	// Build is the cost from the first parent's creation until all children and statuses are there.
	// The related objects are there before.
	Build cost `json:"build"`
	// Touch is the cost of a change of each related object that affects no child.
	Touch cost `json:"touch"`
	memory
}

// related runs the workload with a number of children for each parent.
func (s *stage) related(ctx context.Context, children int) (related, error) {
	r := related{Transport: s.transport, Parents: s.relations, Children: children}
	s.themes = true
	v, err := s.watched(ctx)
	if err != nil {
		return r, err
	}
	defer v.close()
	if err := s.alive(ctx, v, r.build(s), r.touch(s)); err != nil {
		return r, err
	}
	r.memory, err = s.memory(ctx, restedFor)
	if err != nil {
		return r, err
	}
	err = s.profiled(ctx, "touch", func(round int) error {
		return s.touchRelated(ctx, round%r.Parents, round)
	})
	if err != nil {
		return r, err
	}
	err = s.profiled(ctx, "build", func(round int) error {
		i := r.Parents + round
		if err := s.createRelated(ctx, i); err != nil {
			return err
		}
		return s.create(ctx, crowds, namespace, s.relative(i, children))
	})
	return r, err
}

// build creates the related objects and then the parents.
func (r *related) build(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		if err := atOnce(ctx, r.Parents, s.createRelated); err != nil {
			return err
		}
		if err := s.rests(ctx); err != nil {
			return err
		}
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		err = atOnce(ctx, r.Parents, func(ctx context.Context, i int) error {
			return s.create(ctx, crowds, namespace, s.relative(i, r.Children))
		})
		if err != nil {
			return err
		}
		r.Build, err = s.awaitTexts(ctx, v, since, r.Children*r.Parents, text)
		s.progress("  built after %s", r.Build.Wall.Round(time.Millisecond))
		return err
	}
}

// touch changes each related object once.
func (r *related) touch(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		err = atOnce(ctx, r.Parents, func(ctx context.Context, i int) error { return s.touchRelated(ctx, i, 0) })
		if err != nil {
			return err
		}
		if err := s.asked(ctx, since.wire); err != nil {
			return err
		}
		if err := s.rests(ctx); err != nil {
			return err
		}
		r.Touch, err = s.end(ctx, since, time.Now())
		return err
	}
}

// relatedName is the name of the related object of a parent.
func relatedName(parent int) string { return fmt.Sprintf("related-%d", parent) }

func (s *stage) createRelated(ctx context.Context, parent int) error {
	return s.create(ctx, secrets, namespace, object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": relatedName(parent)},
	})
}

// relative returns a parent with a related object of its own.
func (s *stage) relative(i, children int) object {
	o := s.parent(parentName(i), children, text)
	o["spec"].(object)["theme"] = relatedName(i)
	return o
}

func (s *stage) touchRelated(ctx context.Context, parent, round int) error {
	_, err := s.typed.CoreV1().Secrets(namespace).Patch(ctx, relatedName(parent), types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"bench.example.com/touched":"%d"}}}`, round), metav1.PatchOptions{})
	return err
}

// relatedTable has one row for each number of children.
func (r *report) relatedTable() *table {
	t := &table{
		title: "**related**: many parents with a related object each, which a customize hook selects, appear; then each " +
			"related object is touched",
		columns: []string{
			"transport", "parents", "children of each", "build: wall", "engine CPU", "for one parent", "hook CPU", "syncs",
			"hook calls, by operation", "API requests", "API writes", "touch: engine CPU of one", "its syncs", "RSS", "peak",
		},
	}
	for _, w := range r.Related {
		b := w.Build
		t.add(string(w.Transport), fmt.Sprint(w.Parents), fmt.Sprint(w.Children), ms(b.Wall), ms(b.EngineCPU),
			ms(each(b.EngineCPU, w.Parents)), ms(b.HookCPU), fmt.Sprint(sum(b.Syncs)), counts(b.Operations),
			fmt.Sprint(sum(b.Requests)), fmt.Sprint(sum(b.Writes)), ms(each(w.Touch.EngineCPU, w.Parents)),
			per(sum(w.Touch.Syncs), w.Parents), size(w.RSS), size(w.Peak))
	}
	return t
}
