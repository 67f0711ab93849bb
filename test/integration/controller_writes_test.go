package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// site is an object of a kind without a Go type.
type site = *unstructured.Unstructured

// siteController writes a ConfigMap for each Site, and reports to results: the fault of a
// reconcile, or the Site's resourceVersion.
func siteController(k *kit.Kit, results chan<- string) controller.Declared {
	of := schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: "Site"}
	reconcile := func(ctx context.Context, req *controller.Request[site]) (controller.Result, error) {
		if req.Object == nil {
			return controller.Result{}, nil
		}
		version, err := req.Object.GetResourceVersion(), writeSite(ctx, req)
		if errors.Is(err, controller.ErrConflict) {
			return controller.Result{}, err
		}
		if err != nil {
			results <- err.Error()
			return controller.Result{}, nil
		}
		results <- version
		return controller.Result{}, nil
	}
	return controller.NewFor("sites-"+k.Name, of).Watch(controller.TypeOf[*corev1.ConfigMap](), controller.OwnerOf()).
		Reconciler(controller.ReconcileFunc[site](reconcile))
}

// writeSite makes the ConfigMap unless it exists, and the status. It reads after each write.
func writeSite(ctx context.Context, req *controller.Request[site]) error {
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: req.Key.Namespace, Name: req.Key.Name}}
	_, err := controller.Get[*corev1.ConfigMap](req, req.Key)
	if controller.IsNotFound(err) {
		if err := makeThrice(ctx, req, page); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := controller.SetStatus(ctx, req.Runtime, req.Object, func(s site) {
		err = controller.SetConditionsOf(s, controller.True("Ready", "PageExists", "the page exists"))
	}); err != nil {
		return err
	}
	return err
}

// makeThrice creates, deletes and applies a ConfigMap, and checks what reads and stale writes give
// after each step.
func makeThrice(ctx context.Context, req *controller.Request[site], page *corev1.ConfigMap) error {
	if err := req.Create(ctx, page.DeepCopy()); err != nil {
		return err
	}
	first, err := controller.Get[*corev1.ConfigMap](req, req.Key)
	if err != nil {
		return fmt.Errorf("after the create: %w", err)
	}
	if err := req.Create(ctx, page.DeepCopy()); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second create is %w, expected AlreadyExists", err)
	}
	stale := first.DeepCopy()
	first.Data = map[string]string{"text": "one"}
	if err := req.Update(ctx, first); err != nil {
		return err
	}
	if err := req.Update(ctx, stale); !errors.Is(err, controller.ErrConflict) {
		return fmt.Errorf("a stale update is %w, expected ErrConflict", err)
	}
	unchanged := controller.DeleteOptions{Unchanged: true}
	if err := req.DeleteWith(ctx, stale, unchanged); !errors.Is(err, controller.ErrConflict) {
		return fmt.Errorf("a stale delete is %w, expected ErrConflict", err)
	}
	if err := req.Delete(ctx, stale); err != nil {
		return err
	}
	found, err := controller.List[*corev1.ConfigMap](req, controller.InNamespace(req.Key.Namespace))
	if err != nil || strings.Contains(names(found), req.Key.Name) {
		return fmt.Errorf("after the delete: %s are listed (%w)", names(found), err)
	}
	if err := req.Own(req.Object, page); err != nil {
		return err
	}
	if err := req.Apply(ctx, page); err != nil {
		return err
	}
	if err := req.Delete(ctx, first); !errors.Is(err, controller.ErrConflict) {
		return fmt.Errorf("the delete of another object of the name is %w, expected ErrConflict", err)
	}
	owned, err := controller.OwnedFor(req, corev1.SchemeGroupVersion.WithKind("ConfigMap"), req.Object)
	if err == nil && len(owned) != 1 {
		err = fmt.Errorf("after the apply: %d objects are owned, expected 1", len(owned))
	}
	return err
}

func names(all []*corev1.ConfigMap) string {
	var text []string
	for _, o := range all {
		text = append(text, o.Name)
	}
	return strings.Join(text, ", ")
}

// TestWritesOfGoControllers checks preconditions and reads after writes, and in the audit log that
// an unchanged status is not written.
func TestWritesOfGoControllers(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	k.CRD("Site", "Namespaced")
	results := make(chan string, 1000)
	c := server.DefaultConfig()
	c.ControllersOnly, c.Controllers = true, []controller.Declared{siteController(k, results)}
	runServer(k, c)
	k.Object("Site", "home").Set("spec", map[string]any{}).Apply()
	k.Eventually("the page exists", func() error {
		if c := kit.Condition(k.Get("Site", "home"), "Ready"); c["reason"] != "PageExists" {
			return fmt.Errorf("the condition is %v", c)
		}
		return nil
	})
	reconciled(k, results, k.Get("Site", "home").GetResourceVersion())
	k.NoWrites(func() {
		k.Patch("Site", "home", "metadata: {annotations: {touched: 'yes'}}")
		reconciled(k, results, k.Get("Site", "home").GetResourceVersion())
	})
	mark := k.Mark()
	k.Patch("Site", "home", "spec: {changed: true}")
	k.Eventually("the condition is of generation 2", func() error {
		if g := kit.Condition(k.Get("Site", "home"), "Ready")["observedGeneration"]; fmt.Sprint(g) != "2" {
			return fmt.Errorf("it is of %v", g)
		}
		return nil
	})
	reconciled(k, results, k.Get("Site", "home").GetResourceVersion())
	if n, all := kit.Count(k.Writes(mark), "patch", "sites/status"), k.Writes(mark); n != 1 || len(all) != 1 {
		t.Errorf("a change of the generation is written by %v, want one patch of the status", all)
	}
}

// reconciled waits until a version of a Site is reconciled without a fault.
func reconciled(k *kit.Kit, results <-chan string, version string) {
	k.Helper()
	for limit := time.After(kit.Deadline); ; {
		select {
		case got := <-results:
			if strings.Contains(got, " ") {
				k.Fatal(got)
			}
			if got == version {
				return
			}
		case <-limit:
			k.Fatalf("the version %s is not reconciled", version)
		}
	}
}

// TestGoControllerThatLosesItsLeaseWritesNothing changes the holder of the lease during a reconcile
// that ignores its context.
func TestGoControllerThatLosesItsLeaseWritesNothing(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	begun := make(chan struct{}, 10)
	results := make(chan error, 10)
	c := server.DefaultConfig()
	c.ControllersOnly = true
	c.LeaderElection.Enabled = true
	c.LeaderElection.Namespace = k.Namespace
	c.LeaderElection.ID = k.Name
	c.Controllers = []controller.Declared{controller.New[*corev1.ConfigMap]("late-" + k.Name).
		Where(func(o *corev1.ConfigMap) bool { return o.Namespace == k.Namespace && o.Name == "source" }).
		Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](func(
			ctx context.Context, req *controller.Request[*corev1.ConfigMap],
		) (controller.Result, error) {
			begun <- struct{}{}
			<-ctx.Done()
			results <- req.Create(context.WithoutCancel(ctx), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: "late"},
			})
			return controller.Result{}, nil
		}))}
	k.Object("v1/ConfigMap", "source").Apply()
	p := runServer(k, c)
	within(k, "the reconcile begins", begun)
	mark := k.Mark()
	seize(k)
	if err := within(k, "the write ends", results); !errors.Is(err, engine.ErrFenced) {
		t.Errorf("the write without the lease = %v, want ErrFenced", err)
	}
	if err := within(k, "the server ends", p.ended); !errors.Is(err, server.ErrLeaseLost) {
		t.Errorf("the server ends with %v, want ErrLeaseLost", err)
	}
	p.ended = nil
	for _, w := range k.Writes(mark) {
		if w.Resource == "configmaps" {
			t.Errorf("a write of the old leader: %s", w)
		}
	}
}

// within receives from c, or fails the test.
func within[V any](k *kit.Kit, what string, c <-chan V) V {
	k.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(kit.Deadline):
		k.Fatalf("%s: not within %s", what, kit.Deadline)
		panic("unreachable")
	}
}
