package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/kit"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
)

// TestTriggersOfControllerInGo reconciles the object that a client names to the gateway of a
// process without declared controllers. The client is refused until it has the right.
func TestTriggersOfControllerInGo(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	settings, dial := newGateway(k)
	triggered := make(chan string, 100)
	reconcile := func(_ context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
		for _, cause := range req.Causes {
			if cause.Kind == engine.CauseTrigger {
				triggered <- req.Key.Name + " by " + cause.Reason
			}
		}
		return controller.Result{}, nil
	}
	c := server.DefaultConfig()
	c.ControllersOnly = true
	c.LeaderElection.Enabled = false
	c.Gateway = settings
	c.Controllers = []controller.Declared{controller.New[*corev1.ConfigMap]("images-" + k.Name).
		Where(func(o *corev1.ConfigMap) bool { return o.Namespace == k.Namespace && o.Labels["image"] != "" }).
		Source(controller.Triggers(k.Name)).
		Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](reconcile))}
	for _, name := range []string{"a", "b", "c"} {
		k.Object("v1/ConfigMap", name).Label("image", "of-"+name).Apply()
	}
	runServer(k, c)

	k.Eventually("the gateway refuses a caller without the right", func() error {
		_, err := dial.Trigger(t.Context(), k.Name, hook.Trigger{})
		switch {
		case err == nil:
			return errors.New("it accepts the trigger")
		case status.Code(err) == codes.PermissionDenied:
			return nil
		}
		return err
	})
	(&entrance{Kit: k, gateway: dial}).allow("serve", "hookworkers", k.Name)
	k.Eventually("a trigger is accepted", func() error {
		n, err := dial.Trigger(t.Context(), k.Name, hook.Trigger{
			Parents: []hook.ParentName{{Namespace: k.Namespace, Name: "b"}}, Reason: "a name",
		})
		if err == nil && n != 1 {
			t.Fatalf("the trigger is about %d objects, want 1", n)
		}
		return err
	})
	awaitTriggered(k, triggered, "b by a name")
	n, err := dial.Trigger(t.Context(), k.Name, hook.Trigger{LabelSelector: "image=of-c", Reason: "a label"})
	if n != 1 || err != nil {
		t.Errorf("the trigger is about %d objects, %v, want 1", n, err)
	}
	awaitTriggered(k, triggered, "c by a label")
}

// awaitTriggered waits for the next reconcile with a trigger, which must be the wanted one.
func awaitTriggered(k *kit.Kit, triggered <-chan string, want string) {
	k.Helper()
	k.Eventually("the trigger is reconciled: "+want, func() error {
		select {
		case got := <-triggered:
			if got != want {
				k.Fatalf("reconciled is %q, want %q", got, want)
			}
			return nil
		default:
			return errors.New("it is not")
		}
	})
}
