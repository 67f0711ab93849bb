package main

import (
	"maps"
	"testing"

	"github.com/hookloop/hookloop/engine/controllertest"
	"github.com/hookloop/hookloop/examples/bound-references/api"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// start runs both controllers with objects.
func start(t *testing.T, objects ...controllertest.Object) *controllertest.Env {
	t.Helper()
	types := runtime.NewScheme()
	if err := api.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	env := controllertest.New(t, controllertest.Options{
		Scheme: types, CRDs: controllertest.ReadCRDs(t, "crd.yaml"), Objects: objects,
	})
	env.Run(controllers()...)
	env.UntilQuiet(t.Context())
	return env
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }

func key(name string) controllertest.Key { return controllertest.Key{Namespace: "shop", Name: name} }

func baz(name, computed, value string) *api.Baz {
	return &api.Baz{ObjectMeta: named(name), Spec: api.BazSpec{Computed: computed, Value: value}}
}

// wantValues waits until nothing is left to do, and compares the values of a ComputedBaz.
func wantValues(t *testing.T, env *controllertest.Env, name string, want map[string]string) {
	t.Helper()
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[*api.ComputedBaz](env, key(name)).Status.Values; !maps.Equal(got, want) {
		t.Errorf("values of %s = %v, want %v", name, got, want)
	}
}

func TestABarShowsTheTextOfItsFoo(t *testing.T) {
	env := start(t, &api.Bar{ObjectMeta: named("bar"), Spec: api.BarSpec{Foo: "foo"}})
	want := func(text, reason string) {
		t.Helper()
		env.UntilQuiet(t.Context())
		status := controllertest.Get[*api.Bar](env, key("bar")).Status
		if status.Text != text || len(status.Conditions) != 1 || status.Conditions[0].Reason != reason {
			t.Errorf("status = %+v, want the text %q and one condition with the reason %s", status, text, reason)
		}
	}
	want("", "NotFound")
	controllertest.Create(env, &api.Foo{ObjectMeta: named("foo"), Spec: api.FooSpec{Text: "hello"}})
	want("hello", "Found")
	controllertest.Update(env, key("bar"), func(b *api.Bar) { b.Spec.Foo = "other" })
	want("", "NotFound")
}

func TestAPointerThatMovesAway(t *testing.T) {
	env := start(t, &api.ComputedBaz{ObjectMeta: named("left")}, &api.ComputedBaz{ObjectMeta: named("right")},
		baz("a", "left", "1"), baz("b", "left", "2"), baz("c", "left", ""))
	wantValues(t, env, "left", map[string]string{"a": "1", "b": "2"})
	controllertest.Update(env, key("b"), func(b *api.Baz) { b.Spec.Computed = "right" })
	wantValues(t, env, "left", map[string]string{"a": "1"})
	wantValues(t, env, "right", map[string]string{"b": "2"})
	controllertest.Delete[*api.Baz](env, key("b"))
	wantValues(t, env, "right", nil)
}

func TestNothingIsWrittenTwice(t *testing.T) {
	env := start(t, &api.ComputedBaz{ObjectMeta: named("left")}, baz("a", "left", "1"))
	if writes := env.Audit(); len(writes) != 1 {
		t.Errorf("writes = %v, want one of the status", writes)
	}
	controllertest.Update(env, key("a"), func(b *api.Baz) { b.Labels = map[string]string{"any": "label"} })
	env.UntilQuiet(t.Context())
	for _, w := range env.Audit() {
		if w.Resource == "computedbazes" {
			t.Errorf("write %v, want none", w)
		}
	}
}
