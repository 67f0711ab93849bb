package controller_test

import (
	"context"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWrittenObjectsAreRepaired: an object that the reconciler writes without a read is a bound
// reference, too.
func TestWrittenObjectsAreRepaired(t *testing.T) {
	name := metav1.ObjectMeta{Namespace: "shop", Name: "page"}
	writes := controller.New[*corev1.ConfigMap]("writes").Watch(controller.TypeOf[*corev1.Secret]()).
		Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](
			func(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
				if req.Object == nil {
					return controller.Result{}, nil
				}
				secret := &corev1.Secret{ObjectMeta: name, Data: map[string][]byte{"a": []byte("1")}}
				return controller.Result{}, req.Apply(ctx, secret)
			}))
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		&corev1.ConfigMap{ObjectMeta: name},
	}})
	env.Run(writes)
	env.UntilQuiet(t.Context())
	key := controllertest.Key{Namespace: "shop", Name: "page"}
	controllertest.Delete[*corev1.Secret](env, key)
	env.UntilQuiet(t.Context())
	controllertest.Update(env, key, func(s *corev1.Secret) { s.Data["a"] = []byte("2") })
	env.UntilQuiet(t.Context())
	if got := string(controllertest.Get[*corev1.Secret](env, key).Data["a"]); got != "1" {
		t.Errorf("the Secret has %q; want the value that the reconciler applies", got)
	}
}
