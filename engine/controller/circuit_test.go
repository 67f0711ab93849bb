package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func shopMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func shopKey(name string) controller.Key { return controller.Key{Namespace: "shop", Name: name} }

// fighter is a controller that wants a value in a field of a child of the object "a". It sends the
// errors of its writes.
func fighter(name, value string, errs chan<- error) controller.Declared {
	return controller.New[configMap](name).Watch(controller.TypeOf[secret]()).
		Where(func(c configMap) bool { return c.Name == "a" }).
		Reconciler(reconciler(func(ctx context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			child, err := controller.Get[secret](req, req.Key)
			if err != nil || string(child.Data["color"]) == value {
				return controller.Result{}, err
			}
			child.Data = map[string][]byte{"color": []byte(value)}
			err = req.Update(ctx, child)
			select {
			case errs <- err:
			default:
			}
			return controller.Result{}, err
		}))
}

func fight(t *testing.T, pause time.Duration) (*controllertest.Env, chan error) {
	t.Helper()
	env := controllertest.New(t, controllertest.Options{
		RewriteLimit: 20, RewritePause: pause,
		Objects: []controllertest.Object{
			shopMap("a", nil),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}},
		},
	})
	return env, make(chan error, 1000)
}

// opened returns the first error of an open circuit.
func opened(t *testing.T, errs <-chan error) *controller.CircuitError {
	t.Helper()
	for {
		err := next(t, errs)
		var open *controller.CircuitError
		if errors.As(err, &open) {
			if !errors.Is(err, controller.ErrCircuitOpen) {
				t.Fatalf("%v is no ErrCircuitOpen", err)
			}
			return open
		}
	}
}

// TestFightOpensCircuit: two controllers rewrite one field. Their writes end, the error and one
// Event name object, field and the other writer, and a change of the object by a user lets them
// write again.
func TestFightOpensCircuit(t *testing.T) {
	env, errs := fight(t, time.Hour)
	env.Run(fighter("red", "red", errs), fighter("blue", "blue", errs))
	open := opened(t, errs)
	rival := string(controllertest.Get[secret](env, shopKey("a")).Data["color"]) // it has written last
	if open.Object.Name != "a" || open.Object.GVK.Kind != "Secret" || open.Field != "data.color" {
		t.Errorf("got %s of %s, want data.color of the Secret", open.Field, open.Object)
	}
	if !slices.Contains(open.Managers, rival) || !strings.Contains(open.Error(), strconv.Quote(rival)) {
		t.Errorf("managers are %q, want %s; the error is %v", open.Managers, rival, open)
	}
	if open.Wait <= 0 || open.Wait > time.Hour {
		t.Errorf("wait is %s, want at most the pause", open.Wait)
	}
	env.UntilQuiet(t.Context())
	if n := changes(env); n < 20 || n > 60 {
		t.Errorf("%d writes, want 20 to 60", n)
	}
	events := circuitEvents(t, env)
	if len(events) != 1 || events[0].InvolvedObject.Kind != "ConfigMap" || events[0].Count > 1 ||
		!strings.Contains(events[0].Message, "data.color of Secret") {
		t.Errorf("Events are %v, want one about the field on the ConfigMap", events)
	}

	controllertest.Update(env, shopKey("a"), func(c configMap) { c.Labels = map[string]string{"edited": "yes"} })
	env.UntilQuiet(t.Context())
	if n := changes(env); n < 20 {
		t.Errorf("%d writes after a change by a user, want a fight again", n)
	}
}

// changes counts the writes since the last call, without those that the API server has refused
// because the other controller was faster.
func changes(env *controllertest.Env) int {
	n := 0
	for _, w := range env.Audit() {
		if w.Changed {
			n++
		}
	}
	return n
}

// circuitEvents returns the Events of opened circuits, when there is one.
func circuitEvents(t *testing.T, env *controllertest.Env) []corev1.Event {
	t.Helper()
	var found []corev1.Event
	for deadline := time.Now().Add(10 * time.Second); len(found) == 0 && time.Now().Before(deadline); {
		for _, e := range controllertest.List[*corev1.Event](env, "shop") {
			if e.Reason == "CircuitOpen" {
				found = append(found, *e)
			}
		}
	}
	return found
}

// TestCircuitTriesAgain: after the pause the key comes back without an event, and writes; it stays
// closed when the other writer has stopped.
func TestCircuitTriesAgain(t *testing.T) {
	env, errs := fight(t, 50*time.Millisecond)
	env.Run(fighter("red", "red", errs))
	env.UntilQuiet(t.Context())
	for range 200 { // a rival that is no controller
		controllertest.Update(env, shopKey("a"), func(s secret) { s.Data = map[string][]byte{"color": []byte("blue")} })
		env.UntilQuiet(t.Context())
	}
	if open := opened(t, errs); open.Field != "data.color" {
		t.Errorf("the circuit is open for %s, want data.color", open.Field)
	}
	for string(controllertest.Get[secret](env, shopKey("a")).Data["color"]) != "red" {
		select {
		case err := <-errs:
			if err != nil && !errors.Is(err, controller.ErrCircuitOpen) && !errors.Is(err, controller.ErrConflict) {
				t.Fatal(err)
			}
		case <-t.Context().Done():
			t.Fatal("the key does not come back after the pause")
		}
	}
}

// TestHonestWorkKeepsCircuitClosed: a field that follows other objects is rewritten more often than
// the limit, and so is a field of many objects; applies that change nothing do not count.
func TestHonestWorkKeepsCircuitClosed(t *testing.T) {
	env, errs := fight(t, time.Hour)
	const inputs = 100
	sum := controller.New[configMap]("sum").
		Where(func(c configMap) bool { return c.Name == "a" }).
		Watch(controller.TypeOf[secret]()).
		Reconciler(reconciler(func(ctx context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			all, err := controller.List[secret](req, controller.InNamespace("shop"))
			if err != nil || req.Object == nil {
				return controller.Result{}, err
			}
			for _, name := range []string{"total", "same"} {
				out := &corev1.ConfigMap{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: shopMap(name, nil).ObjectMeta,
					Data: map[string]string{"n": fmt.Sprint(len(all))},
				}
				if name == "same" {
					out.Data["n"] = "1"
				}
				if err := req.Apply(ctx, out); err != nil {
					errs <- err
					return controller.Result{}, err
				}
			}
			return controller.Result{}, nil
		}))
	env.Run(sum)
	for i := range inputs {
		controllertest.Create(env, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("s", i)}})
		env.UntilQuiet(t.Context())
	}
	if got := controllertest.Get[configMap](env, shopKey("total")).Data["n"]; got != fmt.Sprint(inputs+1) {
		t.Errorf("the total is %s, want %d", got, inputs+1)
	}
	select {
	case err := <-errs:
		t.Errorf("a write failed: %v", err)
	default:
	}
}

// TestFightForLabel: a label of the key's object that the controller itself rewrites is no change
// by a user.
func TestFightForLabel(t *testing.T) {
	env, errs := fight(t, time.Hour)
	labels := func(value string) controller.Declared {
		return controller.New[configMap](value).Reconciler(reconciler(
			func(ctx context.Context, req *controller.Request[configMap]) (controller.Result, error) {
				if req.Object == nil || req.Key.Name != "a" {
					return controller.Result{}, nil
				}
				err := controller.PatchMetadata(ctx, req.Runtime, req.Object, func(c configMap) {
					c.Labels = map[string]string{"color": value}
				})
				errs <- err
				return controller.Result{}, err
			}))
	}
	env.Run(labels("red"), labels("blue"))
	if open := opened(t, errs); open.Field != "metadata.labels.color" || open.Object.Name != "a" {
		t.Errorf("got %s of %s, want the label of the object", open.Field, open.Object)
	}
}
