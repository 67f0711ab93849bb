package controllertest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// counts is a controller with one worker that writes the number of the Secret "poke" into each
// ConfigMap. It takes further keys from the channel, and calls idle for keys without an object.
func counts(keys <-chan controllertest.Key, idle func()) controller.Declared {
	reconcile := func(ctx context.Context, req *controller.Request[configMap]) (controller.Result, error) {
		if req.Object == nil {
			idle()
			return controller.Result{}, nil
		}
		poke, err := controller.Get[secret](req, key("poke"))
		if err != nil || req.Object.Data["seen"] == string(poke.Data["n"]) {
			return controller.Result{}, err
		}
		req.Object.Data["seen"] = string(poke.Data["n"])
		return controller.Result{}, req.Update(ctx, req.Object)
	}
	return controller.New[configMap]("counts").Workers(1).
		Watch(controller.TypeOf[secret]()).
		Source(controller.Channel(keys)).
		Reconciler(controller.ReconcileFunc[configMap](reconcile))
}

// TestConflictWaitsForTheEvent counts the refused requests of a controller that does not see the
// change it conflicts with, while its key is enqueued for other reasons.
func TestConflictWaitsForTheEvent(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		newMap("a", map[string]string{"seen": "0"}), newSecret("poke", "0"),
	}})
	keys := make(chan controllertest.Key)
	passed := make(chan struct{}, 1)
	env.Run(counts(keys, func() { passed <- struct{}{} }))
	env.UntilQuiet(t.Context())
	release := controllertest.Hold[configMap](env)
	controllertest.Update(env, key("a"), func(m configMap) { m.Data["by"] = "another" })
	env.Audit()
	refused := 0
	count := func() {
		refused += strings.Count(strings.Join(lines(env.Audit()), "\n"), "409 Conflict")
	}
	controllertest.Update(env, key("poke"), func(s secret) { s.Data["n"] = []byte("1") })
	for refused == 0 && t.Context().Err() == nil {
		keys <- key("none")
		<-passed
		count()
	}
	const most = 3 // the key is tried without an event after 1, 2 and 4 seconds
	for range 10 * most {
		keys <- key("a")
		keys <- key("none") // the one worker takes it after the other one
		<-passed
	}
	count()
	t.Logf("%d refused requests", refused)
	if refused > most {
		t.Errorf("%d refused requests while the event is held, want 1, and at most %d", refused, most)
	}
	release()
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[configMap](env, key("a")).Data; got["seen"] != "1" || got["by"] != "another" {
		t.Errorf("the ConfigMap has %v after the event, want both changes", got)
	}
	count()
	if refused > most {
		t.Errorf("%d refused requests with those after the event, want at most %d", refused, most)
	}
}

// TestConflictWithoutAnEvent reconciles a key again although no newer state of the object comes.
func TestConflictWithoutAnEvent(t *testing.T) {
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{
		newMap("a", map[string]string{"seen": "0"}), newSecret("poke", "1"),
	}})
	controllertest.Fail[configMap](env, controllertest.Fault{Verb: "update", Times: 1})
	env.Run(counts(nil, func() {}))
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[configMap](env, key("a")).Data; got["seen"] != "1" {
		t.Errorf("the ConfigMap has %v, want seen=1", got)
	}
}

// newSecret returns a Secret with a number.
func newSecret(name, n string) secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{"n": []byte(n)},
	}
}
