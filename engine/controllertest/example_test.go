package controllertest_test

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tests is a test that is not run by go test, for the example.
type tests struct {
	controllertest.TB
	cleanups []func()
}

func (*tests) Helper()                  {}
func (*tests) Log(...any)               {}
func (*tests) Context() context.Context { return context.Background() }
func (t *tests) Cleanup(f func())       { t.cleanups = append(t.cleanups, f) }

func (t *tests) end() {
	for i := range t.cleanups {
		t.cleanups[len(t.cleanups)-1-i]()
	}
}

// A test creates objects, runs the controllers until they are quiet, and checks the result.
func Example() {
	t := &tests{} // the *testing.T of a test
	defer t.end()
	greets := controller.New[*corev1.ConfigMap]("greets").Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](
		func(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			if req.Object == nil || req.Object.Data["greeting"] != "" {
				return controller.Result{}, nil
			}
			req.Object.Data = map[string]string{"greeting": "hello, " + req.Key.Name}
			return controller.Result{}, req.Update(ctx, req.Object)
		}))

	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "anna"}},
	}})
	env.Run(greets)
	env.UntilQuiet(t.Context())

	greeted := controllertest.Get[*corev1.ConfigMap](env, controllertest.Key{Namespace: "shop", Name: "anna"})
	fmt.Println(greeted.Data["greeting"])
	for _, write := range env.Audit() {
		fmt.Println(write)
	}
	// Output:
	// hello, anna
	// update configmaps shop/anna by controllers
}
