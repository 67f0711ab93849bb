package main

import (
	"context"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/examples/bound-references/api"
)

// foosOfBars finds the Bars that refer to a Foo.
var foosOfBars = controller.IndexByName("foo", func(b *api.Bar) string { return b.Spec.Foo })

// computedOfBazes finds the Bazes that name a ComputedBaz.
var computedOfBazes = controller.IndexByName("computed", func(b *api.Baz) string { return b.Spec.Computed })

// controllers returns both controllers of the example.
func controllers() []controller.Declared {
	return []controller.Declared{
		// The relation is written down: an index of the Bars by their reference, and a mapper that asks
		// it for the Bars of a Foo.
		controller.New[*api.Bar]("bar").
			Watch(controller.TypeOf[*api.Foo](), controller.RefersTo(foosOfBars)).
			Reconciler(controller.ReconcileFunc[*api.Bar](reconcileBar)),
		// The relation is not written down: each reconcile records the query that it makes.
		controller.New[*api.ComputedBaz]("computed-baz").
			Watch(controller.TypeOf[*api.Baz]()).
			Index(computedOfBazes).
			Reconciler(controller.ReconcileFunc[*api.ComputedBaz](reconcileComputedBaz)),
	}
}

// reconcileBar shows the text of the Foo that a Bar refers to.
func reconcileBar(ctx context.Context, req *controller.Request[*api.Bar]) (controller.Result, error) {
	bar := req.Object
	if bar == nil {
		return controller.Result{}, nil // it is deleted, and has left nothing behind
	}
	text := ""
	ready := controller.True(api.Ready, "Found", "the text is that of the Foo")
	foo, err := controller.Get[*api.Foo](req, controller.Key{Namespace: bar.Namespace, Name: bar.Spec.Foo})
	switch {
	case err == nil:
		text = foo.Spec.Text
	case controller.IsNotFound(err):
		ready = controller.False(api.Ready, "NotFound", err.Error())
	default:
		return controller.Result{}, err
	}
	return controller.Result{}, controller.SetStatus(ctx, req.Runtime, bar, func(b *api.Bar) {
		b.Status.Text = text
		controller.SetConditions(b, &b.Status.Conditions, ready)
	})
}

// reconcileComputedBaz collects the values of the Bazes that name a ComputedBaz.
func reconcileComputedBaz(
	ctx context.Context, req *controller.Request[*api.ComputedBaz],
) (controller.Result, error) {
	computed := req.Object
	if computed == nil {
		return controller.Result{}, nil
	}
	bazes, err := controller.By(req, computedOfBazes, req.Key)
	if err != nil {
		return controller.Result{}, err
	}
	values := map[string]string{}
	for _, baz := range bazes {
		if baz.Spec.Value != "" {
			values[baz.Name] = baz.Spec.Value
		}
	}
	return controller.Result{}, controller.SetStatus(ctx, req.Runtime, computed, func(c *api.ComputedBaz) {
		c.Status.Values = values
	})
}
