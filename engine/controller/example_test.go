package controller_test

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A program with one controller: a ConfigMap with the label copy=yes gets a copy, which the garbage
// collector deletes with it.
func Example() {
	copies := controller.New[*corev1.ConfigMap]("copies").
		WhereLabels(labels.SelectorFromSet(labels.Set{"copy": "yes"})).
		Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](
			func(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
				if req.Object == nil {
					return controller.Result{}, nil
				}
				wanted := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: req.Key.Namespace, Name: req.Key.Name + "-copy"},
					Data:       req.Object.Data,
				}
				if err := req.Own(req.Object, wanted); err != nil {
					return controller.Result{}, err
				}
				return controller.Result{}, req.Apply(ctx, wanted)
			}))
	main := func() error {
		config := server.DefaultConfig()
		config.Controllers = []controller.Declared{copies}
		config.ControllersOnly = true // no declared controllers, no CRDs of Hookloop
		ctx, stop := server.Signals(context.Background())
		defer stop()
		return server.Run(ctx, config)
	}
	_ = main
}

// A reconciler that reads another object. The object becomes a bound reference: the key is
// reconciled again when the object is created, changed or deleted, without a mapper.
func ExampleController_Watch() {
	type object = *corev1.ConfigMap
	c := controller.New[object]("tokens").
		Watch(controller.TypeOf[*corev1.Secret]()).
		Reconciler(controller.ReconcileFunc[object](
			func(_ context.Context, req *controller.Request[object]) (controller.Result, error) {
				if req.Object == nil {
					return controller.Result{}, nil
				}
				token, err := controller.Get[*corev1.Secret](req, controller.Key{
					Namespace: req.Key.Namespace, Name: req.Object.Data["token"],
				})
				if controller.IsNotFound(err) {
					req.Event(req.Object, controller.Warning, "NoToken", "the Secret does not exist yet")
					return controller.Result{Pending: true}, nil
				}
				if err != nil {
					return controller.Result{}, err // not known: this is not "none"
				}
				req.Logger().Info("token", "bytes", len(token.Data["token"]))
				return controller.Result{}, nil
			}))
	fmt.Println(c.Name())
	// Output: tokens
}

// An index finds objects by a value without a scan, in reconciles and in mappers.
func ExampleNewIndex() {
	byNode := controller.NewIndex("node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })
	c := controller.New[*corev1.Node]("pods-of-nodes").
		Watch(controller.TypeOf[*corev1.Pod]()).
		Index(byNode).
		Reconciler(controller.ReconcileFunc[*corev1.Node](
			func(_ context.Context, req *controller.Request[*corev1.Node]) (controller.Result, error) {
				pods, err := controller.By(req, byNode, req.Key.Name)
				if err != nil {
					return controller.Result{}, err
				}
				req.Logger().Info("pods", "number", len(pods))
				return controller.Result{}, nil
			}))
	fmt.Println(c.Name(), byNode.Name())
	// Output: pods-of-nodes node
}

// A controller of a kind without a Go type.
func ExampleNewFor() {
	websites := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Website"}
	c := controller.NewFor("websites", websites)
	fmt.Println(c.Name(), controller.TypeFor(websites))
	// Output: websites Website.example.com/v1
}
