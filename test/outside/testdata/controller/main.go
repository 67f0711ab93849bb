// Command controller runs one controller in Go: a ConfigMap with the label copy=yes gets a copy.
package main

import (
	"context"
	"log"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func main() {
	config := server.DefaultConfig()
	config.ControllersOnly = true
	config.Controllers = []controller.Declared{
		controller.New[*corev1.ConfigMap]("copies").
			WhereLabels(labels.SelectorFromSet(labels.Set{"copy": "yes"})).
			Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](reconcile)),
	}
	ctx, stop := server.Signals(context.Background())
	err := server.Run(ctx, config)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func reconcile(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
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
}
