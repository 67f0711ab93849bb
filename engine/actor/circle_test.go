package actor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/actor"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

type deployment = *appsv1.Deployment

// stepper is an actor of Deployments with one function.
type stepper func(actor.Context[deployment]) (*actor.Action[deployment], error)

func (f stepper) Observe(ctx actor.Context[deployment]) (*actor.Action[deployment], error) {
	return f(ctx)
}

func (stepper) Finalize(actor.Context[deployment]) (bool, error) { return true, nil }

// needing returns a Deployment that depends on the one with another name.
func needing(name, other string) deployment {
	set := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"needs": other}},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: set},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: set},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
}

func needs(d deployment) []actor.Dependency {
	if d.Annotations["needs"] == "" {
		return nil
	}
	return []actor.Dependency{actor.Require(
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: d.Annotations["needs"]}})}
}

func shopKey(name string) controller.Key { return controller.Key{Namespace: "shop", Name: name} }

// within polls until done returns nil, and fails the test with its last error otherwise.
func within(t *testing.T, done func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { last = done(); return last == nil, nil })
	if err != nil {
		t.Fatal(last)
	}
}

// TestDeletedCircle: objects that depend on each other disappear when all are deleted, and not
// before.
func TestDeletedCircle(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{})
	idle := stepper(func(actor.Context[deployment]) (*actor.Action[deployment], error) { return nil, nil })
	env.Run(actor.New[deployment]("deployments", idle).DependsOn(actor.TypeOf[deployment]()).Dependencies(needs))
	for name, other := range map[string]string{"a": "b", "b": "c", "c": "a", "self": "self"} {
		controllertest.Create(env, needing(name, other))
	}
	env.UntilQuiet(t.Context())
	for _, name := range []string{"self", "a", "b"} {
		controllertest.Delete[deployment](env, shopKey(name))
	}
	env.UntilQuiet(t.Context())
	controllertest.Get[deployment](env, shopKey("b")) // a depends on b, and c keeps a
	controllertest.Get[deployment](env, shopKey("a"))
	controllertest.Delete[deployment](env, shopKey("c"))
	for _, name := range []string{"self", "a", "b", "c"} {
		within(t, func() error {
			if d, err := controllertest.Find[deployment](env, shopKey(name)); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %v", name, d)
			}
			return nil
		})
	}
}

// TestActionsOnTheObject: the conditions name actions that cannot be reported, and those without
// an end.
func TestActionsOnTheObject(t *testing.T) {
	n := 0
	do := stepper(func(ctx actor.Context[deployment]) (*actor.Action[deployment], error) {
		if ctx.Target.Name == "named" {
			return actor.Do("create\nthe \xff", func(actor.Context[deployment]) error { return errors.New("no") }), nil
		}
		return actor.Do("Count", func(ctx actor.Context[deployment]) error {
			return actor.CreateOrUpdateChild(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "n"}},
				func(m *corev1.ConfigMap) error {
					n++
					m.Data = map[string]string{"n": fmt.Sprint(n)}
					return nil
				})
		}), nil
	})
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{needing("named", "")}})
	env.Run(actor.New[deployment]("deployments", do).Owns(actor.TypeOf[*corev1.ConfigMap]()))
	says := func(name, want string) func() error {
		return func() error {
			conditions := controllertest.Get[deployment](env, shopKey(name)).Status.Conditions
			if len(conditions) != 1 || !strings.Contains(conditions[0].Message, want) {
				return fmt.Errorf("conditions of %s are %v, want one with %q", name, conditions, want)
			}
			return nil
		}
	}
	within(t, says("named", `is invalid, expected a letter and up to 99 letters`))
	controllertest.Create(env, needing("endless", ""))
	within(t, says("endless", "20 actions in one reconcile have not reached the desired state; the next one is Count"))
}

// conditionSays returns a check for a text in the conditions of a Deployment.
func conditionSays(env *controllertest.Env, name, reason, want string) func() error {
	return func() error {
		conditions := controllertest.Get[deployment](env, shopKey(name)).Status.Conditions
		for _, c := range conditions {
			if c.Reason == reason && strings.Contains(c.Message, want) {
				return nil
			}
		}
		return fmt.Errorf("conditions of %s are %v, want one with reason %s and %q", name, conditions, reason, want)
	}
}

// TestMetCircle: a circle of objects that are met in turn is reported on each of them until one of
// them ends it.
func TestMetCircle(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{})
	idle := stepper(func(actor.Context[deployment]) (*actor.Action[deployment], error) { return nil, nil })
	env.Run(actor.New[deployment]("deployments", idle).DependsOn(actor.TypeOf[deployment]()).Dependencies(needs))
	circle := map[string]string{"a": "b", "b": "c", "c": "a"}
	for name := range circle {
		controllertest.Create(env, needing(name, ""))
	}
	env.UntilQuiet(t.Context())
	for name, other := range circle {
		controllertest.Update(env, shopKey(name), func(d deployment) { d.Annotations["needs"] = other })
	}
	for name := range circle {
		within(t, conditionSays(env, name, "Circle", "all dependencies are met: 1, but the dependencies of Deployment"))
	}
	controllertest.Update(env, shopKey("b"), func(d deployment) { d.Annotations["needs"] = "" })
	within(t, conditionSays(env, "a", "AllMet", "all dependencies are met: 1"))
	within(t, conditionSays(env, "c", "AllMet", "all dependencies are met: 1"))
}

// TestPanickingDependencies: an object with dependencies that panic is reported, and keeps neither
// the objects of its type nor itself from their end.
func TestPanickingDependencies(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{})
	idle := stepper(func(actor.Context[deployment]) (*actor.Action[deployment], error) { return nil, nil })
	env.Run(actor.New[deployment]("deployments", idle).DependsOn(actor.TypeOf[deployment]()).Dependencies(
		func(d deployment) []actor.Dependency {
			if d.Annotations["needs"] == "panic" {
				panic("no luck")
			}
			return needs(d)
		}))
	controllertest.Create(env, needing("other", ""))
	controllertest.Create(env, needing("bad", "panic"))
	within(t, conditionSays(env, "bad", "DependenciesPanicked", "no luck"))
	for _, name := range []string{"other", "bad"} {
		controllertest.Delete[deployment](env, shopKey(name))
		within(t, func() error {
			if d, err := controllertest.Find[deployment](env, shopKey(name)); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %v", name, d.Status.Conditions)
			}
			return nil
		})
	}
}
